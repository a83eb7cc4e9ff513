#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "present/report/format.h"
#include "present/report/text_page.h"
#include "programs/doctor/job.h"

namespace lockstep::doctor {
namespace {

// A rank that uses this much more than the median stands out: a little more is rank 0's part, which logs and saves.
constexpr double kMoreMemoryRatio = 1.5;
constexpr double kMoreMemoryBytes = 1024.0 * 1024 * 1024;
constexpr double kBusierRatio = 2;
constexpr double kMoreCores = 1;

/// One thing that ranks use.
struct Use {
  const char* name;  ///< Of the figures: "memory".
  const char* what;  ///< In sentences.
  double most_ratio;
  double least_more;  ///< And by so much at least.
  const char* unit;
  std::string (*text)(double value);
  std::function<std::optional<double>(const RankLoad&)> of;
  const char* advice;
};

struct Spread {
  size_t count = 0;
  double least = 0;
  double median = 0;
  double most = 0;
  std::vector<int32_t> high;  ///< Ranks far above the median.
};

Spread SpreadOf(const std::vector<RankLoad>& loads, const Use& use) {
  Spread spread;
  std::vector<double> values;
  for (const RankLoad& load : loads) {
    if (const auto value = use.of(load)) values.push_back(*value);
  }
  spread.count = values.size();
  if (values.empty()) return spread;
  std::ranges::sort(values);
  spread.least = values.front();
  spread.median = values[(values.size() - 1) / 2];  // Of two the lower: else a pair would always be balanced.
  spread.most = values.back();
  for (const RankLoad& load : loads) {
    const auto value = use.of(load);
    if (value && *value > use.most_ratio * spread.median && *value > spread.median + use.least_more) {
      spread.high.push_back(load.rank);
    }
  }
  return spread;
}

std::string BytesText(double bytes) { return report::FormatBytes(static_cast<int64_t>(bytes)); }
std::string CoresText(double cores) { return fmt::format("{:.1f} cores", cores); }

const std::vector<Use>& Uses() {
  static const std::vector<Use> uses = {
      {"memory", "memory", kMoreMemoryRatio, kMoreMemoryBytes, "bytes", BytesText,
       [](const RankLoad& load) -> std::optional<double> {
         if (!load.resident_bytes) return std::nullopt;
         return static_cast<double>(*load.resident_bytes);
       },
       "find out what only that rank holds: a data set that is loaded once per node, a checkpoint being assembled"},
      {"processor", "processor time", kBusierRatio, kMoreCores, "cores", CoresText,
       [](const RankLoad& load) { return load.busy_cores; },
       "find out what only that rank computes ('lockstep capture', or stacks by 'lockstep hang --all'); use the same "
       "OMP_NUM_THREADS and number of loader workers on all ranks"},
  };
  return uses;
}

/// Whether the verdict is that some rank stands still, and the same rank has been seen to go on. Calls that do not
/// match are wrong all the same.
bool HasMoved(const JobFacts& facts) {
  const hang::Verdict& verdict = facts.verdict->verdict;
  switch (verdict.kind) {
    case hang::VerdictKind::kSkippedCollective:
    case hang::VerdictKind::kExtraCollective:
    case hang::VerdictKind::kStuckOutsideCollective:
    case hang::VerdictKind::kDeviceStalled:
    case hang::VerdictKind::kPeerUnreachable:
    case hang::VerdictKind::kDeadlock:
    case hang::VerdictKind::kUnmatchedP2p:
      return !verdict.culprit_ranks.empty() && std::ranges::includes(facts.moved_ranks, verdict.culprit_ranks);
    default: return false;
  }
}

}  // namespace

void CheckProgress(const JobFacts& facts, std::vector<Check>* checks) {
  if (!facts.verdict) {
    for (const char* id : {"in_step", "stragglers"}) {
      checks->push_back(Line(id, "", CheckStatus::kSkipped, "not measured: " + facts.no_verdict,
                             "'lockstep hang --job ID' says it for a running job"));
    }
    return;
  }
  const hang::Verdict& verdict = facts.verdict->verdict;
  const bool is_slow = verdict.kind == hang::VerdictKind::kStraggler;
  const bool has_moved = HasMoved(facts);
  const bool is_fine = verdict.kind == hang::VerdictKind::kHealthy || has_moved;
  const bool is_known = verdict.kind != hang::VerdictKind::kUndecidable;
  Check in_step = Line("in_step", "", CheckStatus::kOk, "every rank is at the same collective, or on its way there");
  if (has_moved) {
    in_step.finding = "every rank makes progress: the ranks that seemed to stand still have issued more a moment later";
  } else if (!is_known) {
    in_step.status = CheckStatus::kSkipped;
    in_step.finding = "cannot be told: " + verdict.explanation;
  } else if (!is_slow && !is_fine) {
    in_step.status = CheckStatus::kProblem;
    in_step.finding = fmt::format("{}: {}", hang::VerdictKindName(verdict.kind), verdict.explanation);
    in_step.ranks = verdict.culprit_ranks;
    in_step.advice = verdict.advice.empty() ? "lockstep hang --job ID" : verdict.advice.front();
  }
  checks->push_back(std::move(in_step));
  Check slow = Line("stragglers", "", CheckStatus::kOk, "no rank makes the others wait");
  std::vector<double> lateness_ns;
  for (const hang::RankState& rank : facts.verdict->ranks) {
    if (rank.mean_lateness_ns) lateness_ns.push_back(static_cast<double>(*rank.mean_lateness_ns));
  }
  // The ranks are late in turn: each waits for the one that had less of a processor or link this time, so no single
  // rank is the cause.
  const bool are_most_late = 2 * verdict.culprit_ranks.size() > facts.verdict->ranks.size();
  if (is_slow && are_most_late) {
    slow.finding = "most ranks are late in turn, no single one: " + verdict.explanation;
  } else if (is_slow) {
    slow.status = CheckStatus::kWarning;
    slow.finding = verdict.explanation;
    slow.ranks = verdict.culprit_ranks;
    slow.advice = verdict.advice.empty() ? "lockstep capture --job ID, then lockstep analyze" : verdict.advice.front();
  } else if (!is_fine || lateness_ns.empty()) {
    slow.status = CheckStatus::kSkipped;
    slow.finding = is_fine ? "not measured: no rank's collectives were recorded" : "not measured";
  }
  if (!lateness_ns.empty()) {
    slow.figures = {{"most_late", *std::ranges::max_element(lateness_ns), "ns"}};
  }
  checks->push_back(std::move(slow));
}

void CheckBalance(const JobFacts& facts, std::vector<Check>* checks) {
  std::vector<std::string> texts;
  std::vector<CheckFigure> figures;
  bool is_any_high = false;
  for (const Use& use : Uses()) {
    const Spread spread = SpreadOf(facts.loads, use);
    if (spread.count < 2) continue;
    const std::vector<CheckFigure> own = {{fmt::format("least_{}", use.name), spread.least, use.unit},
                                          {fmt::format("median_{}", use.name), spread.median, use.unit},
                                          {fmt::format("most_{}", use.name), spread.most, use.unit}};
    figures.insert(figures.end(), own.begin(), own.end());
    texts.push_back(fmt::format("{} {} to {}", use.what, use.text(spread.least), use.text(spread.most)));
    if (spread.high.empty()) continue;
    is_any_high = true;
    Check check = Line("balanced", use.name, CheckStatus::kWarning,
                       fmt::format("{} {} far more {} than the others: up to {}, the median {}",
                                   report::RankList(spread.high, kRanksShown), spread.high.size() == 1 ? "uses" : "use",
                                   use.what, use.text(spread.most), use.text(spread.median)),
                       use.advice);
    check.finding = (spread.high.size() == 1 ? "rank " : "ranks ") + check.finding;
    check.figures = own;
    check.ranks = spread.high;
    checks->push_back(std::move(check));
  }
  if (is_any_high) return;
  if (texts.empty()) {
    checks->push_back(Line("balanced", "", CheckStatus::kSkipped,
                           facts.loads.empty() && !facts.no_verdict.empty()
                               ? "not measured: " + facts.no_verdict
                               : "not measured: fewer than two ranks have a state that can be read"));
    return;
  }
  Check check = Line("balanced", "", CheckStatus::kOk, fmt::format("a rank's {}", fmt::join(texts, ", ")));
  check.figures = std::move(figures);
  checks->push_back(std::move(check));
}

}  // namespace lockstep::doctor
