#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::agent {

/// What a part of a step is for. Phases of a step add up to it.
enum class Phase : uint8_t {
  kInput,
  kHostToDevice,
  kForward,
  kBackward,
  kOptimizer,
  kCommunication,
  kCheckpoint,
  kOther
};
inline constexpr std::array kPhases = {Phase::kInput,     Phase::kHostToDevice,  Phase::kForward,    Phase::kBackward,
                                       Phase::kOptimizer, Phase::kCommunication, Phase::kCheckpoint, Phase::kOther};

/// As the label says: "input", "h2d", "forward", "backward", "optimizer", "comm_exposed", "checkpoint", "other".
const char* PhaseName(Phase phase);

/// The phase that a span's name stands for: "forward", "train/forward", "Optimizer.step". Nullopt: none; its time then
/// counts for the enclosing span. The words are those of docs/daemon-metrics.md#phases.
std::optional<Phase> PhaseOf(std::string_view span_name);

}  // namespace lockstep::agent
