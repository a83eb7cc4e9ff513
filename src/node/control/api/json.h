#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/inspection.h"
#include "node/control/api/node.h"
#include "node/control/api/process.h"

namespace lockstep::control {

// The bodies of the daemon's HTTP interface and of its state on disk; fields are named as in the structures, times and
// lengths in ns, unknown is null (docs/json.md, docs/formats/daemon-api.md). Reading is lenient to unknown fields, so
// that versions may differ, and strict on types and ranges: Errors: kCorruptData with the field's name;
// kInvalidArgument for a value out of its range. Depth and counts are bounded; the text's size is the caller's to
// bound.

/// Of an inspection's answer: it still passes where 64 MiB are the limit.
constexpr size_t kInspectionBytes = size_t{48} << 20;

std::string ToJson(const NodeStatus& status);
std::string ToJson(const Process& process);
std::string ToJson(const std::vector<Process>& processes);  ///< {"processes": [...]}
std::string ToJson(const CaptureSpec& spec);
std::string ToJson(const Capture& capture);
std::string ToJson(const std::vector<Capture>& captures);  ///< {"captures": [...]}
std::string ToJson(const InspectionSpec& spec);
/// At most `limit_bytes`: processes that do not fit lose their dump, or are left out and named in `missing`.
std::string ToJson(const Inspection& inspection, size_t limit_bytes = kInspectionBytes);
std::string ToJson(const Error& error);  ///< {"error": {"code": ..., "message": ...}}

Result<NodeStatus> ReadNodeStatus(std::string_view json);
Result<std::vector<Process>> ReadProcesses(std::string_view json);
Result<CaptureSpec> ReadCaptureSpec(std::string_view json);
Result<Capture> ReadCapture(std::string_view json);
Result<std::vector<Capture>> ReadCaptures(std::string_view json);
Result<InspectionSpec> ReadInspectionSpec(std::string_view json);
Result<Inspection> ReadInspection(std::string_view json);
/// The error that a daemon answered with; a body that is none gives kCorruptData with its first words.
Error ReadError(std::string_view json);

}  // namespace lockstep::control
