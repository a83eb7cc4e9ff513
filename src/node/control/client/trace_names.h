#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "node/control/api/capture.h"
#include "node/control/api/process.h"

namespace lockstep::control {

/// `text` as part of a file's name: letters, digits, "." and "_" stay, "-" too; anything else becomes "_"; at most 48
/// bytes, never begins with a dot; "x" for nothing.
std::string SafeNamePart(std::string_view text);

/// What tells one capture's window from another's in the names of its traces: "20261122T010623Z-500ms",
/// "20261122T010623Z-5iterations".
std::string WindowName(const CaptureWindow& window, int64_t asked_unix_ns);

/// A trace's file name without ending: "JOB-HOST-rankR-pidP-WINDOW"; what is unknown is left out. Unique among the
/// processes of all nodes for one window. The rank is read from it again: docs/formats/file-names.md.
std::string TraceFileName(const Process& process, std::string_view host, std::string_view window_name);

}  // namespace lockstep::control
