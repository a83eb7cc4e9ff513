#include "node/inspect/python_frames.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/utf8.h"
#include "node/inspect/remote_memory.h"
#include "node/inspect/stack_limits.h"

namespace lockstep::inspect {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

constexpr size_t kMaxInterpreters = 16;
constexpr size_t kMaxCodes = 65536;
constexpr size_t kMaxTextLength = 1024;
constexpr size_t kMaxLineTableBytes = size_t{1} << 20;
constexpr int kMaxReadings = 4;  // Of a thread's frames, until two agree.
constexpr int64_t kMaxTid = int64_t{1} << 22;

class FrameReader {
 public:
  FrameReader(pid_t pid, const PythonSymbols& symbols, const PythonLayout& layout)
      : pid_(pid), symbols_(symbols), layout_(layout) {}

  Result<std::vector<ThreadStack>> Read() {
    std::vector<ThreadStack> threads;
    uint64_t interpreter = Word(symbols_.runtime + layout_.interpreters_head);
    for (size_t i = 0; interpreter != 0 && i < kMaxInterpreters; ++i) {
      const uint64_t holder = Holder(interpreter);
      uint64_t thread = Word(interpreter + layout_.threads_head);
      for (; thread != 0 && threads.size() < kMaxThreads; thread = Word(thread + layout_.thread_next)) {
        // The first thing that would be wrong with a layout that is not this interpreter's.
        if (Word(thread + layout_.thread_interpreter) != interpreter) {
          return Error{.code = ErrorCode::kCorruptData,
                       .message = "its Python stores its threads differently from its stated version"};
        }
        ThreadStack stack;
        stack.tid = static_cast<int64_t>(Word(thread + layout_.thread_native_id));
        if (stack.tid <= 0 || stack.tid > kMaxTid) continue;
        stack.holds_gil = thread == holder;
        stack.source = "cpython";
        for (const Place& place : ReadPlaces(thread)) stack.python.push_back(Describe(place));
        threads.push_back(std::move(stack));
      }
      interpreter = Word(interpreter + layout_.interpreter_next);
    }
    return threads;
  }

 private:
  struct Place {
    uint64_t code = 0;
    uint64_t instruction = 0;
    bool operator==(const Place&) const = default;
  };
  struct Code {
    StackFrame frame;  ///< Without line.
    int32_t first_line = 0;
    std::string lines;
  };

  /// 0 where nothing can be read: which is also where every chain ends.
  uint64_t Word(uint64_t address) const {
    uint64_t word = 0;
    return address != 0 && ReadMemoryValue(pid_, address, &word) ? word : 0;
  }

  uint64_t Holder(uint64_t interpreter) const {
    uint64_t base = symbols_.runtime;
    if (layout_.gil_place == PythonLayout::GilPlace::kBehindPointer) base = Word(interpreter + layout_.gil_pointer);
    if (layout_.gil_place == PythonLayout::GilPlace::kInterpreter) base = interpreter;
    int32_t locked = 0;
    if (base == 0 || !ReadMemoryValue(pid_, base + layout_.gil_locked, &locked) || locked != 1) return 0;
    return Word(base + layout_.gil_holder);
  }

  uint64_t FirstFrame(uint64_t thread) const {
    const uint64_t frame = Word(thread + layout_.thread_frame);
    return layout_.frame_in_cframe && frame != 0 ? Word(frame + layout_.cframe_frame) : frame;
  }

  /// The chain of frames as it is now; false: it leads nowhere.
  bool ReadChain(uint64_t thread, std::vector<Place>* places) const {
    places->clear();
    uint64_t frame = FirstFrame(thread);
    for (size_t i = 0; frame != 0; ++i) {
      if (i >= 2 * kMaxFrames) return true;  // The outermost are left out.
      uint8_t owner = 0;
      if (!ReadMemoryValue(pid_, frame + layout_.frame_owner, &owner)) return false;
      const Place place = {.code = Word(frame + layout_.frame_code),
                           .instruction = Word(frame + layout_.frame_instruction)};
      if (owner < layout_.first_shim_owner) {
        if (place.code == 0 || Word(place.code + layout_.object_type) != symbols_.code_type) return false;
        if (places->size() < kMaxFrames) places->push_back(place);
      }
      frame = Word(frame + layout_.frame_previous);
    }
    return true;
  }

  /// Frames that two readings agree on: a thread that waits always has them, one that runs with some luck.
  std::vector<Place> ReadPlaces(uint64_t thread) const {
    std::vector<Place> before;
    std::vector<Place> now;
    bool was_sound = false;
    for (int i = 0; i < kMaxReadings; ++i) {
      const bool sound = ReadChain(thread, &now);
      if (sound && was_sound && now == before) return now;
      was_sound = sound;
      before.swap(now);
    }
    return {};
  }

  std::string Text(uint64_t object) const {
    uint64_t length = 0;
    uint32_t state = 0;
    if (object == 0 || Word(object + layout_.object_type) != symbols_.text_type ||
        !ReadMemoryValue(pid_, object + layout_.text_length, &length) ||
        !ReadMemoryValue(pid_, object + layout_.text_state, &state))
      return {};
    // Bits: interned 2, kind 3, compact 1, ascii 1.
    const uint32_t kind = (state >> 2) & 7;
    const bool is_compact = ((state >> 5) & 1) != 0;
    const bool is_ascii = ((state >> 6) & 1) != 0;
    if (!is_compact || (kind != 1 && kind != 2 && kind != 4)) return {};
    const size_t count = std::min<uint64_t>(length, kMaxTextLength);
    const std::string bytes =
        ReadMemory(pid_, object + (is_ascii ? layout_.text_ascii_data : layout_.text_compact_data), count * kind);
    std::string text;
    for (size_t i = 0; i + kind <= bytes.size(); i += kind) {
      uint32_t c = 0;
      std::memcpy(&c, bytes.data() + i, kind);
      AppendUtf8(c, &text);
    }
    return Printable(text);
  }

  const Code& CodeOf(uint64_t address) {
    if (const auto found = codes_.find(address); found != codes_.end()) return found->second;
    if (codes_.size() >= kMaxCodes) codes_.clear();
    Code code;
    code.frame.file = Text(Word(address + layout_.code_filename));
    code.frame.function = Text(Word(address + layout_.code_qualname));
    if (code.frame.function.empty()) code.frame.function = Text(Word(address + layout_.code_name));
    ReadMemoryValue(pid_, address + layout_.code_firstlineno, &code.first_line);
    const uint64_t table = Word(address + layout_.code_linetable);
    const uint64_t size = table == 0 ? 0 : Word(table + layout_.bytes_size);
    if (size > 0 && size <= kMaxLineTableBytes) code.lines = ReadMemory(pid_, table + layout_.bytes_data, size);
    return codes_.emplace(address, std::move(code)).first->second;
  }

  StackFrame Describe(const Place& place) {
    const Code& code = CodeOf(place.code);
    StackFrame frame = code.frame;
    const uint64_t first = place.code + layout_.code_instructions;
    // Before the first instruction: a call that is just being made.
    const std::optional<int32_t> line =
        place.instruction < first ? std::nullopt : LineOf(code.lines, code.first_line, (place.instruction - first) / 2);
    frame.line = std::max(line.value_or(code.first_line), 0);
    return frame;
  }

  pid_t pid_;
  const PythonSymbols& symbols_;
  const PythonLayout& layout_;
  std::map<uint64_t, Code> codes_;
};

/// Numbers of 6 bits a byte, the lowest first; bit 6: more follow. False: the table ends.
bool ReadVarint(std::string_view* table, uint32_t* number) {
  *number = 0;
  for (int shift = 0; shift < 30; shift += 6) {
    if (table->empty()) return false;
    const auto byte = static_cast<uint8_t>(table->front());
    table->remove_prefix(1);
    *number |= static_cast<uint32_t>(byte & 63) << shift;
    if ((byte & 64) == 0) return true;
  }
  return false;
}

}  // namespace

std::optional<int32_t> LineOf(std::string_view table, int32_t first_line, uint64_t unit) {
  constexpr int kShortForms = 10;  // Codes 0 to 9: columns in one byte, same line.
  constexpr int kOneLine = 10;     // To 12: 0 to 2 lines further.
  constexpr int kNoColumns = 13;
  constexpr int kLong = 14;
  constexpr int kNone = 15;
  int64_t line = first_line;
  uint64_t at = 0;
  while (!table.empty()) {
    const auto head = static_cast<uint8_t>(table.front());
    table.remove_prefix(1);
    if ((head & 0x80) == 0) return std::nullopt;
    const int code = (head >> 3) & 15;
    at += (head & 7) + 1U;
    size_t rest = 0;
    if (code < kShortForms) {
      rest = 1;
    } else if (code < kNoColumns) {
      line += code - kOneLine;
      rest = 2;
    } else if (code != kNone) {
      uint32_t number = 0;
      if (!ReadVarint(&table, &number)) return std::nullopt;
      line += (number & 1) != 0 ? -static_cast<int64_t>(number >> 1) : static_cast<int64_t>(number >> 1);
      for (int i = 0; code == kLong && i < 3; ++i) {
        if (!ReadVarint(&table, &number)) return std::nullopt;
      }
    }
    if (table.size() < rest) return std::nullopt;
    table.remove_prefix(rest);
    if (unit >= at) continue;
    if (code == kNone || line < 0 || line > INT32_MAX) return std::nullopt;
    return static_cast<int32_t>(line);
  }
  return std::nullopt;
}

Result<std::vector<ThreadStack>> ReadPythonThreads(pid_t pid, const PythonSymbols& symbols,
                                                   const PythonLayout& layout) {
  return FrameReader(pid, symbols, layout).Read();
}

}  // namespace lockstep::inspect
