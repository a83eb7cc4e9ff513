#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/comparison/compare.h"
#include "analysis/finding_context.h"

namespace lockstep::comparison {
namespace {

std::string UnsignedTime(double ns) { return analysis::TimeText(std::llround(std::abs(ns))); }

std::string UnsignedPercent(double ratio) {
  const double percent = std::abs(ratio) * 100;
  return percent < 0.05 ? "0" : percent < 10 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

std::string Signed(double ratio) {
  const std::string text = UnsignedPercent(ratio);
  return (text == "0" ? "" : ratio < 0 ? "-" : "+") + text;
}

std::string Fewest(size_t a, size_t b, std::string_view unit) {
  return a == b ? fmt::format("{} {}{} each", a, unit, a == 1 ? "" : "s") : fmt::format("{} and {} {}s", a, b, unit);
}

/// One rank whose own time changed far more than the others': they wait for it, or no longer do.
void AddRankReason(const Comparison& comparison, std::vector<Reason>* reasons) {
  if (comparison.ranks.size() < 2) return;
  Series own;
  for (const RankDelta& row : comparison.ranks) own.push_back(row.own.shift ? row.own.shift->estimate : 0);
  const size_t worst = static_cast<size_t>(
      std::max_element(own.begin(), own.end(), [](double x, double y) { return std::abs(x) < std::abs(y); }) -
      own.begin());
  const double total = comparison.step.shift->estimate;
  Series others = own;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(worst));
  const double usual = Median(others);
  const Delta& delta = comparison.ranks[worst].own;
  if (!delta.shift || !delta.shift->differs() || own[worst] * total <= 0) return;
  if (std::abs(own[worst] - usual) < 0.4 * std::abs(total) || std::abs(own[worst]) < 2 * std::abs(usual)) return;
  const char* change = own[worst] < 0 ? "fell" : "grew";
  const char* effect = own[worst] < 0 ? "wait for it less" : "wait for it";
  reasons->insert(reasons->begin(), {fmt::format("rank {}'s own time {} by {} (the others': {}{}), and they {}",
                                                 comparison.ranks[worst].rank, change, UnsignedTime(own[worst]),
                                                 usual < 0 ? "-" : "+", UnsignedTime(usual), effect),
                                     own[worst]});
}

void AddNotes(const Comparison& comparison, std::vector<std::string>* notes) {
  const RunProfile& a = comparison.a;
  const RunProfile& b = comparison.b;
  if (!a.device.empty() && !b.device.empty() && a.device != b.device) {
    notes->push_back(fmt::format("different devices: A on {}, B on {}", a.device, b.device));
  }
  if (a.world_size != b.world_size || a.rank_count != b.rank_count) {
    notes->push_back(fmt::format("different jobs: A has traces of {} of {} ranks, B of {} of {}; figures are per rank",
                                 a.rank_count, a.world_size, b.rank_count, b.world_size));
  }
  if (a.basis != b.basis) notes->push_back("one run's time is split by device events, the other's by CPU events");
  if (!a.has_steps || !b.has_steps) {
    notes->push_back("no steps are marked in " +
                     std::string(a.has_steps   ? "B"
                                 : b.has_steps ? "A"
                                               : "either run") +
                     ": the whole window counts as one step (see --step-name)");
  }
  if (a.skipped_steps + b.skipped_steps > 0) {
    notes->push_back(fmt::format("warm-up left out: {} step(s) of A, {} of B", a.skipped_steps, b.skipped_steps));
  }
  if (a.partial || b.partial) notes->push_back("ranks or parts of files are missing; see lockstep analyze");
  notes->push_back(kNoiseNote);
}

}  // namespace

std::vector<Reason> PartReasons(const Delta& step, const std::vector<std::pair<std::string, const Delta*>>& parts,
                                std::string_view among) {
  std::vector<Reason> reasons;
  const double total = step.shift->estimate;
  for (const auto& [label, part] : parts) {
    if (!part->shift || !part->shift->differs()) continue;
    const double delta = part->shift->estimate;
    if (delta * total <= 0 || std::abs(delta) < 0.1 * std::abs(total)) continue;
    reasons.push_back(
        {fmt::format("{} {} by {}{}", label, delta < 0 ? "fell" : "grew", UnsignedTime(delta), among), delta});
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const Reason& x, const Reason& y) { return std::abs(x.delta_ns) > std::abs(y.delta_ns); });
  return reasons;
}

std::string StepSentence(const Delta& step, size_t count_a, size_t count_b, std::string_view unit,
                         const CompareOptions& options) {
  if (!step.shift || !step.ratio()) {
    return fmt::format("cannot tell: no step with a known length in {}", count_a == 0 ? "A" : "B");
  }
  const double ratio = *step.ratio();
  const int confidence = static_cast<int>(std::lround(options.confidence * 1000));
  const std::string level =
      confidence % 10 == 0 ? fmt::format("{}", confidence / 10) : fmt::format("{:.1f}", confidence / 10.0);
  if (!step.shift->low) {
    return fmt::format("cannot tell: {}, too few{} for {} % confidence; B's median step is {} % {} ({} against {})",
                       Fewest(count_a, count_b, unit),
                       std::min(count_a, count_b) < 8 ? "" : " as much as they depend on each other", level,
                       UnsignedPercent(step.b / step.a - 1), step.b < step.a ? "shorter" : "longer",
                       UnsignedTime(step.b), UnsignedTime(step.a));
  }
  const double low = *step.shift->low / step.a;
  const double high = *step.shift->high / step.a;
  if (step.change == Change::kNone) {
    return step.shift->differs()
               ? fmt::format("no difference that counts: {} % of the step ({} % interval {} to {}), below {} %",
                             Signed(ratio), level, Signed(low), Signed(high), UnsignedPercent(options.minimum_effect))
               : fmt::format("no difference beyond the noise: {} % ({} % interval {} to {}; {})", Signed(ratio), level,
                             Signed(low), Signed(high), Fewest(count_a, count_b, unit));
  }
  const bool faster = step.change == Change::kFaster;
  return fmt::format("B is {} % {} ({} % interval {} to {}): {} a step against {}", UnsignedPercent(ratio),
                     faster ? "faster" : "slower", level, UnsignedPercent(faster ? high : low),
                     UnsignedPercent(faster ? low : high), UnsignedTime(step.b), UnsignedTime(step.a));
}

void Judge(Comparison* comparison) {
  Verdict& verdict = comparison->verdict;
  AddNotes(*comparison, &verdict.notes);
  verdict.change = comparison->step.change;
  verdict.sentence = StepSentence(comparison->step, comparison->a.steps.size(), comparison->b.steps.size(), "step",
                                  comparison->options);
  if (verdict.change != Change::kFaster && verdict.change != Change::kSlower) return;
  std::vector<std::pair<std::string, const Delta*>> parts;
  for (size_t p = 1; p < kPartCount; ++p) {
    parts.emplace_back(PartLabel(static_cast<Part>(p)), &comparison->parts[p]);
  }
  verdict.reasons = PartReasons(comparison->step, parts, comparison->a.rank_count > 1 ? " (mean over ranks)" : "");
  AddRankReason(*comparison, &verdict.reasons);
  if (!verdict.reasons.empty()) verdict.sentence += ", because " + verdict.reasons.front().text;
}

}  // namespace lockstep::comparison
