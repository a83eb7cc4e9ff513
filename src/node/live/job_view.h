#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/live/node_reading.h"

namespace lockstep::live {

/// The state of a rank, worst last; a later one has priority over an earlier one.
enum class RankState : uint8_t {
  kSilent,   ///< It runs and records no steps.
  kRuns,     ///< Steps end.
  kWaits,    ///< Steps end, and it spends them waiting for another rank.
  kSlow,     ///< Steps end, and the others wait for it.
  kStuck,    ///< No step has ended for ten times the job's median, and five seconds at least.
  kUnheard,  ///< Its node does not answer; all figures are from when it last did.
};
const char* RankStateName(RankState state);  ///< "silent", "runs", "waits", "slow", "stuck", "unheard".

/// One GPU, with rates.
struct GpuView {
  GpuReading reading;
  std::optional<double> power_watts;
  std::optional<double> thermal_throttle_ratio;  ///< Share of time in which its temperature slowed it down.
};

/// One port of a node's network, with rates.
struct PortView {
  std::string device;
  std::string port;  ///< Empty: a network interface.
  PortReading reading;
  std::optional<double> received_per_s;  ///< Bytes, as the next.
  std::optional<double> transmitted_per_s;
  std::optional<double> waits_per_s;  ///< Ticks in which it had data and could not send.
  std::optional<double> errors_per_s;
};

/// One rank. Times and shares are of the steps that ended within the last window (View::window_ns), or of the last ones
/// that did; what was not measured is absent.
struct RankView {
  std::string rank;
  std::string host;
  std::string pid;
  std::string local_rank;
  std::string user;
  std::string device;
  size_t node_idx = 0;
  RankState state = RankState::kSilent;
  std::optional<uint64_t> step_count;
  std::optional<uint64_t> behind_steps;  ///< Than the rank that has ended most.
  bool is_since_start = false;           ///< No step has ended while we looked: means since the rank began.
  std::optional<double> steps_per_s;
  std::optional<int64_t> step_ns;
  std::optional<int64_t> own_ns;  ///< The step without exposed communication: what the rank itself takes.
  std::optional<int64_t> progress_age_ns;
  std::optional<int64_t> open_phase_ns;  ///< How long it has been in reading.open_phase.
  std::array<std::optional<double>, model::kStages.size()> phase_ratio;
  std::optional<double> compute_ratio;  ///< forward, backward, optimizer
  std::optional<double> communication_ratio;
  std::optional<double> input_ratio;  ///< input, h2d
  std::optional<double> samples_per_s;
  std::optional<double> tokens_per_s;
  std::optional<double> model_flops_per_s;
  std::optional<double> mfu_ratio;
  std::optional<std::string> waits_for_rank;
  std::optional<double> bus_bytes_per_s;  ///< Of collectives, while they run.
  std::optional<int64_t> oldest_collective_ns;
  std::optional<double> cpu_cores;      ///< CPU time of its process by time.
  std::optional<double> io_read_per_s;  ///< Bytes from storage.
  std::optional<double> io_written_per_s;
  std::optional<GpuView> gpu;
  RankReading reading;                  ///< As its node said last.
  std::vector<int64_t> step_history;    ///< Means of looks in which steps ended, oldest first, at most kHistory.
  std::optional<double> dropped_per_s;  ///< Records that were dropped.
  std::optional<double> log_errors_per_s;
};
constexpr size_t kHistory = 120;

/// "has been in input", which " for 7 s" may follow; empty: not known, or only for a moment.
std::string PhaseWords(const RankView& rank);

/// Which processes a job is: one that no launcher named is called after its process, "pid-N".
void SelectJob(const std::string& job_id, std::string* job, std::vector<int32_t>* pids);

/// Requests of one model on one node.
struct ServingView {
  std::string host;
  ServingReading reading;
  std::optional<double> requests_per_s;
  std::optional<double> failure_ratio;  ///< Of requests that ended within the window.
  std::optional<double> tokens_per_s;
  std::optional<double> preemptions_per_s;
};

enum class AlarmSeverity : uint8_t { kInfo, kWarning, kCritical };
const char* AlarmSeverityName(AlarmSeverity severity);  ///< "info", "warning", "critical"

/// What is wrong now, by the thresholds of the Prometheus rules, without their waiting time.
struct Alarm {
  std::string kind;  ///< "no_progress", "rank_gone", ...: docs/top.md
  AlarmSeverity severity = AlarmSeverity::kInfo;
  std::string text;
  std::optional<std::string> rank;
};

/// What the stages of a job's newest steps say, as `lockstep stages` does.
struct StageVerdict {
  std::string answer = {};           ///< "straggler", ...: frontier::AnswerName
  std::optional<int32_t> rank = {};  ///< Of a straggler.
  std::string stage = {};            ///< Empty: none stands out.
  std::string sentence = {};
};

struct JobView {
  std::string job_id;
  std::optional<uint64_t> world_size;
  std::vector<RankView> ranks;          ///< By number.
  std::vector<uint64_t> missing_ranks;  ///< Below world_size, and on no node that was asked; at most 4096.
  std::optional<double> steps_per_s;    ///< Median of its ranks, as the two below.
  std::optional<int64_t> step_ns;
  std::optional<int64_t> own_ns;
  std::optional<int64_t> step_median_ns;  ///< As its nodes say, of the last 100 steps; the largest.
  std::optional<double> compute_ratio;    ///< Of all ranks' step time together, as the two below.
  std::optional<double> communication_ratio;
  std::optional<double> input_ratio;
  std::optional<double> mfu_ratio;
  std::optional<double> samples_per_s;
  std::optional<double> tokens_per_s;
  std::optional<std::string> slowest_rank;  ///< Whose own time is a tenth or more above the median.
  std::optional<double> slowest_ratio;      ///< Its own time by the median.
  std::vector<ServingView> serving;
  std::vector<Alarm> alarms;           ///< Worst first.
  std::optional<StageVerdict> stages;  ///< Where that is asked for: present/live_stages
  std::vector<int64_t> step_history;   ///< Of the median rank.
};

struct NodeView {
  std::string host;
  std::string place;
  std::string version;
  std::optional<Error> error;        ///< It did not answer the last look.
  std::optional<int64_t> silent_ns;  ///< How long ago it last answered; nullopt: never.
  std::optional<int64_t> clock_offset_ns;
  std::vector<GpuView> gpus;
  std::vector<GpuReading> lost_gpus;  ///< The driver lists them no more; what is left of them is their Xid events.
  std::optional<double> visible_gpus;
  std::optional<double> expected_gpus;
  std::vector<PortView> ports;
  std::map<std::string, CollectorReading> collectors;
  uint64_t bad_line_count = 0;
  bool is_cut = false;
  std::vector<Alarm> alarms;  ///< Of its devices.
};

/// All nodes that were asked, by job.
struct View {
  int64_t taken_unix_ns = 0;  ///< The caller's wall clock.
  int64_t window_ns = 0;
  size_t look_count = 0;
  std::vector<NodeView> nodes;  ///< In the order they were named.
  std::vector<JobView> jobs;    ///< By id.
  size_t answered_count() const;
};

/// Rows worst first: by state, then who is furthest behind, then who takes most time of its own, then by number.
bool IsWorse(const RankView& a, const RankView& b);
/// nullopt: it is called otherwise ("pid-7").
std::optional<uint64_t> RankNumber(const std::string& rank);
/// "2" before "10", numbers before names.
bool RankComesBefore(const std::string& a, const std::string& b);

}  // namespace lockstep::live
