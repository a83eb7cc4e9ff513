#include "node/control/client/start_plan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/nanoseconds.h"

namespace lockstep::control {
namespace {

// Kineto's profiler thread looks once a second, and a start must be a second further off than its warm-up then.
constexpr int64_t kTicks = 2 * kSecondNs;
// A poll is late when the process's threads wait for a core or for a loaded daemon's answer.
constexpr int64_t kMargin = kSecondNs;
constexpr int64_t kLeastPeriod = 100 * kMillisecondNs;
constexpr size_t kMostPhases = 2048;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The first poll at or after `moment`.
int64_t NextPoll(const PollPhase& phase, int64_t moment) {
  const int64_t period = std::max(phase.period_ns, kLeastPeriod);
  const int64_t since = moment - phase.last_poll_unix_ns;
  if (since <= 0) return phase.last_poll_unix_ns - (-since) / period * period;
  return phase.last_poll_unix_ns + RoundUp(since, period);
}

Delivery DeliveryAt(const std::vector<PollPhase>& phases, int64_t moment) {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = moment;
  for (const PollPhase& phase : phases) {
    const int64_t poll = NextPoll(phase, moment);
    first = std::min(first, poll);
    last = std::max(last, poll);
  }
  return {moment, last, phases.empty() ? 0 : last - first};
}

std::vector<PollPhase> Thinned(const std::vector<PollPhase>& phases) {
  if (phases.size() <= kMostPhases) return phases;
  std::vector<PollPhase> few;
  for (size_t i = 0; i < kMostPhases; ++i) few.push_back(phases[i * phases.size() / kMostPhases]);
  return few;
}

// The moments to choose from: the middles between neighbouring polls of the next longest period.
std::vector<int64_t> Moments(const std::vector<PollPhase>& phases, int64_t earliest) {
  int64_t longest = kLeastPeriod;
  for (const PollPhase& phase : phases) longest = std::max(longest, phase.period_ns);
  std::vector<int64_t> polls;
  for (const PollPhase& phase : phases) {
    const int64_t first = NextPoll(phase, earliest);
    polls.push_back(first);
    polls.push_back(first + std::max(phase.period_ns, kLeastPeriod));
  }
  std::sort(polls.begin(), polls.end());
  std::vector<int64_t> moments = {earliest};
  for (size_t i = 1; i < polls.size() && polls[i - 1] < earliest + longest; ++i) {
    moments.push_back(polls[i - 1] + (polls[i] - polls[i - 1] + 1) / 2);
  }
  return moments;
}

}  // namespace

std::optional<ClockDifference> MeasureClock(const std::vector<ClockExchange>& exchanges) {
  std::optional<ClockDifference> best;
  for (const ClockExchange& exchange : exchanges) {
    const int64_t trip = exchange.received_unix_ns - exchange.sent_unix_ns;
    if (trip < 0) continue;  // The caller's clock was set back in between.
    if (best && trip / 2 >= best->uncertainty_ns) continue;
    best = ClockDifference{exchange.node_unix_ns - exchange.sent_unix_ns - trip / 2, trip / 2};
  }
  return best;
}

int64_t DefaultWarmupNs(const Process& process) {
  return process.device.empty() || process.device == "cpu" ? kSecondNs : 5 * kSecondNs;
}

LeadNeeds ComputeLead(const std::vector<Process>& processes, std::optional<int64_t> warmup_ns,
                      int64_t slowest_exchange_ns, int64_t clock_error_ns) {
  LeadNeeds needs;
  for (const Process& process : processes) {
    needs.poll_ns = std::max(needs.poll_ns, process.poll_period_ns);
    needs.warmup_ns = std::max(needs.warmup_ns, warmup_ns.value_or(DefaultWarmupNs(process)));
  }
  needs.tick_ns = kTicks;
  needs.reach_ns = 2 * std::max<int64_t>(slowest_exchange_ns, 0) + std::max<int64_t>(clock_error_ns, 0);
  needs.least_ns = RoundUp(needs.poll_ns + needs.warmup_ns + needs.tick_ns + needs.reach_ns, kMillisecondNs);
  needs.lead_ns = needs.least_ns + kMargin;
  return needs;
}

Delivery PlanDelivery(const std::vector<PollPhase>& all, int64_t earliest_unix_ns) {
  const std::vector<PollPhase> phases = Thinned(all);
  Delivery best = DeliveryAt(phases, earliest_unix_ns);
  // The same gap seen from its beginning, or from `earliest` inside it, is worth the same: the later moment, in the
  // middle of the gap, is taken for its distance to the polls on both sides, unless the gap is all there is.
  bool chosen = false;
  for (const int64_t moment : Moments(phases, earliest_unix_ns)) {
    const Delivery now = DeliveryAt(phases, moment);
    if (moment != earliest_unix_ns &&
        (now.spread_ns < best.spread_ns || (!chosen && now.spread_ns == best.spread_ns))) {
      best = now;
      chosen = true;
    }
  }
  if (best.spread_ns == 0) return DeliveryAt(phases, earliest_unix_ns);
  return best;
}

int32_t ChooseRoundup(int64_t spread_ns, int64_t step_ns, int32_t least) {
  constexpr int32_t kMost = 1'000'000;
  const int64_t needed =
      step_ns <= 0 ? kMost : std::max<int64_t>(4 * std::max<int64_t>(spread_ns, 0) / step_ns + 1, least);
  for (int32_t power = 1; power < kMost; power *= 10) {
    for (const int32_t factor : {1, 2, 5}) {
      if (power * factor >= needed) return power * factor;
    }
  }
  return kMost;
}

Delivery PlanDelivery(const std::vector<PollPhase>& phases, int64_t earliest_unix_ns, const StepClock& steps) {
  const Delivery first = PlanDelivery(phases, earliest_unix_ns);
  const int64_t cycle = steps.step_ns * steps.roundup;
  if (cycle <= 0) return first;
  int64_t period = kLeastPeriod;
  for (const PollPhase& phase : phases) period = std::max(period, phase.period_ns);
  Delivery best = first;
  int64_t best_room = std::numeric_limits<int64_t>::min();
  // One cycle is looked through, in steps of the polls' period, and at most a hundred of these.
  const int64_t tries = std::clamp<int64_t>(cycle / period + 1, 1, 100);
  for (int64_t k = 0; k < tries; ++k) {
    const int64_t begin = first.last_fetch_unix_ns - first.spread_ns + k * period;
    const int64_t into = ((begin - steps.boundary_unix_ns) % cycle + cycle) % cycle;
    const int64_t room = std::min(into, cycle - into - first.spread_ns);
    if (room > best_room) {
      best_room = room;
      best = {first.from_unix_ns + k * period, first.last_fetch_unix_ns + k * period, first.spread_ns};
    }
    if (room >= cycle / 4) break;  // Good enough, and sooner.
  }
  return best;
}

}  // namespace lockstep::control
