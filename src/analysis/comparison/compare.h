#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/comparison/name_match.h"
#include "analysis/comparison/run_profile.h"
#include "analysis/comparison/statistics.h"

namespace lockstep::comparison {

struct CompareOptions {
  double confidence = 0.99;           ///< Of every interval, and of the verdict.
  double minimum_effect = 0.01;       ///< Of the step: smaller differences are none, however certain.
  double minimum_name_effect = 0.03;  ///< Of a name's own time per call, and of a collective's time.
};

enum class Change : uint8_t {
  kNone,    ///< No difference beyond the noise, or below what counts.
  kFaster,  ///< B takes less time.
  kSlower,
  kAdded,    ///< In B only.
  kRemoved,  ///< In A only.
  kUnknown,  ///< Too few steps to tell.
};
const char* ChangeName(Change change);  ///< "none", "faster", "slower", "added", "removed", "unknown".

/// A quantity of both runs: medians over the steps, and the shift from A to B. Source: docs/metrics.md#compare.
struct Delta {
  double a = 0;
  double b = 0;
  std::optional<Shift> shift = {};  ///< Absent when either run has no value.
  Change change = Change::kUnknown;
  /// estimate / a; absent when a is 0.
  std::optional<double> ratio() const;
};

struct RankDelta {
  int32_t rank = 0;
  std::array<Delta, kPartCount> parts;
  Delta own;  ///< Step less exposed communication: what the rank itself takes, waiting left out.
};

struct NameDelta {
  NamePair pair;
  EventClass kind = EventClass::kKernel;
  std::string name_a;  ///< Empty when absent.
  std::string name_b;
  uint64_t count_a = 0;  ///< All ranks and steps that were looked at.
  uint64_t count_b = 0;
  double calls_a = 0;  ///< Per rank and step.
  double calls_b = 0;
  Delta call;             ///< Time of one call, ns.
  Delta step;             ///< Time per rank and step, ns.
  double p_adjusted = 1;  ///< Of the time of one call: Welch's t, Holm's correction over all names.
  Change change = Change::kUnknown;
  std::optional<int32_t> worst_rank = {};  ///< Rank of both runs whose time per step changed most, more than the mean.
  double worst_rank_delta_ns = 0;          ///< Its change per step.
  /// b - a, per rank and step.
  double delta_ns() const { return step.b - step.a; }
};

struct CollectiveDelta {
  std::string name;
  std::optional<int64_t> bytes = {};
  double calls_a = 0;  ///< Per step of the job.
  double calls_b = 0;
  bool timed_a = false;  ///< Some instance is complete, so transfer_ and wait_ figures are there.
  bool timed_b = false;
  Delta transfer;                      ///< Per step, ns.
  Delta wait;                          ///< Per step, all ranks added up, ns.
  std::optional<double> busbw_a = {};  ///< Median, bytes/s.
  std::optional<double> busbw_b = {};
  Change change = Change::kUnknown;
};

struct MemoryDelta {
  int32_t rank = 0;
  int32_t device = -1;
  std::optional<int64_t> allocated_a = {};
  std::optional<int64_t> allocated_b = {};
  std::optional<int64_t> reserved_a = {};
  std::optional<int64_t> reserved_b = {};
};

struct FindingDelta {
  enum class State : uint8_t { kAppeared, kDisappeared, kStayed };
  State state = State::kStayed;
  std::string id;
  std::vector<int32_t> ranks;
  std::string title;  ///< B's, or A's of one that disappeared.
  std::optional<int64_t> gain_a_ns = {};
  std::optional<int64_t> gain_b_ns = {};
};
const char* FindingStateName(FindingDelta::State state);  ///< "appeared", "disappeared", "stayed".

struct Reason {
  std::string text;  ///< "exposed communication fell by 3.20 ms (mean over ranks)".
  double delta_ns = 0;
};

struct Verdict {
  Change change = Change::kUnknown;  ///< kFaster, kSlower, kNone or kUnknown.
  std::string sentence;
  std::vector<Reason> reasons;     ///< Largest first.
  std::vector<std::string> notes;  ///< What limits the comparison.
};

struct Comparison {
  CompareOptions options;
  RunProfile a;
  RunProfile b;
  Verdict verdict;
  Delta step;                           ///< The job's step: the slowest rank's.
  std::array<Delta, kPartCount> parts;  ///< Mean over ranks.
  std::vector<RankDelta> ranks;         ///< Ranks of both runs; largest change of its own time first.
  std::vector<int32_t> only_a;          ///< Ranks of one run.
  std::vector<int32_t> only_b;
  std::vector<NameDelta> names;              ///< Largest change of time per step first.
  std::vector<CollectiveDelta> collectives;  ///< Likewise.
  std::vector<MemoryDelta> memory;
  std::vector<FindingDelta> findings;  ///< Appeared, disappeared, stayed.
};

/// Compares two runs step by step. Deterministic. Cost: names x steps^2 at most (statistics.h thins long series).
Comparison Compare(RunProfile a, RunProfile b, const CompareOptions& options);

/// Medians, shift and verdict on one quantity. `whole` is what minimum is a share of; 0: of the median of A.
Delta CompareSeries(const Series& a, const Series& b, double whole, double minimum, double confidence);

// Parts of Compare, in the order they run.
void CompareNames(Comparison* comparison);
void CompareCollectives(Comparison* comparison);
void CompareMemory(Comparison* comparison);
void CompareFindings(Comparison* comparison);
/// Those of a step's named parts whose shift is beyond the noise, of the step's sign and a tenth of it or more, largest
/// first. `step` has a shift; `among` ends each text.
std::vector<Reason> PartReasons(const Delta& step, const std::vector<std::pair<std::string, const Delta*>>& parts,
                                std::string_view among);
/// "B is 4.1 % slower (99 % interval ...): ...", or that there is no difference, or why it cannot be told. `unit`: what
/// was counted of each run, "step".
std::string StepSentence(const Delta& step, size_t count_a, size_t count_b, std::string_view unit,
                         const CompareOptions& options);
inline constexpr const char* kNoiseNote =
    "the noise is that between the steps of these two runs; another node or day may differ by more";
/// Reads all else.
void Judge(Comparison* comparison);

}  // namespace lockstep::comparison
