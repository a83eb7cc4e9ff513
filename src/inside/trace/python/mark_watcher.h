#pragma once

#include <lockstep/trace.h>

namespace lockstep::hooks {

/// Is told by lockstep._spans of the spans that the program marks; in a capsule of that name, from lockstep._hooks,
/// which may be of another version than the package. With the interpreter's lock held.
inline constexpr const char* kMarkWatcher = "lockstep mark watcher 1";
struct MarkWatcher {
  void (*begin)(lockstep_span_t span, lockstep_name_t name);
  void (*end)(lockstep_span_t span);
};

}  // namespace lockstep::hooks
