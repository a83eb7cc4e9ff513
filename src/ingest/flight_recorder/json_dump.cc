#include "ingest/flight_recorder/json_dump.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstdint>
#include <string>

#include "ingest/flight_recorder/dump_stack.h"
#include "ingest/flight_recorder/record_builder.h"

namespace lockstep::ingest {

namespace {

// Drives the stack as a pickle of the same dump would.
class JsonHandler {
 public:
  JsonHandler(RecordBuilder& builder, DumpStack& stack, const rapidjson::MemoryStream& stream, size_t byte_count)
      : builder_(builder), stack_(stack), stream_(stream), byte_count_(byte_count) {}

  bool Null() { return stack_.HasRoom() && (stack_.PushNone(), true); }
  bool Bool(bool value) { return stack_.HasRoom() && (stack_.PushBool(value), true); }
  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Int64(value); }
  bool Int64(int64_t value) { return NotCut() && stack_.HasRoom() && (stack_.PushInt(value), true); }
  bool Uint64(uint64_t value) {
    return value <= INT64_MAX ? Int64(static_cast<int64_t>(value)) : Double(static_cast<double>(value));
  }
  bool Double(double value) { return NotCut() && stack_.HasRoom() && (stack_.PushFloat(value), true); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return false; }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return stack_.HasRoom() && (stack_.PushText(builder_.texts().AddCopy({text, length})), true);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool copy) { return String(text, length, copy); }
  bool StartObject() { return stack_.HasRoom() && (stack_.PushEmptyDict(), stack_.Mark()); }
  bool EndObject(rapidjson::SizeType) { return stack_.SetItemsSinceMark(); }
  bool StartArray() { return stack_.HasRoom() && (stack_.PushEmptyList(), stack_.Mark()); }
  bool EndArray(rapidjson::SizeType) { return stack_.AppendSinceMark(); }

  bool number_was_cut() const { return number_was_cut_; }

 private:
  // A number that the file ends in may have had more digits.
  bool NotCut() {
    number_was_cut_ = stream_.Tell() >= byte_count_;
    return !number_was_cut_;
  }

  RecordBuilder& builder_;
  DumpStack& stack_;
  const rapidjson::MemoryStream& stream_;
  const size_t byte_count_;
  bool number_was_cut_ = false;
};

}  // namespace

Result<std::vector<RankedRecord>> ReadJsonDump(std::string_view bytes) {
  RecordBuilder builder(bytes.size());
  DumpStack stack(builder);
  rapidjson::MemoryStream stream(bytes.data(), bytes.size());
  JsonHandler handler(builder, stack, stream, bytes.size());
  rapidjson::Reader reader;
  // Iterative: nesting costs none of the processor's stack. NaN is what the writer's library makes of such durations.
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, handler);
  if (!parsed.IsError()) {
    Value top;
    if (!stack.Top(top)) return stack.TakeError();
    return builder.Finish(top, /*truncated=*/false);
  }
  if (parsed.Code() == rapidjson::kParseErrorTermination && !handler.number_was_cut()) {
    Error error = stack.TakeError();
    error.byte_offset = stream.Tell();
    return error;
  }
  if (stream.Tell() < bytes.size()) {
    return Error{ErrorCode::kCorruptData,
                 fmt::format("is not JSON: {}", rapidjson::GetParseError_En(parsed.Code())),
                 {},
                 parsed.Offset()};
  }
  const auto top = stack.CloseAll();
  return builder.Finish(top.value_or(Value{}), /*truncated=*/true);
}

}  // namespace lockstep::ingest
