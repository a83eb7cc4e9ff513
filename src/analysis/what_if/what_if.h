#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::analysis {

/// One change of the job, and the step time that the simulation gives with it.
struct Lever {
  std::string id;              ///< "no_stragglers", "rank_at_median:3", ... (docs/metrics.md#what-if).
  std::string title;           ///< For people: "rank 3 as fast as its peers".
  std::vector<int32_t> ranks;  ///< Global ranks that the change is about; empty = all.
  int64_t step_ns = 0;         ///< Mean simulated step time with the change.
  int64_t gain_ns = 0;         ///< simulated_step_ns - step_ns; below 0 where the change makes it longer.
  double gain_ratio = 0;       ///< gain_ns / simulated_step_ns.
};

/// How much one part of the job alone slows the ideal job down.
struct StudyShare {
  std::string name;  ///< Stage, data-parallel rank, or operation.
  double slowdown = 1;
};

/// The published study's figures (OSDI 2025, "Understanding Stragglers in Large Model Training Using What-if
/// Analysis"). Source: docs/metrics.md#what-if-study. Step times are means over the steps.
struct StragglerStudy {
  double slowdown = 1;         ///< S: without launch delays over ideal.
  double launch_slowdown = 1;  ///< Observed over without launch delays.
  int64_t observed_ns = 0;
  int64_t no_delay_ns = 0;               ///< T_orig.
  int64_t ideal_ns = 0;                  ///< T_ideal.
  std::vector<StudyShare> by_stage;      ///< By stage.
  std::vector<StudyShare> by_data_rank;  ///< By data-parallel rank.
  std::vector<StudyShare> by_operation;  ///< By name.
  /// What of T_orig - T_ideal goes away when the slowest 3 % of the workers are made ideal (M_W), and when the last
  /// stage is (M_S). Absent where there is nothing to win.
  std::optional<double> slow_workers_ratio;
  std::optional<double> last_stage_ratio;
  int64_t slow_workers_fixed_ns = 0;
  int64_t last_stage_fixed_ns = 0;
  std::vector<int32_t> slow_workers;  ///< Ranks of those 3 %, rounded up, slowest first.
  int32_t last_stage = 0;
};

/// One step, observed and simulated.
struct WhatIfStep {
  int64_t step = 0;
  int64_t observed_ns = 0;               ///< Last end - first start.
  int64_t simulated_ns = 0;              ///< With nothing changed.
  std::optional<int64_t> ideal_ns = {};  ///< The study's ideal world; operation traces only.
};

/// What each change would gain, by simulating the job's graph with other durations. Times of steps are means over them.
struct WhatIf {
  static constexpr std::string_view kPass = "what_if";

  int64_t observed_step_ns = 0;
  int64_t simulated_step_ns = 0;  ///< By simulation with nothing changed: what gains are counted from.
  double error_ratio = 0;         ///< Mean over the steps of |simulated - observed| / observed.
  /// Simulated with the delays put back that no dependency explains. Equal to what was observed but for clock errors:
  /// proof that the graph is whole. Absent where the simulation has them in anyway.
  std::optional<int64_t> replayed_step_ns = {};
  std::vector<WhatIfStep> steps;             ///< By step.
  std::vector<Lever> levers;                 ///< Largest gain first, then id.
  std::optional<StragglerStudy> study = {};  ///< Operation traces only.
};

/// Fills gains from step times and puts levers in order.
void RankLevers(WhatIf* what_if);

}  // namespace lockstep::analysis
