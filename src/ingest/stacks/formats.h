#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence/stack.h"

namespace lockstep::ingest {

constexpr size_t kMaxStackThreads = 65'536;
constexpr size_t kMaxStackFrames = 4'096;  ///< Of a thread and kind; deeper ones are left out.

/// The last dump of a text that has several; empty when there is none.
std::vector<evidence::ThreadStack> ReadFaulthandler(std::string_view text);
std::vector<evidence::ThreadStack> ReadPySpyText(std::string_view text);
Result<std::vector<evidence::ThreadStack>> ReadPySpyJson(std::string_view text);
std::vector<evidence::ThreadStack> ReadEuStack(std::string_view text);
std::vector<evidence::ThreadStack> ReadGdb(std::string_view text);

/// A line that begins a thread in the format; `line` from its first character.
bool IsFaulthandlerHead(std::string_view line);
bool IsPySpyHead(std::string_view line);
bool IsEuStackHead(std::string_view line);
bool IsGdbHead(std::string_view line);

/// "train.py:12" taken apart; a text without a line number is all file.
void SplitPlace(std::string_view place, evidence::StackFrame* frame);
/// Appends unless the stack is as deep as it may be.
void AddFrame(evidence::StackFrame frame, std::vector<evidence::StackFrame>* frames);

}  // namespace lockstep::ingest
