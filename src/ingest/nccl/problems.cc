#include "ingest/nccl/problems.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "ingest/nccl/nccl_log.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclLogFinding;

std::string JoinSome(const std::vector<std::string>& words, size_t limit) {
  std::string text;
  for (size_t i = 0; i < words.size() && i < limit; ++i) text += (i == 0 ? "" : ", ") + words[i];
  if (words.size() > limit) text += " and " + std::to_string(words.size() - limit) + " more";
  return text;
}

}  // namespace

int SeverityOrder(const std::string& severity) { return severity == "error" ? 0 : severity == "warning" ? 1 : 2; }

std::string RankRanges(const std::vector<int32_t>& ranks) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    std::string part = std::to_string(ranks[i]);
    if (end - i > 1) part += (end - i > 2 ? "-" : ", ") + std::to_string(ranks[end - 1]);
    parts.push_back(std::move(part));
    i = end;
  }
  return JoinSome(parts, 12);
}

NcclLogFinding& ProblemList::Add(const char* kind, const char* severity, const std::vector<uint32_t>& processes,
                                 evidence::NcclPlace place, std::string text, std::string remedy) {
  NcclLogFinding& finding = findings_.emplace_back();
  finding.kind = kind;
  finding.severity = severity;
  std::set<int32_t> ranks;
  for (const uint32_t process : processes) {
    if (const auto rank = job_.processes[process].rank) ranks.insert(*rank);
  }
  finding.ranks.assign(ranks.begin(), ranks.end());
  finding.text = std::move(text);
  finding.remedy = std::move(remedy);
  if (place.seen() && place.file < job_.files.size()) {
    finding.file = job_.files[place.file];
    finding.line = place.line;
  }
  return finding;
}

std::string ProblemList::Who(const std::vector<uint32_t>& processes) const {
  std::set<int32_t> ranks;
  std::set<std::string> names;
  for (const uint32_t idx : processes) {
    const evidence::NcclProcess& process = job_.processes[idx];
    if (process.rank) {
      ranks.insert(*process.rank);
    } else {
      names.insert(process.host + ":" + std::to_string(process.pid));
    }
  }
  std::string text;
  if (!ranks.empty()) {
    text = (ranks.size() == 1 ? "rank " : "ranks ") + RankRanges(std::vector<int32_t>(ranks.begin(), ranks.end()));
  }
  if (!names.empty()) {
    text += (text.empty() ? "" : ", ") + JoinSome(std::vector<std::string>(names.begin(), names.end()), 4);
  }
  return text;
}

std::string ProblemList::Hosts(const std::vector<uint32_t>& processes) const {
  std::set<std::string> hosts;
  for (const uint32_t idx : processes) hosts.insert(job_.processes[idx].host);
  return JoinSome(std::vector<std::string>(hosts.begin(), hosts.end()), 4);
}

std::vector<NcclLogFinding> ProblemList::Take() {
  const auto key = [](const NcclLogFinding& finding) {
    return std::tuple(SeverityOrder(finding.severity), !finding.first,
                      finding.time_unix_ns == 0 ? INT64_MAX : finding.time_unix_ns);
  };
  std::stable_sort(findings_.begin(), findings_.end(), [&](const NcclLogFinding& a, const NcclLogFinding& b) {
    return std::tuple_cat(key(a), std::tie(a.kind, a.file, a.line, a.text)) <
           std::tuple_cat(key(b), std::tie(b.kind, b.file, b.line, b.text));
  });
  return std::move(findings_);
}

std::vector<NcclLogFinding> FindNcclProblems(const evidence::NcclJob& job) {
  constexpr std::array kRules = {
      FindErrors,          FindVersionMismatch,  FindNetworkProblems,   FindEnvironmentMismatch,
      FindIncompleteInit,  FindSlowInit,         FindOperationMismatch, FindGpuDirectProblems,
      FindChannelMismatch, FindDuplicateDevices, FindSlowTransports};
  ProblemList list(job);
  for (const auto rule : kRules) rule(list);
  return list.Take();
}

}  // namespace lockstep::ingest
