#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "node/control/api/capture.h"
#include "node/control/api/inspection.h"
#include "node/control/api/process.h"

namespace lockstep::control {

/// An enum's words in their order, the first for 0. Both directions of a name come from one such table.
template <typename Enum, size_t N>
struct NameTable {
  const char* names[N];

  constexpr const char* Name(Enum value) const {
    const size_t idx = static_cast<size_t>(value);
    return idx < N ? names[idx] : "unknown";
  }
  constexpr std::optional<Enum> Find(std::string_view name) const {
    for (size_t i = 0; i < N; ++i) {
      if (name == names[i]) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
};

inline constexpr NameTable<ProcessRole, 3> kProcessRoles = {{"trainer", "launcher", "helper"}};
inline constexpr NameTable<ProcessState, 4> kProcessStates = {{"idle", "requested", "tracing", "silent"}};
inline constexpr NameTable<Tracer, 2> kTracers = {{"kineto", "steps"}};
inline constexpr NameTable<JobKind, 8> kJobKinds = {
    {"none", "slurm", "pbs", "torchelastic", "kubernetes", "lsf", "flux", "mpi"}};
inline constexpr NameTable<TargetState, 10> kTargetStates = {
    {"queued", "delivered", "warming", "collecting", "writing", "done", "refused", "died", "timed_out", "cancelled"}};
inline constexpr NameTable<CaptureState, 6> kCaptureStates = {
    {"waiting", "running", "done", "partial", "failed", "cancelled"}};
inline constexpr NameTable<InspectionDepth, 2> kInspectionDepths = {{"glance", "full"}};
inline constexpr NameTable<InspectionState, 3> kInspectionStates = {{"queued", "running", "done"}};
inline constexpr NameTable<CaptureWindow::Mode, 2> kWindowModes = {{"duration", "iterations"}};

}  // namespace lockstep::control
