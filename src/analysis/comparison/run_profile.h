#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/finding.h"
#include "analysis/rank_context.h"
#include "analysis/rank_map.h"
#include "model/run.h"

namespace lockstep::comparison {

/// Which steps of a run are looked at.
struct ProfileOptions {
  int64_t skip_steps = 1;  ///< Left out at the start of every window (warm-up), where at least 3 steps are there.
  std::optional<int64_t> first_step = {};  ///< Only steps from this number on; skip_steps counts for nothing then.
  std::optional<int64_t> last_step = {};
  bool names = true;  ///< Off: kernels, operators and collectives are not read (scaling needs none).
};

/// What a step's time is split into; kStep is the whole, the others sum to it on every rank.
enum class Part : uint8_t { kStep, kCompute, kExposedCommunication, kExposedMemory, kIdle };
inline constexpr size_t kPartCount = 5;
const char* PartName(Part part);   ///< "step_ns", "compute_ns", ...: the field in JSON.
const char* PartLabel(Part part);  ///< "step", "compute", "exposed communication", "exposed copies", "idle".

/// One value per step that is looked at, ns.
using Series = std::vector<double>;

/// The steps of one rank. Steps that the rank's file lacks are absent from its series.
struct RankProfile {
  int32_t rank = 0;
  std::array<Series, kPartCount> parts;
};

enum class EventClass : uint8_t {
  kKernel,    ///< Device events: kernels, copies, sets.
  kOperator,  ///< Operators and annotations of CPU threads; whole ranges, so nested ones count in each.
  kRuntime,   ///< Calls of the device's runtime and driver.
};
const char* EventClassName(EventClass kind);  ///< "kernel", "operator", "runtime".

/// Events of one name, in the steps that are looked at, all ranks.
struct NameProfile {
  EventClass kind = EventClass::kKernel;
  std::string name;
  uint64_t count = 0;
  int64_t total_ns = 0;
  std::vector<int64_t> step_ns;                      ///< By step: durations added up over the ranks.
  std::vector<uint64_t> step_count;                  ///< By step: events over the ranks.
  std::vector<std::pair<int32_t, int64_t>> rank_ns;  ///< By rank, ascending: durations added up over the steps.
};

/// Collectives of one operation and size.
struct CollectiveProfile {
  std::string name;
  std::optional<int64_t> bytes = {};
  uint64_t count = 0;
  uint64_t timed_count = 0;  ///< Instances whose transfer is known: complete ones. 0: the series mean nothing.
  Series step_transfer_ns;   ///< By step: transfer times of complete instances added up.
  Series step_wait_ns;       ///< By step: waiting of all members added up.
  Series busbw_bytes_per_s;  ///< By instance; complete ones only.
};

struct MemoryProfile {
  int32_t rank = 0;
  int32_t device = -1;
  std::optional<int64_t> peak_allocated_bytes = {};
  std::optional<int64_t> peak_reserved_bytes = {};
};

/// What is kept of a run, so that its events can be let go before the next is read.
struct RunProfile {
  std::string label;
  size_t rank_count = 0;   ///< Ranks whose steps are looked at.
  int32_t world_size = 0;  ///< As the files state it; at least the ranks there are.
  std::string device;      ///< Name of the first rank's device, or empty.
  analysis::Basis basis = analysis::Basis::kNone;
  bool has_steps = false;  ///< Off: the whole window counts as one step.
  bool partial = false;
  std::vector<std::pair<int32_t, int64_t>> steps;  ///< (window, number) of the steps that are looked at.
  int64_t skipped_steps = 0;
  Series step_ns;                              ///< The job's step: the slowest rank's.
  std::vector<int32_t> slowest_rank;           ///< Parallel to step_ns.
  std::array<Series, kPartCount> mean_parts;   ///< Mean over the ranks.
  std::vector<RankProfile> ranks;              ///< By rank.
  std::vector<NameProfile> names;              ///< By (kind, name).
  std::vector<CollectiveProfile> collectives;  ///< By (name, bytes).
  std::vector<MemoryProfile> memory;           ///< By (rank, device).
  std::vector<analysis::Finding> findings;
  std::vector<model::LedgerEntry> ledger;
};

/// Cost: O(events), on `options.thread_count` threads of the analysis; the result does not depend on their number.
/// In: `result` with every pass of `run`. Steps are the breakdown's step windows (docs/metrics.md#step-windows).
RunProfile MakeRunProfile(std::string label, const model::Run& run, const analysis::AnalysisResult& result,
                          const analysis::AnalysisOptions& analysis, const ProfileOptions& options);

/// "ProfilerStep#12" without its number, so that it is one name.
std::string NameOfEvent(std::string_view name);

/// Every pass of this layer that asks ranks.
void AddRankPasses(analysis::RankPasses* passes);

/// Fills `names` and `collectives` of a profile whose steps are known.
void AddNames(const model::Run& run, const analysis::AnalysisOptions& analysis, RunProfile* profile);
void AddCollectives(const model::Run& run, const analysis::AnalysisResult& result, RunProfile* profile);

}  // namespace lockstep::comparison
