#include "ingest/stacks/stacks.h"

#include "base/text_scan.h"
#include "base/utf8.h"
#include "ingest/stacks/formats.h"

namespace lockstep::ingest {

void SplitPlace(std::string_view place, evidence::StackFrame* frame) {
  // "train.py:12", or "file.c:12:3" with a column.
  for (int part = 0; part < 2; ++part) {
    const size_t colon = place.rfind(':');
    if (colon == std::string_view::npos || colon == 0) break;
    const auto number = WholeNumber<int32_t>(place.substr(colon + 1));
    if (!number || *number < 0) break;
    frame->line = *number;
    place = place.substr(0, colon);
  }
  frame->file = ValidUtf8(place);
}

void AddFrame(evidence::StackFrame frame, std::vector<evidence::StackFrame>* frames) {
  if (frames->size() < kMaxStackFrames) frames->push_back(std::move(frame));
}

StackFormat SniffStacks(std::string_view first_bytes) {
  const size_t first = first_bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return StackFormat::kNone;
  if (first_bytes[first] == '[' && first_bytes.find("\"frames\"") != std::string_view::npos &&
      first_bytes.find("\"thread_id\"") != std::string_view::npos) {
    return StackFormat::kPySpyJson;
  }
  LineScanner lines(first_bytes);
  for (std::string_view line; lines.Next(&line);) {
    if (line.empty() || (line[0] != 'T' && line[0] != 'C' && line[0] != 'S')) continue;
    if (IsFaulthandlerHead(line)) return StackFormat::kFaulthandler;
    if (IsPySpyHead(line)) return StackFormat::kPySpyText;
    if (IsEuStackHead(line)) return StackFormat::kEuStack;
    if (IsGdbHead(line)) return StackFormat::kGdb;
  }
  return StackFormat::kNone;
}

Result<std::vector<evidence::ThreadStack>> ReadStacks(std::string_view text) {
  std::vector<evidence::ThreadStack> threads;
  switch (SniffStacks(text)) {
    case StackFormat::kNone:
      return Error{.code = ErrorCode::kUnsupported,
                   .message = "no stacks of faulthandler, py-spy, eu-stack or gdb are in it"};
    case StackFormat::kFaulthandler: threads = ReadFaulthandler(text); break;
    case StackFormat::kPySpyText: threads = ReadPySpyText(text); break;
    case StackFormat::kPySpyJson: {
      ASSIGN_OR_RETURN(threads, ReadPySpyJson(text));
      break;
    }
    case StackFormat::kEuStack: threads = ReadEuStack(text); break;
    case StackFormat::kGdb: threads = ReadGdb(text); break;
  }
  if (threads.empty()) return Error{.code = ErrorCode::kCorruptData, .message = "has no thread"};
  return threads;
}

}  // namespace lockstep::ingest
