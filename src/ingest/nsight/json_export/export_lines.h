#pragma once

#include <simdjson.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/nsight/json_export/table_writer.h"

namespace lockstep::ingest::nsight {

/// A number, or a string that holds one, as protobuf's JSON writes 64 bits. Those without a sign keep their bits.
std::optional<int64_t> WholeNumber(const simdjson::dom::element& value);

/// Lines of `nsys export -t json`, one protobuf message each, as rows of tables.
class MessageLines {
 public:
  explicit MessageLines(TableWriter* tables) : tables_(tables) {}

  /// Out: whether the line was one of them. Errors: those of TableWriter.
  Result<bool> Add(const simdjson::dom::object& line);

  /// Index of its environment's text in StringIds, by process (globalPid).
  std::map<int64_t, int64_t> Environments() const;
  /// Kinds of messages that were not read, with their number.
  const std::map<std::string, uint64_t>& unread() const { return unread_; }

 private:
  struct Started {
    int64_t at_ns = 0;
    int64_t environment = 0;
  };
  Result<bool> AddTexts(const simdjson::dom::array& texts);
  Result<bool> AddRange(const simdjson::dom::element& event);
  Result<bool> AddCall(const simdjson::dom::element& event);
  Result<bool> AddDeviceEvent(const simdjson::dom::element& event);
  Result<bool> AddDiagnostic(const simdjson::dom::element& event);
  void AddProcess(const simdjson::dom::element& event);
  void CountUnread(std::string_view kind);

  TableWriter* const tables_;
  std::vector<TableWriter::Cell> cells_;
  std::map<int64_t, Started> started_;  // By process.
  std::map<std::string, uint64_t> unread_;
};

/// A line of `nsys export -t jsonlines`: a row with the name of its table. Out: whether it is one.
Result<bool> AddRow(const simdjson::dom::object& line, TableWriter* tables);

}  // namespace lockstep::ingest::nsight
