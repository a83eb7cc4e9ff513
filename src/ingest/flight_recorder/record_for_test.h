#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/checkout.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "model/evidence/flight_record.h"

namespace lockstep::ingest::test {

/// Of a file that has one dump.
inline Result<evidence::FlightRecord> One(Result<std::vector<RankedRecord>> records) {
  if (!records) return records.error();
  if (records->size() != 1) return Error{ErrorCode::kInvalidArgument, "not one record"};
  return std::move(records->front().record);
}

inline std::string TextOf(int64_t number) {
  return number == evidence::kNotRecorded ? "unknown" : std::to_string(number);
}

inline std::string TextOf(const evidence::FlightGroup& group) {
  std::string ranks;
  for (const int32_t rank : group.ranks) ranks += fmt::format("{},", rank);
  return fmt::format("group {} name={} description={} ranks={} {} {} {}", TextOf(group.local_id), group.name,
                     group.description, ranks, TextOf(group.last_enqueued), TextOf(group.last_started),
                     TextOf(group.last_completed));
}

inline std::string TextOf(const std::vector<std::vector<int64_t>>& sizes) {
  std::string text;
  for (const auto& shape : sizes) {
    text += "[";
    for (const int64_t length : shape) text += fmt::format("{},", length);
    text += "]";
  }
  return text;
}

inline std::string StackOf(const evidence::FlightRecord& record, const evidence::FlightEntry& entry) {
  std::string text;
  for (const evidence::FlightFrame& frame : record.stacks[entry.stack]) {
    text += fmt::format("{} {}:{};", record.texts[frame.function], record.texts[frame.file], frame.line);
  }
  return text;
}

/// All that an entry says, its stack left out.
inline std::string TextOf(const evidence::FlightRecord& record, const evidence::FlightEntry& entry) {
  const evidence::FlightGroup& group = record.groups[entry.group];
  return fmt::format(
      "{} in {} {} {}: {} {} {} {}, created {} started {} completed {} took {} of {}, {} {} -> {} {}, thread {} {}, "
      "state {} retired {} p2p {}",
      TextOf(entry.record_id), TextOf(group.local_id), group.name, group.description, record.texts[entry.operation],
      TextOf(entry.collective_sequence), TextOf(entry.p2p_sequence), TextOf(entry.operation_id),
      TextOf(entry.created_unix_ns), TextOf(entry.started_unix_ns), TextOf(entry.completed_unix_ns),
      TextOf(entry.duration_ns), TextOf(entry.timeout_ns), TextOf(record.size_lists[entry.input_sizes]),
      record.texts[entry.input_dtypes], TextOf(record.size_lists[entry.output_sizes]),
      record.texts[entry.output_dtypes], record.texts[entry.thread_name], TextOf(entry.thread_id),
      static_cast<int>(entry.state), static_cast<int>(entry.retired), entry.is_p2p);
}

/// All that a record says, stacks left out, as JSON dumps have none. Equal for equal records, whatever their tables'
/// order.
inline std::string TextOf(const evidence::FlightRecord& record) {
  std::string text =
      fmt::format("version {} library {} truncated {}\n", record.version, (&record)->library_version, record.truncated);
  for (const evidence::FlightGroup& group : record.groups) text += TextOf(group) + "\n";
  for (const evidence::FlightEntry& entry : record.entries) text += TextOf(record, entry) + "\n";
  return text;
}

inline std::string Bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// The recorded dumps of the shared data; empty where these are absent. `source`: the checkout, which they lie beside.
inline std::vector<std::filesystem::path> SharedDumps() {
  const std::filesystem::path root = SharedData();
  std::vector<std::filesystem::path> dumps;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(root / "flight_recorder", error)) {
    const std::string name = file.path().filename();
    if (name.starts_with("trace_") || name.starts_with("_dump_")) dumps.push_back(file.path());
  }
  return dumps;
}

}  // namespace lockstep::ingest::test
