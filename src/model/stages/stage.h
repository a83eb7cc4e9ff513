#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::model {

/// What a part of a step is for. The stages of a step add up to it.
enum class Stage : uint8_t {
  kInput,         ///< Waiting for the next batch.
  kHostToDevice,  ///< Copies of the batch to the device.
  kForward,
  kBackward,
  kOptimizer,
  kCommunication,  ///< Waiting in the program for a collective: it ends on all ranks of the group together.
  kCheckpoint,
  kValidation,
  kGarbageCollection,  ///< Python's.
  kOther               ///< What no stage covers.
};
inline constexpr std::array kStages = {
    Stage::kInput,         Stage::kHostToDevice, Stage::kForward,    Stage::kBackward,          Stage::kOptimizer,
    Stage::kCommunication, Stage::kCheckpoint,   Stage::kValidation, Stage::kGarbageCollection, Stage::kOther};

/// Nanoseconds by stage, in the order of kStages.
using StageTimes = std::array<int64_t, kStages.size()>;

inline int64_t& At(StageTimes& times, Stage stage) { return times[static_cast<size_t>(stage)]; }
inline int64_t At(const StageTimes& times, Stage stage) { return times[static_cast<size_t>(stage)]; }

/// "input", "h2d", "forward", "backward", "optimizer", "comm_exposed", "checkpoint", "validation", "gc", "other".
const char* StageName(Stage stage);

/// The stage that a span's name stands for: "forward", "train/forward", "Optimizer.step". Nullopt: none; its time then
/// counts for the enclosing span. The words are those of docs/daemon-metrics.md#phases.
std::optional<Stage> StageOf(std::string_view span_name);

/// What the name of a wait's span says of whom it waits for. "dp[0,2]/comm": those of the process group "dp" that has
/// ranks 0 and 2; the part before the '/' is the same text on all of the group's ranks, and on no other. "comm": all
/// ranks. ".../p2p": one peer of them.
struct WaitOf {
  std::string_view group;  ///< "dp[0,2]"; empty: all ranks.
  bool is_pairwise = false;
};
WaitOf ReadWait(std::string_view span_name);

/// A counter of this name with a value above 0: the rank cannot tell its waits for collectives from what they lie in.
inline constexpr std::string_view kHidesCommunicationCounter = "comm_exposed_unknown";

// Counters of the times that a step's stages last on the rank's device, in this order, once the device has done it:
// `device_step` N, of each part `device_stage/NAME` its nanoseconds, NAME being what a span would be called, and
// `device_step_end` the number of parts. `device_times` N: such are told from step N on; below 0: no more.
inline constexpr std::string_view kDeviceCounterPrefix = "device_";
inline constexpr std::string_view kDeviceTimesCounter = "device_times";
inline constexpr std::string_view kDeviceStepCounter = "device_step";
inline constexpr std::string_view kDeviceStepEndCounter = "device_step_end";
inline constexpr std::string_view kDeviceStagePrefix = "device_stage/";
/// Whether a counter is one of these: it says nothing by itself.
bool IsDeviceTime(std::string_view counter);

}  // namespace lockstep::model
