#include "analysis/wait_states/chain_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "analysis/finding_context.h"
#include "analysis/shortened_name.h"

namespace lockstep::analysis {
namespace {

/// What it took, and what the peers' took where they did it at all.
std::string TookText(const RootCauseRow& cause) {
  if (cause.peers_ns <= 0) return fmt::format("took {}, the peers' nothing", TimeText(cause.own_ns));
  const double times = static_cast<double>(cause.own_ns) / static_cast<double>(cause.peers_ns);
  return fmt::format("took {:.1f} x its peers' ({} against {})", times, TimeText(cause.own_ns),
                     TimeText(cause.peers_ns));
}

/// Behind "rank 3's" or "whose".
std::string PossessionText(const RootCauseRow& cause) {
  const std::string name = ShortenedName(cause.name);
  switch (cause.cause) {
    case RootCause::kKernel: return fmt::format("kernel '{}' {}", name, TookText(cause));
    case RootCause::kCopy: return fmt::format("copy '{}' {}", name, TookText(cause));
    case RootCause::kLaunchDelay: return fmt::format("launch of '{}' {}", name, TookText(cause));
    case RootCause::kHost: return fmt::format("CPU was in '{}', which {}", name, TookText(cause));
    case RootCause::kDataLoading: return fmt::format("data loading ('{}') {}", name, TookText(cause));
    case RootCause::kGarbageCollection: return fmt::format("garbage collection ('{}') {}", name, TookText(cause));
    case RootCause::kAllocator: return fmt::format("allocator ('{}') {}", name, TookText(cause));
    case RootCause::kCheckpoint: return fmt::format("checkpoint ('{}') {}", name, TookText(cause));
    case RootCause::kNothingRecorded:
      return fmt::format("CPU was in code that is not recorded: it {}", TookText(cause));
    case RootCause::kSlowLink: break;
  }
  return fmt::format("transfer in group {} {}", name, TookText(cause));
}

}  // namespace

std::string CauseText(const model::Run& run, const RootCauseRow& cause) {
  if (cause.rank_index)
    return fmt::format("rank {}'s {}", run.ranks[*cause.rank_index].rank.value, PossessionText(cause));
  return fmt::format("the {}", PossessionText(cause));
}

std::string ChainText(const model::Run& run, const Collectives& collectives, const RootCauseRow& cause,
                      const WaitChain& chain) {
  std::string text;
  for (const WaitHop& hop : chain.hops) {
    const CollectiveInstance& instance = collectives.instances[hop.instance];
    text +=
        text.empty() ? fmt::format("rank {} waited", run.ranks[hop.victim_rank_index].rank.value) : ", which waited";
    text += fmt::format(" {} in {} {} of group {} for rank {}", TimeText(hop.wait_ns), instance.name, instance.sequence,
                        instance.group, run.ranks[hop.late_rank_index].rank.value);
  }
  if (cause.cause == RootCause::kSlowLink) return text + ", held up by a slow link: the " + PossessionText(cause);
  return text + ", whose " + PossessionText(cause);
}

std::string PatternText(const RootCauseRow& cause) {
  switch (cause.pattern) {
    case WaitPattern::kChronic: return fmt::format("chronic: in {} of {} steps", cause.steps.size(), cause.step_count);
    case WaitPattern::kPeriodic: return fmt::format("periodic: every {} steps", cause.period_steps.value_or(0));
    case WaitPattern::kOneOff: return fmt::format("once, in step {}", cause.steps.empty() ? 0 : cause.steps.front());
    case WaitPattern::kIrregular: break;
  }
  if (cause.step_count == 0) return "the trace has no steps";
  return fmt::format("irregular: in {} of {} steps", cause.steps.size(), cause.step_count);
}

std::string WaitVerdictText(const model::Run& run, const WaitStates& states) {
  constexpr size_t kMaxTold = 3;
  std::vector<std::string> sentences;
  for (size_t i = 0; i < states.culprits.size() && i < kMaxTold; ++i) {
    const RootCauseRow& cause = states.causes[states.culprits[i].causes.front()];
    sentences.push_back(fmt::format("Behind {} of all waiting: {}; {}.", PercentText(cause.wait_ratio),
                                    CauseText(run, cause), PatternText(cause)));
  }
  if (states.culprits.size() > kMaxTold) {
    sentences.push_back(fmt::format("{} more are named.", states.culprits.size() - kMaxTold));
  } else if (states.culprits.empty() && states.causes.empty()) {
    sentences.emplace_back(
        "Nobody is to blame: no rank differs from its peers by more than noise and the clocks' uncertainty.");
  } else if (states.culprits.empty()) {
    sentences.push_back(fmt::format(
        "No rank stands out: the largest cause is behind {} of all waiting, which may be chance among ranks that are "
        "alike.",
        PercentText(states.causes.front().wait_ratio)));
  }
  if (states.late_start.IsWorthAWord()) {
    sentences.push_back(fmt::format(
        "{} of all waiting goes back to before the recording: ranks came up to {} apart to what they called first.",
        PercentText(states.late_start.wait_ratio), TimeText(states.late_start.spread_ns)));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace lockstep::analysis
