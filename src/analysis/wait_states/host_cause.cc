#include "analysis/wait_states/host_cause.h"

#include <algorithm>
#include <array>
#include <string>

#include "analysis/host_role.h"
#include "base/ascii.h"
#include "base/letter_case.h"

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

/// "gc" as a word of its own: "gc", "gc.collect", "gc: generation 2", and "Python GC", as the profiler calls it that
/// records collections. An underscore joins words, since "gc_block" may be a layer, but a name that ends in "_gc" says
/// what it does.
bool HasWordGc(std::string_view name) {
  const auto joins = [](char c) { return IsAlphanumeric(c) || c == '_'; };
  for (size_t at = name.find("gc"); at != std::string_view::npos; at = name.find("gc", at + 1)) {
    const bool begins = at == 0 || !joins(name[at - 1]);
    const bool ends = at + 2 == name.size() || !joins(name[at + 2]);
    if (begins && ends) return true;
    if (at + 2 == name.size() && name[at - 1] == '_') return true;
  }
  return false;
}

/// Frames of the module read "<built-in function collect>".
bool IsGarbageCollection(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kParts = {"gc_collect", "garbage collect", "garbage_collect",
                                                             "garbagecollect"};
  return name == "<built-in function collect>" || HasWordGc(name) || ContainsAny(name, kParts);
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
  // As stages mark it (model/stages): the program waits for a collective.
  if (name == "comm") return HostKind::kCollectiveCall;
  switch (HostRoleOf(name)) {
    case HostRole::kStep: return HostKind::kStep;
    case HostRole::kDataLoader: return HostKind::kDataLoading;
    case HostRole::kCollective: return HostKind::kSkipped;
    case HostRole::kCollectiveCall: return HostKind::kCollectiveCall;
    case HostRole::kUnknown:
    case HostRole::kWork: break;
  }
  const std::string lower = Lowered(name);
  if (IsGarbageCollection(lower)) return HostKind::kGarbageCollection;
  if (IsCheckpoint(lower)) return HostKind::kCheckpoint;
  if (IsAllocator(lower)) return HostKind::kAllocator;
  if (IsLaunch(lower)) return HostKind::kLaunch;
  return HostKind::kWork;
}

}  // namespace lockstep::analysis
