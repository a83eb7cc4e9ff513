#include "ingest/flight_recorder/pickle_dump.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>

#include "ingest/flight_recorder/dump_stack.h"
#include "ingest/flight_recorder/pickle_opcodes.h"
#include "ingest/flight_recorder/raw_unicode.h"
#include "ingest/flight_recorder/record_builder.h"

namespace lockstep::ingest {

namespace {

enum class Step : uint8_t { kNext, kStop, kCut, kBad };

class PickleDump {
 public:
  PickleDump(std::string_view bytes, PlainEntryPath path)
      : at_(bytes.data()),
        begin_(at_),
        end_(at_ + bytes.size()),
        path_(path),
        builder_(bytes.size()),
        stack_(builder_) {}

  Result<std::vector<RankedRecord>> Read() {
    Step step = Step::kNext;
    const char* opcode = at_;
    while (step == Step::kNext) {
      if (at_ == end_) {
        step = Step::kCut;
        break;
      }
      opcode = at_++;
      step = Do(static_cast<Opcode>(*opcode));
    }
    if (step == Step::kBad) return Located(stack_.TakeError(), opcode);
    if (step == Step::kCut) {
      const auto top = stack_.CloseAll();
      return builder_.Finish(top.value_or(Value{}), /*truncated=*/true);
    }
    Value top;
    if (!stack_.Top(top)) return Located(stack_.TakeError(), opcode);
    for (const char* rest = at_; rest != end_; ++rest) {
      if (*rest == ' ' || (*rest >= '\t' && *rest <= '\r')) continue;
      return Error{ErrorCode::kCorruptData, "continues after its end (STOP)", {}, Offset(rest)};
    }
    return builder_.Finish(top, /*truncated=*/false);
  }

 private:
  uint64_t Offset(const char* place) const { return static_cast<uint64_t>(place - begin_); }

  Error Located(Error error, const char* opcode) const {
    error.message = fmt::format("{}: {}", OpcodeName(static_cast<uint8_t>(*opcode)), error.message);
    error.byte_offset = Offset(opcode);
    return error;
  }

  static Step NextIf(bool good) { return good ? Step::kNext : Step::kBad; }

  template <typename T>
  bool Take(T& value) {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) return false;
    std::memcpy(&value, at_, sizeof(T));  // Both are little-endian.
    at_ += sizeof(T);
    return true;
  }

  void PushDict() {
    const bool plain = path_ == PlainEntryPath::kUsed;
    if (const auto entry = plain ? builder_.ReadPlainEntry(at_, end_, stack_.memo()) : std::nullopt) {
      stack_.PushEntry(*entry);
    } else {
      stack_.PushEmptyDict();
    }
  }

  template <typename T>
  Step PushNumber() {
    T number;
    if (!Take(number)) return Step::kCut;
    stack_.PushInt(number);
    return Step::kNext;
  }

  template <typename Length>
  Step PushText() {
    Length length;
    if (!Take(length) || length > static_cast<uint64_t>(end_ - at_)) return Step::kCut;
    stack_.PushText(builder_.texts().Add({at_, static_cast<size_t>(length)}));
    at_ += length;
    return Step::kNext;
  }

  template <typename Number>
  Step Put() {
    Number number;
    if (!Take(number)) return Step::kCut;
    return NextIf(stack_.Memoize(number, static_cast<size_t>(at_ - begin_)));
  }

  template <typename Number>
  Step Get() {
    Number number;
    if (!Take(number)) return Step::kCut;
    return NextIf(stack_.Get(number));
  }

  Step PushLong() {
    uint8_t length;
    if (!Take(length)) return Step::kCut;
    if (length > 8) return Refuse(ErrorCode::kLimitExceeded, "a number of more than 8 bytes");
    if (end_ - at_ < length) return Step::kCut;
    uint64_t number = 0;
    std::memcpy(&number, at_, length);
    at_ += length;
    if (length > 0 && length < 8) {  // The highest bit is the sign.
      const int unused = 64 - 8 * length;
      number = static_cast<uint64_t>(static_cast<int64_t>(number << unused) >> unused);
    }
    stack_.PushInt(static_cast<int64_t>(number));
    return Step::kNext;
  }

  // What protocols 0 and 1 write as a line of text.
  bool TakeLine(std::string_view& line) {
    const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    const size_t length = rest.find('\n');
    if (length == std::string_view::npos) return false;
    line = rest.substr(0, length);
    at_ += length + 1;
    return true;
  }

  template <typename Number>
  Step TakeNumberLine(std::string_view after, Number& number) {
    std::string_view line;
    if (!TakeLine(line)) return Step::kCut;
    if (line.ends_with(after)) line.remove_suffix(after.size());
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error == std::errc::result_out_of_range) return Refuse(ErrorCode::kLimitExceeded, "a number that is too large");
    if (error != std::errc() || end != line.data() + line.size()) {
      return Refuse(ErrorCode::kCorruptData, "a number that is none");
    }
    return Step::kNext;
  }

  Step PushIntLine() {
    const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    if (rest.starts_with("00\n") || rest.starts_with("01\n")) {  // So are False and True written.
      stack_.PushBool(rest[1] == '1');
      at_ += 3;
      return Step::kNext;
    }
    return PushLongLine("");
  }

  Step PushLongLine(std::string_view after) {
    int64_t number = 0;
    const Step step = TakeNumberLine(after, number);
    if (step == Step::kNext) stack_.PushInt(number);
    return step;
  }

  Step PushFloatLine() {
    double number = 0;
    const Step step = TakeNumberLine("", number);
    if (step == Step::kNext) stack_.PushFloat(number);
    return step;
  }

  Step PushTextLine() {
    std::string_view line;
    if (!TakeLine(line)) return Step::kCut;
    stack_.PushText(builder_.texts().AddCopy(FromRawUnicodeEscape(line)));
    return Step::kNext;
  }

  Step PutLine() {
    uint32_t number = 0;
    const Step step = TakeNumberLine("", number);
    return step == Step::kNext ? NextIf(stack_.Memoize(number, static_cast<size_t>(at_ - begin_))) : step;
  }

  Step GetLine() {
    uint32_t number = 0;
    const Step step = TakeNumberLine("", number);
    return step == Step::kNext ? NextIf(stack_.Get(number)) : step;
  }

  // Protocol 4 says how much comes before the next one, for readers of pipes.
  Step Frame() {
    uint64_t length;
    return Take(length) ? Step::kNext : Step::kCut;
  }

  Step PushDouble() {
    uint64_t bits;
    if (!Take(bits)) return Step::kCut;
    stack_.PushFloat(std::bit_cast<double>(__builtin_bswap64(bits)));
    return Step::kNext;
  }

  Step Proto() {
    uint8_t version;
    if (!Take(version)) return Step::kCut;
    if (at_ - begin_ != 2) return Refuse(ErrorCode::kCorruptData, "not at the beginning");
    return Step::kNext;
  }

  Step Refuse(ErrorCode code, std::string message) {
    stack_.SetError({code, std::move(message)});
    return Step::kBad;
  }

  Step RefuseOpcode(Opcode opcode) {
    return Refuse(ErrorCode::kUnsupported,
                  OpcodeRunsCode(static_cast<uint8_t>(opcode))
                      ? "this opcode makes Python import or call something; no flight-recorder dump has it: refused"
                      : "no flight-recorder dump has this opcode");
  }

  Step Do(Opcode opcode) {
    if (!stack_.HasRoom()) return Step::kBad;
    switch (opcode) {
      case Opcode::kBinGet: return Get<uint8_t>();
      case Opcode::kLongBinGet: return Get<uint32_t>();
      case Opcode::kBinInt1: return PushNumber<uint8_t>();
      case Opcode::kBinInt2: return PushNumber<uint16_t>();
      case Opcode::kBinInt: return PushNumber<int32_t>();
      case Opcode::kLong1: return PushLong();
      case Opcode::kBinUnicode: return PushText<uint32_t>();
      case Opcode::kBinUnicode8: return PushText<uint64_t>();
      case Opcode::kBinPut: return Put<uint8_t>();
      case Opcode::kLongBinPut: return Put<uint32_t>();
      case Opcode::kMark: return NextIf(stack_.Mark());
      case Opcode::kEmptyList: return stack_.PushEmptyList(), Step::kNext;
      case Opcode::kEmptyDict: return PushDict(), Step::kNext;
      case Opcode::kAppends: return NextIf(stack_.AppendSinceMark());
      case Opcode::kSetItems: return NextIf(stack_.SetItemsSinceMark());
      case Opcode::kTuple2: return NextIf(stack_.Tuple(2));
      case Opcode::kNone: return stack_.PushNone(), Step::kNext;
      case Opcode::kNewTrue: return stack_.PushBool(true), Step::kNext;
      case Opcode::kNewFalse: return stack_.PushBool(false), Step::kNext;
      case Opcode::kShortBinUnicode: return PushText<uint8_t>();
      case Opcode::kMemoize: return NextIf(stack_.Memoize(stack_.memo_count(), static_cast<size_t>(at_ - begin_)));
      case Opcode::kFrame: return Frame();
      case Opcode::kInt: return PushIntLine();
      case Opcode::kLong: return PushLongLine("L");
      case Opcode::kFloat: return PushFloatLine();
      case Opcode::kUnicode: return PushTextLine();
      case Opcode::kPut: return PutLine();
      case Opcode::kGet: return GetLine();
      case Opcode::kDict: return NextIf(stack_.DictSinceMark());
      case Opcode::kList: return NextIf(stack_.TupleSinceMark());
      case Opcode::kBinFloat: return PushDouble();
      case Opcode::kEmptyTuple: return NextIf(stack_.Tuple(0));
      case Opcode::kTuple1: return NextIf(stack_.Tuple(1));
      case Opcode::kTuple3: return NextIf(stack_.Tuple(3));
      case Opcode::kTuple: return NextIf(stack_.TupleSinceMark());
      case Opcode::kAppend: return NextIf(stack_.Append());
      case Opcode::kSetItem: return NextIf(stack_.SetItem());
      case Opcode::kProto: return Proto();
      case Opcode::kStop: return Step::kStop;
    }
    return RefuseOpcode(opcode);
  }

  const char* at_;
  const char* begin_;
  const char* end_;
  const PlainEntryPath path_;
  RecordBuilder builder_;
  DumpStack stack_;
};

}  // namespace

Result<std::vector<RankedRecord>> ReadPickleDump(std::string_view bytes, PlainEntryPath path) {
  return PickleDump(bytes, path).Read();
}

}  // namespace lockstep::ingest
