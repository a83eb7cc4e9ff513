#include "ingest/nccl/ras_problems.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ingest/nccl/problems.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclLogFinding;
using evidence::RasCommunicator;
using evidence::RasReport;

/// Stands for all ranks that the text does not list.
constexpr int32_t kUnlisted = -1;

/// Operation -> rank -> launched.
using Counts = std::map<std::string, std::map<int32_t, int64_t>>;

Counts CountsOf(const RasCommunicator& communicator) {
  Counts counts;
  for (const evidence::RasRank& rank : communicator.ranks) {
    for (const auto& [operation, count] : rank.operation_counts) counts[operation][rank.rank] = count;
  }
  for (const auto& [rank_count, count] : communicator.unlisted_counts) {
    int64_t& unlisted = counts["operations"].try_emplace(kUnlisted, count).first->second;
    unlisted = std::max(unlisted, count);
  }
  return counts;
}

NcclLogFinding Finding(const RasReport& report, const char* kind, const char* severity, std::string text) {
  NcclLogFinding finding;
  finding.kind = kind;
  finding.severity = severity;
  finding.file = report.source;
  finding.time_unix_ns = report.collected_unix_ns;
  finding.text = std::move(text);
  finding.remedy =
      "ask it again a minute later: counts that differ and do not change mean a hang; counts that change do not";
  return finding;
}

/// The operation of which some ranks launched fewer; ranks and numbers as a sentence.
void FindStandstill(const RasReport& report, const RasCommunicator& communicator, const Counts& counts,
                    std::vector<NcclLogFinding>& findings) {
  for (const auto& [operation, by_rank] : counts) {
    int64_t most = INT64_MIN, least = INT64_MAX;
    for (const auto& [rank, count] : by_rank) {
      most = std::max(most, count);
      least = std::min(least, count);
    }
    if (by_rank.size() < 2 || most == least) continue;
    std::vector<int32_t> late;
    for (const auto& [rank, count] : by_rank) {
      if (count < most && rank != kUnlisted) late.push_back(rank);
    }
    if (late.empty()) continue;
    const std::string text = "Communicator " + communicator.hash + " did not change between two answers: its ranks " +
                             RankRanges(late) + " launched fewer of " + operation + " (down to " +
                             std::to_string(least) + ") than others (" + std::to_string(most) + ").";
    NcclLogFinding& finding = findings.emplace_back(Finding(report, "ras_stuck", "error", text));
    finding.ranks = std::move(late);
    finding.remedy = "find out what these ranks do instead: `lockstep hang`";
  }
}

}  // namespace

std::vector<NcclLogFinding> FindRasProblems(const std::vector<RasReport>& reports) {
  std::vector<NcclLogFinding> findings;
  std::map<std::string, Counts> before;
  for (const RasReport& report : reports) {
    for (const std::string& text : report.errors) {
      findings.push_back(Finding(report, "ras_error", "error", "RAS says: " + text));
    }
    for (const std::string& text : report.warnings) {
      findings.push_back(Finding(report, "ras_warning", "warning", "RAS says: " + text));
    }
    for (const RasCommunicator& communicator : report.communicators) {
      Counts counts = CountsOf(communicator);
      if (counts.empty()) continue;
      const auto known = before.find(communicator.hash);
      if (known != before.end() && known->second == counts) FindStandstill(report, communicator, counts, findings);
      before[communicator.hash] = std::move(counts);
    }
  }
  // Asked twice, or through two nodes, it says everything twice.
  std::set<std::pair<std::string, std::string>> told;
  std::erase_if(findings,
                [&](const NcclLogFinding& finding) { return !told.emplace(finding.kind, finding.text).second; });
  return findings;
}

}  // namespace lockstep::ingest
