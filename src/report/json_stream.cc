#include "report/json_stream.h"

#include <cmath>
#include <string>
#include <variant>

#include "report/utf8.h"

namespace lockstep::report {

JsonRow& JsonRow::Key(std::string_view name) {
  writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
  return *this;
}

JsonRow& JsonRow::Double(double value) {
  if (std::isfinite(value)) {
    writer_.Double(value);
  } else {
    writer_.Null();
  }
  return *this;
}

JsonRow& JsonRow::Text(std::string_view value) {
  const std::string valid = ValidUtf8(value);
  writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  return *this;
}

JsonRow& JsonRow::Value(const Cell& cell) {
  struct Visitor {
    JsonRow& row;
    void operator()(std::monostate) const { row.Null(); }
    void operator()(bool value) const { row.Bool(value); }
    void operator()(int64_t value) const { row.Int(value); }
    void operator()(uint64_t value) const { row.Uint(value); }
    void operator()(double value) const { row.Double(value); }
    void operator()(const std::string& value) const { row.Text(value); }
    void operator()(const IntegerList& value) const {
      row.StartArray();
      for (const int64_t item : value.values) row.Int(item);
      row.EndArray();
    }
  };
  std::visit(Visitor{*this}, cell);
  return *this;
}

std::string_view JsonRow::Finish() {
  writer_.EndObject();
  return {buffer_.GetString(), buffer_.GetSize()};
}

void WriteKey(JsonDocument& json, std::string_view key) {
  json.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
}

void WriteRow(JsonDocument& json, JsonRow& row) {
  const std::string_view text = row.Finish();
  json.RawValue(text.data(), text.size(), rapidjson::kObjectType);
}

}  // namespace lockstep::report
