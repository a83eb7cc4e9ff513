#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "node/control/api/process.h"

namespace lockstep::control {

/// A node's wall clock against the caller's: measured over a few exchanges, the quickest of which counts.
struct ClockDifference {
  int64_t offset_ns = 0;       ///< Node minus caller.
  int64_t uncertainty_ns = 0;  ///< Half the exchange's round trip; offset is known to within this.

  /// What is corrected for: a difference that the measurement cannot tell from zero is none. Nodes that keep time by
  /// NTP are nearer to each other than a slow connection can see.
  int64_t Correction() const { return offset_ns > uncertainty_ns || -offset_ns > uncertainty_ns ? offset_ns : 0; }
};

/// One exchange with a node: the caller's clock before and after, the node's in between.
struct ClockExchange {
  int64_t sent_unix_ns = 0;
  int64_t node_unix_ns = 0;
  int64_t received_unix_ns = 0;
};
/// nullopt without an exchange.
std::optional<ClockDifference> MeasureClock(const std::vector<ClockExchange>& exchanges);

/// Seconds that a process's profiler warms up before its window when nothing else was asked: as the daemon does it.
int64_t DefaultWarmupNs(const Process& process);

/// How long before a common start each process must be asked at the latest. Kineto fetches once a poll period, and its
/// profiler, which ticks once a second, refuses a start that is nearer than its warm-up then: silently.
struct LeadNeeds {
  int64_t poll_ns = 0;    ///< The longest poll period.
  int64_t warmup_ns = 0;  ///< The longest warm-up.
  int64_t tick_ns = 0;    ///< Kineto's ticks: 2 s.
  int64_t reach_ns = 0;   ///< For asking all nodes: twice the slowest round trip, and how far their clocks are apart.
  int64_t least_ns = 0;   ///< The sum: a shorter lead loses ranks.
  int64_t lead_ns = 0;    ///< With a margin for a late poll; whole milliseconds.
};
/// Processes of all nodes; `slowest_exchange_ns` is the longest round trip to a node, `clock_error_ns` how wrong a
/// node's clock may be after correction.
LeadNeeds ComputeLead(const std::vector<Process>& processes, std::optional<int64_t> warmup_ns,
                      int64_t slowest_exchange_ns, int64_t clock_error_ns);

/// When a process polls, by the caller's clock.
struct PollPhase {
  int64_t last_poll_unix_ns = 0;
  int64_t period_ns = 5'000'000'000;
};

/// A moment from which requests are handed out, and the time after it within which all processes fetch theirs.
struct Delivery {
  int64_t from_unix_ns = 0;
  int64_t last_fetch_unix_ns = 0;  ///< As the phases predict.
  int64_t spread_ns = 0;           ///< Between the first fetch and the last.
};

/// The moment not before `earliest_unix_ns` after which all processes poll within the shortest time: inside the largest
/// gap of all their polls, in its middle, so that polls may come early or late. With equal periods that is within one
/// period. Cost: O(n^2) for n processes up to 2048; beyond, n is thinned out.
Delivery PlanDelivery(const std::vector<PollPhase>& phases, int64_t earliest_unix_ns);

/// What a first attempt showed of the job's steps.
struct StepClock {
  int64_t boundary_unix_ns = 0;  ///< A step began here whose number is a multiple of `roundup`.
  int64_t step_ns = 0;
  int32_t roundup = 1;
};

/// The round-up with which ranks that fetch within `spread_ns` of each other most likely reach the same multiple: at
/// least four such spreads long, one, two or five times a power of ten, at least `least`, at most a million.
int32_t ChooseRoundup(int64_t spread_ns, int64_t step_ns, int32_t least);

/// The same as PlanDelivery, but so that no multiple of steps.roundup is reached while processes fetch, as far as the
/// steps go on as they did: the first of the next moments that keeps both ends furthest from a multiple.
Delivery PlanDelivery(const std::vector<PollPhase>& phases, int64_t earliest_unix_ns, const StepClock& steps);

}  // namespace lockstep::control
