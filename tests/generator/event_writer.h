#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "generator/job_log.h"
#include "generator/json_layout.h"
#include "generator/text_buffer.h"
#include "generator/trace_spec.h"

namespace lockstep::tracegen {

/// Writes the elements of one rank's traceEvents.
class EventWriter {
 public:
  EventWriter(const TraceSpec& spec, const JobLog& job, const RankLog& rank_log, int32_t rank, TextBuffer* text);

  void Host(const LogEvent& event);    ///< An event of RankLog::cpu, and its fwdbwd flow end.
  void Device(const LogEvent& event);  ///< An event of RankLog::device, and its ac2g flow end.
  void Closing();                      ///< Metadata rows, the capture window, markers.

  /// Offset just past the first element that the last Host or Device call wrote.
  uint64_t first_end() const { return first_end_; }
  uint64_t event_count() const { return event_count_; }
  uint64_t complete_count() const { return complete_count_; }

 private:
  void BeginElement();
  void EndElement(bool complete);
  void Key(std::string_view separator, std::string_view quoted_key);
  void Micros(int64_t value_ns);
  void Time(int64_t value_ns);
  /// "ph": "X" up to the opening of the arguments.
  void BeginComplete(std::string_view category, std::string_view name, int64_t pid, int64_t tid, const LogEvent& event);
  void EndComplete();
  void Argument(std::string_view quoted_key, int64_t value);
  void ArgumentRaw(std::string_view quoted_key, std::string_view json);
  void ArgumentHundredths(std::string_view quoted_key, int64_t hundredths);
  void FlowEnd(bool start, uint32_t id, bool gradient, int64_t pid, int64_t tid, int64_t start_ns);
  void Instant(const LogEvent& event);
  void CollectiveArguments(const CollectiveLog& log, bool on_kernel);
  void KernelArguments(const LogEvent& event);
  void MetadataRow(std::string_view name, std::string_view pid, int64_t tid, std::string_view args_key,
                   std::string_view json);
  int64_t ThreadId(uint8_t lane) const;

  const TraceSpec& spec_;
  const JobLog& job_;
  const RankLog& log_;
  const JsonLayout& layout_;
  TextBuffer* text_;
  int32_t rank_;
  int64_t device_;
  int64_t process_id_;
  bool old_names_;
  bool first_argument_ = true;
  bool first_event_ = true;
  std::string_view argument_separator_;
  uint64_t first_end_ = 0;
  uint64_t event_count_ = 0;
  uint64_t complete_count_ = 0;
  uint64_t event_index_ = 0;
  std::vector<std::string> grids_;
  std::vector<std::string> blocks_;
  std::vector<std::string> shapes_;
  std::vector<std::string> types_;
  std::vector<std::string> group_ranks_;
  std::string limiting_;
};

}  // namespace lockstep::tracegen
