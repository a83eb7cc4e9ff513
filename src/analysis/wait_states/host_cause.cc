#include "analysis/wait_states/host_cause.h"

#include <algorithm>
#include <array>
#include <string>

#include "analysis/host_role.h"
#include "base/ascii.h"

namespace lockstep::analysis {
namespace {

template <size_t kCount>
bool ContainsAny(std::string_view text, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

template <size_t kCount>
bool BeginsAny(std::string_view text, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.substr(0, part.size()) == part; });
}

// Names come in lower case from here on.

/// "gc" alone or as the first word: "gc", "gc.collect", "gc: generation 2". Frames of the module read
/// "<built-in function collect>".
bool IsGarbageCollection(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kParts = {"gc.collect", "gc_collect", "garbage collect",
                                                             "garbage_collect"};
  if (name.substr(0, 2) == "gc" && (name.size() == 2 || name[2] == ' ' || name[2] == ':' || name[2] == '.'))
    return true;
  return name == "<built-in function collect>" || ContainsAny(name, kParts);
}

bool IsCheckpoint(std::string_view name) {
  // Not "checkpoint" alone: recomputation of activations is called that as well.
  static constexpr std::array<std::string_view, 9> kParts = {
      "torch.save",      "torch/serialization.py", "torch/distributed/checkpoint",
      "dist_checkpoint", "save_checkpoint",        "save_state_dict",
      "save_pretrained", "checkpoint_save",        "dcp.save"};
  return ContainsAny(name, kParts);
}

bool IsAllocator(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kCalls = {
      "cudamalloc",  "cudafree", "cudahostalloc", "cudahostregister", "cumemalloc",    "cumemfree",
      "cumemcreate", "cumemmap", "hipmalloc",     "hipfree",          "hiphostmalloc", "hiphostregister"};
  return BeginsAny(name, kCalls);
}

bool IsLaunch(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kCalls = {"cudalaunch",        "culaunch",       "hiplaunch",
                                                             "cudagraphlaunch",   "hipgraphlaunch", "hipmodulelaunch",
                                                             "hipextmodulelaunch"};
  return BeginsAny(name, kCalls);
}

}  // namespace

HostKind HostKindOf(std::string_view name) {
  switch (HostRoleOf(name)) {
    case HostRole::kStep: return HostKind::kStep;
    case HostRole::kDataLoader: return HostKind::kDataLoading;
    case HostRole::kCollective: return HostKind::kSkipped;
    case HostRole::kCollectiveCall: return HostKind::kCollectiveCall;
    case HostRole::kUnknown:
    case HostRole::kWork: break;
  }
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  if (IsGarbageCollection(lower)) return HostKind::kGarbageCollection;
  if (IsCheckpoint(lower)) return HostKind::kCheckpoint;
  if (IsAllocator(lower)) return HostKind::kAllocator;
  if (IsLaunch(lower)) return HostKind::kLaunch;
  return HostKind::kWork;
}

}  // namespace lockstep::analysis
