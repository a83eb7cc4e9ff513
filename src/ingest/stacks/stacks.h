#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/stack.h"

namespace lockstep::ingest {

enum class StackFormat : uint8_t { kNone, kFaulthandler, kPySpyText, kPySpyJson, kEuStack, kGdb };
/// The format of the first thread's first line in it, whatever stands before (a log's lines, a tool's greeting).
StackFormat SniffStacks(std::string_view first_bytes);

/// Threads of one process from a stack dump's text (the last dump, where a file has several).
/// Errors: kCorruptData, kUnsupported, kLimitExceeded. Source of the formats: docs/formats/stacks.md.
Result<std::vector<evidence::ThreadStack>> ReadStacks(std::string_view text);

}  // namespace lockstep::ingest
