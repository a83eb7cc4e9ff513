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

using evidence::FlightRecord;

namespace {

// Drives the stack as a pickle of the same dump would.
class JsonHandler {
 public:
  JsonHandler(RecordBuilder& builder, DumpStack& stack) : builder_(builder), stack_(stack) {}

  bool Null() { return stack_.HasRoom() && (stack_.PushNone(), true); }
  bool Bool(bool value) { return stack_.HasRoom() && (stack_.PushBool(value), true); }
  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Int64(value); }
  bool Int64(int64_t value) { return stack_.HasRoom() && (stack_.PushInt(value), true); }
  bool Uint64(uint64_t value) {
    return value <= INT64_MAX ? Int64(static_cast<int64_t>(value)) : Double(static_cast<double>(value));
  }
  bool Double(double value) { return stack_.HasRoom() && (stack_.PushFloat(value), true); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return false; }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return stack_.HasRoom() && (stack_.PushText(builder_.texts().AddCopy({text, length})), true);
  }
  bool Key(const char* text, rapidjson::SizeType length, bool copy) { return String(text, length, copy); }
  bool StartObject() { return stack_.HasRoom() && (stack_.PushEmptyDict(), stack_.Mark()); }
  bool EndObject(rapidjson::SizeType) { return stack_.SetItemsSinceMark(); }
  bool StartArray() { return stack_.HasRoom() && (stack_.PushEmptyList(), stack_.Mark()); }
  bool EndArray(rapidjson::SizeType) { return stack_.AppendSinceMark(); }

 private:
  RecordBuilder& builder_;
  DumpStack& stack_;
};

bool EndsInNumber(std::string_view bytes) {
  return !bytes.empty() && std::string_view("0123456789+-.eE").find(bytes.back()) != std::string_view::npos;
}

}  // namespace

Result<FlightRecord> ReadJsonDump(std::string_view bytes) {
  RecordBuilder builder(bytes.size());
  DumpStack stack(builder);
  JsonHandler handler(builder, stack);
  rapidjson::MemoryStream stream(bytes.data(), bytes.size());
  rapidjson::Reader reader;
  // Iterative: nesting costs none of the processor's stack. NaN is what the writer's library makes of such durations.
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, handler);
  if (!parsed.IsError()) {
    Value top;
    if (!stack.Top(top)) return stack.TakeError();
    return builder.Finish(top, /*truncated=*/false);
  }
  if (parsed.Code() == rapidjson::kParseErrorTermination) {
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
  const auto top = stack.CloseAll(/*drop_last=*/EndsInNumber(bytes));
  return builder.Finish(top.value_or(Value{}), /*truncated=*/true);
}

}  // namespace lockstep::ingest
