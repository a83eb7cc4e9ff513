#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/log_line/level.h"

/// The line of a rank's log: docs/formats/rank-log.md#lines.
namespace lockstep::logs {

enum class LineForm : uint8_t { kText, kJson };

/// What stands before the text of a line. The views are borrowed.
struct LineHead {
  int64_t time_unix_ns = 0;
  std::optional<int64_t> monotonic_ns = {};  ///< CLOCK_MONOTONIC of the host.
  Level level = Level::kInfo;
  std::optional<int32_t> rank = {};  ///< Nullopt: of several ranks, or not known.
  std::string_view host = {};
  std::string_view source = {};  ///< "out", "err": the program's streams; else who logged it.
};

/// Both clocks, read one right after the other.
struct LineTime {
  int64_t unix_ns = 0;
  int64_t monotonic_ns = 0;
  static LineTime Now();
};

/// Writes lines of one process. Not thread-safe.
class LineWriter {
 public:
  /// `host` is cleaned into a word.
  LineWriter(LineForm form, std::optional<int32_t> rank, std::string_view host);

  /// Appends `text` with head and "\n". Text form: a message of several lines becomes as many, each with the head; a
  /// carriage return before a line's end is dropped. JSON: always one line; bytes that are not UTF-8 become U+FFFD.
  void Append(const LineTime& time, Level level, std::string_view source, std::string_view text, std::string* out);

 private:
  void AppendDate(int64_t unix_ns, std::string* out);
  void AppendJson(const LineTime& time, Level level, std::string_view source, std::string_view text, std::string* out);

  LineForm form_;
  std::optional<int32_t> rank_;
  std::string rank_and_host_;  ///< "rank3 node0" or its JSON.
  std::string date_;           ///< "2026-11-23T02:15:03." of `second_`.
  int64_t second_ = INT64_MIN;
};

/// Letters, digits, '.', '-', '_'; all else becomes '_', and nothing '-'. At most 64 bytes.
std::string CleanWord(std::string_view word);

/// `text` as the inside of a JSON string.
void AppendJsonText(std::string_view text, std::string* out);

/// "2026-11-23T02:15:03" of a time in UTC; years 0 to 9999.
std::string DateText(int64_t unix_ns);

struct ParsedLine {
  LineHead head;
  std::string_view text;
};

/// Reads a line without its end, in either form; nullopt: it has no head of ours. `storage` holds a JSON text that was
/// escaped. Any bytes may come. Cost: O(head); a JSON text once more.
std::optional<ParsedLine> ParseLine(std::string_view line, std::string* storage);

}  // namespace lockstep::logs
