#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "ingest/nccl/problems.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclJob;
using evidence::NcclMember;
using evidence::NcclOperation;
using evidence::NcclPlace;

std::string NameOf(const NcclCommunicator& communicator) {
  std::string name = "the communicator of " + std::to_string(communicator.rank_count) + " ranks";
  return communicator.id.empty() ? name : name + " (" + communicator.id + ")";
}

std::vector<uint32_t> ProcessesOf(const NcclJob& job, const std::vector<uint32_t>& members) {
  std::vector<uint32_t> processes;
  for (const uint32_t idx : members) processes.push_back(job.members[idx].process);
  return processes;
}

std::vector<int32_t> MissingRanks(const NcclJob& job, const NcclCommunicator& communicator, std::set<int32_t>& seen) {
  for (const uint32_t idx : communicator.members) {
    if (job.members[idx].rank >= 0) seen.insert(job.members[idx].rank);
  }
  std::vector<int32_t> missing;
  constexpr size_t kLimit = 10'000;
  for (int32_t rank = 0; rank < communicator.rank_count && missing.size() < kLimit; ++rank) {
    if (seen.count(rank) == 0) missing.push_back(rank);
  }
  return missing;
}

/// Whether its creation was seen to begin. Up to 2.16 that has no line; trees come before the end.
bool HasStarted(const NcclMember& member) { return member.started.seen() || !member.trees.empty(); }

constexpr std::array kDatatypes = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                   "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
constexpr std::array kReductions = {"sum", "prod", "max", "min", "avg"};

/// What all ranks must agree on, in words: "AllReduce of 1024 float32, sum".
std::string Signature(const NcclJob& job, const NcclOperation& operation) {
  const std::string& name = job.texts[operation.name];
  const auto datatype = static_cast<size_t>(operation.datatype);
  std::string text = fmt::format(
      "{} of {} {}", name, operation.count,
      datatype < kDatatypes.size() ? kDatatypes[datatype] : "datatype " + std::to_string(operation.datatype));
  if (name.find("Reduce") != std::string::npos) {
    const auto reduction = static_cast<size_t>(operation.reduction);
    text +=
        reduction < kReductions.size() ? fmt::format(", {}", kReductions[reduction]) : std::string(", own operator");
  }
  if (name == "Broadcast" || name == "Reduce" || name == "Gather" || name == "Scatter") {
    text += fmt::format(", root {}", operation.root);
  }
  return text;
}

bool IsSame(const NcclJob& job, const NcclOperation& a, const NcclOperation& b) {
  if (std::tie(a.name, a.count, a.datatype) != std::tie(b.name, b.count, b.datatype)) return false;
  return a.reduction == b.reduction && a.root == b.root ? true : Signature(job, a) == Signature(job, b);
}

/// One member's collectives in order. Several of one launch share an index; the occurrence tells them apart.
class Cursor {
 public:
  Cursor(const NcclJob& job, uint32_t member) : job_(job), member_(member) { Settle(); }

  uint32_t member() const { return member_; }
  bool done() const { return at_ >= Operations().size(); }
  const NcclOperation& operation() const { return Operations()[at_]; }
  std::pair<int64_t, uint32_t> key() const { return {operation().operation_idx, occurrence_}; }
  void Next() {
    const int64_t before = operation().operation_idx;
    ++at_;
    Settle();
    occurrence_ = !done() && operation().operation_idx == before ? occurrence_ + 1 : 0;
  }

 private:
  const std::vector<NcclOperation>& Operations() const { return job_.members[member_].operations; }
  void Settle() {  // Sends and receives are no matter of all ranks.
    while (!done()) {
      const std::string& name = job_.texts[operation().name];
      if (name != "Send" && name != "Recv") break;
      ++at_;
    }
  }

  const NcclJob& job_;
  uint32_t member_;
  size_t at_ = 0;
  uint32_t occurrence_ = 0;
};

void TellMismatch(ProblemList& list, const NcclCommunicator& communicator, const std::vector<Cursor*>& now,
                  uint64_t further_count) {
  const NcclJob& job = list.job();
  std::map<std::string, std::vector<const Cursor*>> by_signature;
  for (const Cursor* cursor : now) by_signature[Signature(job, cursor->operation())].push_back(cursor);
  const auto usual = std::max_element(by_signature.begin(), by_signature.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::string text;
  std::vector<uint32_t> odd;
  NcclPlace place;
  size_t count = 0;
  for (auto it = by_signature.begin(); it != by_signature.end(); ++it) {
    std::vector<uint32_t> processes;
    for (const Cursor* cursor : it->second) processes.push_back(job.members[cursor->member()].process);
    if (++count <= 4) text += (text.empty() ? "" : "; ") + it->first + " on " + list.Who(processes);
    if (it == usual) continue;
    odd.insert(odd.end(), processes.begin(), processes.end());
    if (!place.seen()) place = {it->second.front()->operation().file, it->second.front()->operation().line};
  }
  const int64_t idx = now.front()->operation().operation_idx;
  text = fmt::format("Collective {} (opCount {:x}) of {} differs: {}.", idx, idx, NameOf(communicator), text);
  if (further_count > 0) text += fmt::format(" So do {} later ones.", further_count);
  list.Add("collective_mismatch", "error", odd, place, std::move(text),
           "compare the code of these ranks before this call; `lockstep hang` on flight-recorder dumps names the line");
}

void CompareOperations(ProblemList& list, const NcclCommunicator& communicator) {
  const NcclJob& job = list.job();
  std::vector<Cursor> cursors;
  for (const uint32_t idx : communicator.members) {
    if (Cursor cursor(job, idx); !cursor.done()) cursors.push_back(cursor);
  }
  if (cursors.size() < 2) return;
  std::map<uint32_t, int64_t> last;
  std::vector<Cursor> first;
  uint64_t further_count = 0;
  std::map<std::pair<int64_t, uint32_t>, std::vector<size_t>> queue;
  for (size_t i = 0; i < cursors.size(); ++i) queue[cursors[i].key()].push_back(i);
  while (!queue.empty()) {
    const auto front = queue.extract(queue.begin());
    const std::pair<int64_t, uint32_t> key = front.key();
    std::vector<Cursor*> now;
    for (const size_t i : front.mapped()) now.push_back(&cursors[i]);
    const bool same = std::all_of(now.begin(), now.end(), [&](const Cursor* cursor) {
      return IsSame(job, cursor->operation(), now.front()->operation());
    });
    if (!same && !first.empty()) ++further_count;
    if (!same && first.empty()) {
      for (const Cursor* cursor : now) first.push_back(*cursor);
    }
    for (const size_t i : front.mapped()) {
      last[cursors[i].member()] = key.first;
      cursors[i].Next();
      // A line out of order would never end the walk if it were put back.
      if (!cursors[i].done() && cursors[i].key() > key) queue[cursors[i].key()].push_back(i);
    }
  }
  if (!first.empty()) {
    std::vector<Cursor*> pointers;
    for (Cursor& cursor : first) pointers.push_back(&cursor);
    TellMismatch(list, communicator, pointers, further_count);
  }

  int64_t furthest = -1;
  for (const auto& [member, idx] : last) furthest = std::max(furthest, idx);
  std::vector<uint32_t> behind;
  int64_t nearest = furthest;
  for (const auto& [member, idx] : last) {
    if (idx == furthest || job.members[member].destroyed.seen() || job.members[member].dropped_operation_count > 0)
      continue;
    behind.push_back(member);
    nearest = std::min(nearest, idx);
  }
  if (behind.empty()) return;
  const NcclOperation& operation = job.members[behind.front()].operations.back();
  const std::vector<uint32_t> processes = ProcessesOf(job, behind);
  list.Add("fewer_collectives", "warning", processes, {operation.file, operation.line},
           fmt::format("{} enqueued fewer collectives of {}: up to {} where others came to {}.", list.Who(processes),
                       NameOf(communicator), nearest, furthest),
           "if the job makes no progress, find out what these ranks do instead: `lockstep hang`");
}

}  // namespace

void FindIncompleteInit(ProblemList& list) {
  const NcclJob& job = list.job();
  size_t incomplete_count = 0;
  std::string incomplete_text;
  for (const NcclCommunicator& communicator : job.communicators) {
    std::vector<uint32_t> open;
    size_t completed_count = 0;
    for (const uint32_t idx : communicator.members) {
      const NcclMember& member = job.members[idx];
      const bool completed =
          member.completed.seen() || member.destroyed.seen() || member.connected_rings || !member.operations.empty();
      completed_count += completed && member.rank >= 0;
      if (!completed && HasStarted(member)) open.push_back(idx);
    }
    std::set<int32_t> seen;
    const std::vector<int32_t> missing = MissingRanks(job, communicator, seen);
    if (!open.empty()) {
      const NcclMember& first = job.members[open.front()];
      const std::vector<uint32_t> processes = ProcessesOf(job, open);
      list.Add("init_incomplete", completed_count == 0 && !missing.empty() ? "warning" : "error", processes,
               first.started,
               fmt::format(
                   "{} began to create {} and did not complete it; {} did.", list.Who(processes), NameOf(communicator),
                   completed_count == 0 ? "nobody" : fmt::format("{} of {}", completed_count, communicator.rank_count)),
               "look for errors of these ranks and of those that are missing; py-spy or `lockstep hang` shows where "
               "they wait");
    }
    if (missing.empty()) continue;
    if (!open.empty() && completed_count == 0) {
      evidence::NcclLogFinding& finding = list.Add(
          "missing_rank", "error", {}, job.members[open.front()].started,
          fmt::format(
              "{} of {} ranks began to create {}; missing: {}. They never called it, or their logs are missing.",
              seen.size(), communicator.rank_count, NameOf(communicator), RankRanges(missing)),
          "check whether these ranks were started, and what they wait for");
      finding.ranks = missing;
    } else if (completed_count > 0 && incomplete_count++ == 0) {
      incomplete_text = fmt::format("Of {} the logs of {} of {} ranks are here, not those of {}", NameOf(communicator),
                                    seen.size(), communicator.rank_count, RankRanges(missing));
    }
  }
  if (incomplete_count == 0) return;
  if (incomplete_count > 1) incomplete_text += fmt::format("; likewise of {} others", incomplete_count - 1);
  list.Add("logs_incomplete", "info", {}, {}, incomplete_text + ".",
           "give the logs of all nodes; NCCL_DEBUG_FILE=nccl.%h.%p.log writes one per process");
}

void FindSlowInit(ProblemList& list) {
  constexpr int64_t kSlowNs = 30'000'000'000;
  const NcclJob& job = list.job();
  for (const NcclCommunicator& communicator : job.communicators) {
    const NcclMember* slowest = nullptr;
    std::vector<uint32_t> slow;
    for (const uint32_t idx : communicator.members) {
      const NcclMember& member = job.members[idx];
      if (member.init_ns.value_or(0) < kSlowNs) continue;
      slow.push_back(idx);
      if (slowest == nullptr || *member.init_ns > *slowest->init_ns) slowest = &member;
    }
    if (slowest == nullptr) continue;
    const auto phase = std::max_element(slowest->init_phases_ns.begin(), slowest->init_phases_ns.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::vector<uint32_t> processes = ProcessesOf(job, slow);
    std::string text = fmt::format("Creating {} took {} up to {:.1f} s", NameOf(communicator), list.Who(processes),
                                   static_cast<double>(*slowest->init_ns) / 1e9);
    std::string remedy = "see which phase is long; compare with a smaller job";
    if (phase != slowest->init_phases_ns.end()) {
      text += fmt::format(", of it {} {:.1f} s", phase->first, static_cast<double>(phase->second) / 1e9);
      if (phase->first == "bootstrap") remedy = "ranks came late, or names resolve slowly: compare the ranks' start";
    }
    list.Add("slow_init", "warning", processes, slowest->init_timing, text + ".", remedy);
  }
}

void FindOperationMismatch(ProblemList& list) {
  for (const NcclCommunicator& communicator : list.job().communicators) CompareOperations(list, communicator);
}

}  // namespace lockstep::ingest
