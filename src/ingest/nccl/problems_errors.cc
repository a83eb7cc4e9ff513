#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "ingest/nccl/problems.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclError;
using evidence::NcclJob;

/// The error that came first: by time where all have one, by line where all stand in one file; nullptr = not told.
/// Times are of seconds: of two files' errors in one second none is the first.
const NcclError* FirstError(const NcclJob& job) {
  std::vector<const NcclError*> errors;
  for (const NcclError& error : job.errors) {
    if (!error.warning && !error.consequence) errors.push_back(&error);
  }
  if (errors.empty()) return nullptr;
  const bool all_timed = std::all_of(errors.begin(), errors.end(), [](const auto* e) { return e->time_unix_ns; });
  const bool one_file = std::all_of(errors.begin(), errors.end(),
                                    [&](const auto* e) { return e->place.file == errors.front()->place.file; });
  if (!all_timed && !one_file) return nullptr;
  const auto key = [&](const NcclError* error) {
    return std::tuple(all_timed ? *error->time_unix_ns : 0, error->place.file, error->place.line);
  };
  const NcclError* first =
      *std::min_element(errors.begin(), errors.end(), [&](const auto* a, const auto* b) { return key(a) < key(b); });
  for (const NcclError* other : errors) {
    if (all_timed && *other->time_unix_ns == *first->time_unix_ns && other->place.file != first->place.file) {
      return nullptr;
    }
  }
  return first;
}

std::string PeerHost(const std::string& peer) { return peer.substr(0, peer.find('<')); }

/// "rank 3 is", "ranks 0-7 are": of the processes whose bootstrap address or host this is; "" = of none.
std::string RanksAtAddress(const NcclJob& job, const std::string& host) {
  std::set<int32_t> ranks;
  for (const evidence::NcclProcess& process : job.processes) {
    const bool same =
        process.host == host || process.bootstrap.address == host ||
        std::any_of(process.sockets.begin(), process.sockets.end(), [&](const auto& s) { return s.address == host; });
    if (same && process.rank) ranks.insert(*process.rank);
  }
  if (ranks.empty()) return "";
  const std::string text = RankRanges(std::vector<int32_t>(ranks.begin(), ranks.end()));
  return ranks.size() == 1 ? "rank " + text + " is" : "ranks " + text + " are";
}

const char* ResultMeaning(int32_t result) {
  switch (result) {
    case 1: return "unhandled CUDA error";
    case 2: return "unhandled system error";
    case 3: return "internal error";
    case 4: return "invalid argument";
    case 5: return "invalid usage";
    case 6: return "remote process exited, or a network error";
    default: return "unknown result";
  }
}

/// Chains of result codes of processes that print no warning of their own.
void FindCallResults(ProblemList& list) {
  const NcclJob& job = list.job();
  std::set<uint32_t> with_error;
  for (const NcclError& error : job.errors) {
    if (!error.warning) with_error.insert(error.process);
  }
  std::map<int32_t, std::pair<const evidence::NcclCallResult*, std::set<uint32_t>>> by_result;
  for (const evidence::NcclCallResult& result : job.call_results) {
    if (result.result == 0 || result.result == 7 || with_error.count(result.process) != 0) continue;
    auto& [first, processes] = by_result[result.result];
    if (first == nullptr) first = &result;
    processes.insert(result.process);
  }
  for (const auto& [code, found] : by_result) {
    const std::vector<uint32_t> processes(found.second.begin(), found.second.end());
    list.Add("call_failed", "error", processes, found.first->place,
             list.Who(processes) + ": a call failed with " + std::to_string(code) + " (" + ResultMeaning(code) +
                 ") at " + found.first->where + ", and no warning says why.",
             "set NCCL_DEBUG=INFO on every rank and keep all of their logs");
  }
}

}  // namespace

void FindErrors(ProblemList& list) {
  const NcclJob& job = list.job();
  const NcclError* first = FirstError(job);
  struct Group {
    std::vector<const NcclError*> errors;
    std::set<uint32_t> processes;
  };
  std::map<std::tuple<std::string, std::string, std::string, bool>, Group> groups;
  for (const NcclError& error : job.errors) {
    // Of a kind that no rule knows only equal texts are one.
    const std::string what = error.kind == "other_warning" ? error.text : error.code;
    Group& group = groups[{error.kind, what, PeerHost(error.peer), error.warning}];
    group.errors.push_back(&error);
    group.processes.insert(error.process);
  }
  constexpr size_t kGroupLimit = 200;
  size_t count = 0;
  for (auto& [key, group] : groups) {
    if (++count > kGroupLimit) break;
    const NcclError& shown =
        **std::min_element(group.errors.begin(), group.errors.end(), [&](const auto* a, const auto* b) {
          return std::tuple(a != first, a->time_unix_ns.value_or(INT64_MAX), a->place.file, a->place.line) <
                 std::tuple(b != first, b->time_unix_ns.value_or(INT64_MAX), b->place.file, b->place.line);
        });
    const std::vector<uint32_t> processes(group.processes.begin(), group.processes.end());
    std::string text = list.Who(processes) + ": " + (shown.meaning.empty() ? shown.text : shown.meaning);
    if (!shown.code.empty()) text += " (" + shown.code + ")";
    if (!shown.peer.empty()) {
      const std::string ranks = RanksAtAddress(job, PeerHost(shown.peer));
      text += "; it points to " + shown.peer + (ranks.empty() ? "" : ", where " + ranks);
    }
    text += ".";
    if (group.errors.size() > 1) text += " So " + std::to_string(group.errors.size()) + " lines.";
    const bool is_error = !shown.warning && !shown.consequence;
    evidence::NcclLogFinding& finding = list.Add(shown.kind.c_str(), is_error ? "error" : "warning", processes,
                                                 shown.place, std::move(text), shown.remedy);
    finding.peer = shown.peer;
    finding.time_unix_ns = shown.time_unix_ns.value_or(0);
    finding.first = &shown == first;
  }
  FindCallResults(list);
}

}  // namespace lockstep::ingest
