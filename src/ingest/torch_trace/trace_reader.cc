#include "ingest/torch_trace/trace_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/torch_trace/damage.h"
#include "ingest/torch_trace/event_templates.h"
#include "ingest/torch_trace/event_text.h"
#include "ingest/torch_trace/lost_correlations.h"
#include "ingest/torch_trace/lost_times.h"
#include "ingest/torch_trace/template_matcher.h"
#include "ingest/torch_trace/text_window.h"
#include "ingest/torch_trace/top_level.h"
#include "ingest/torch_trace/trace_assembler.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kNearEnd = 2048;
/// Progress is told in portions of at least this many events, about half a window.
constexpr uint64_t kReportedEvents = 512;

/// Walks the trace's text: the top-level object, and inside it the array traceEvents, event by event.
class TraceReader {
 public:
  TraceReader(ByteSource& source, const TraceReaderOptions& options)
      : options_(options), window_(source, std::max<size_t>(options.window_bytes, 256)), assembler_(&damage_) {
    match_state_.templates = &templates_;
    match_state_.assembler = &assembler_;
    if (options.learned_templates) match_events_ = ChooseMatcher();
  }

  Result<TraceContent> Read(const std::string& display_name);

 private:
  enum class Opening : uint8_t { kObject, kList, kNeither };
  Opening ReadOpening();
  void ReadTopLevelObject();
  bool ReadMember();
  void ReadEvents();
  bool ReadEvent();
  void ResyncAfter(const char* position);

  /// Skips white space, with refills. False at the end of the data.
  bool SkipSpace();
  /// More text behind what is unread, unless the unread text is over the limit for one value.
  bool Refill() {
    return static_cast<size_t>(window_.end() - window_.begin()) < options_.max_event_bytes && window_.Refill();
  }
  EventText Text() {
    return {window_.begin(), window_.end(), window_.OffsetOf(window_.begin()), window_.at_end_of_data(), &attempt_};
  }
  /// Tells how many events were read since the last time, when they are `at_least` so many.
  void ReportEvents(uint64_t at_least) {
    const uint64_t count = assembler_.event_count() - reported_event_count_;
    if (!options_.on_events || count < at_least) return;
    options_.on_events(count);
    reported_event_count_ = assembler_.event_count();
  }
  /// Damage seen while parsing counts only when the parse came to its end: one that needs more text is done again.
  void CommitAttempt() { attempt_.MoveTo(&damage_); }
  void Truncated() {
    if (!window_.stream_error() && damage_.count(DamageKind::kTruncatedFile) == 0)
      damage_.Add(DamageKind::kTruncatedFile, window_.total_bytes());
  }

  TraceReaderOptions options_;
  Damage damage_;
  Damage attempt_;
  TextWindow window_;
  TraceAssembler assembler_;
  EventTemplates templates_;
  MatchState match_state_;
  MatchFunction match_events_ = nullptr;
  std::vector<Field> fields_;
  uint64_t reported_event_count_ = 0;
  bool found_events_ = false;
};

bool TraceReader::SkipSpace() {
  for (;;) {
    const char* cursor = window_.begin();
    while (cursor < window_.end() && (*cursor == ' ' || *cursor == '\n' || *cursor == '\r' || *cursor == '\t'))
      ++cursor;
    window_.ConsumeTo(cursor);
    if (cursor < window_.end()) return true;
    if (!window_.Refill()) return false;
  }
}

TraceReader::Opening TraceReader::ReadOpening() {
  if (!window_.Refill()) return Opening::kNeither;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::string_view(window_.begin(), window_.end()).starts_with(kByteOrderMark)) {
    window_.ConsumeTo(window_.begin() + kByteOrderMark.size());
  }
  if (!SkipSpace()) return Opening::kNeither;
  const char first = *window_.begin();
  if (first != '{' && first != '[') return Opening::kNeither;
  window_.ConsumeTo(window_.begin() + 1);
  return first == '{' ? Opening::kObject : Opening::kList;
}

Result<TraceContent> TraceReader::Read(const std::string& display_name) {
  const Opening opening = ReadOpening();
  if (opening == Opening::kObject) {
    ReadTopLevelObject();
  } else if (opening == Opening::kList && SkipSpace() && (*window_.begin() == '{' || *window_.begin() == ']')) {
    // The Chrome trace format's other form: the bare list of events.
    ReadEvents();
    found_events_ = found_events_ && assembler_.has_phases();
  }
  if (!found_events_) {
    if (window_.stream_error()) {
      Error error = *window_.stream_error();
      if (error.file.empty()) error.file = display_name;
      return error;
    }
    const char* const what = window_.total_bytes() == 0 ? "is empty" : "has no traceEvents";
    return Error{.code = ErrorCode::kCorruptData,
                 .message = std::string(what) +
                            ": not a PyTorch/Kineto trace; give the files that torch.profiler or an "
                            "on-demand capture wrote",
                 .file = display_name};
  }
  if (window_.stream_error()) {
    damage_.Add(DamageKind::kDamagedStream, window_.total_bytes(), window_.stream_error()->message);
  }
  TraceContent content = assembler_.Finish();
  if (!content.foreign.empty()) {
    return Error{.code = ErrorCode::kUnsupported, .message = std::move(content.foreign), .file = display_name};
  }
  if (content.merged_rank_count > 1) {
    return Error{
        .code = ErrorCode::kFailedPrecondition,
        .message = "holds " + std::to_string(content.merged_rank_count) +
                   " ranks in one, merged as JSON for viewers; give the traces that it was made from, or merge "
                   "them to .pftrace or .tar, which can be read again",
        .file = display_name};
  }
  content.trace.source = display_name;
  content.trace.json_bytes = window_.total_bytes();
  damage_.WriteTo(display_name, &content.ledger);
  SetAsideLostTimes(display_name, &content);
  GuessLostCorrelations(display_name, &content);
  return content;
}

void TraceReader::ReadTopLevelObject() {
  while (SkipSpace()) {
    const char first = *window_.begin();
    if (first == '}') {
      window_.ConsumeTo(window_.begin() + 1);
      if (SkipSpace()) damage_.Add(DamageKind::kTrailingData, window_.OffsetOf(window_.begin()));
      return;
    }
    if (first == ',') {
      window_.ConsumeTo(window_.begin() + 1);
      continue;
    }
    if (!ReadMember()) return;
  }
  Truncated();
}

/// Reads one `"key": value` of the top-level object. False when the text cannot be read further.
bool TraceReader::ReadMember() {
  std::string_view key;
  ValueKind kind = ValueKind::kUnknown;
  std::string_view raw;
  for (;;) {
    attempt_ = {};
    const EventText text = Text();
    bool escaped = false;
    const char* next = window_.begin();
    ParseOutcome outcome = *next == '"' ? text.ParseString(next, &key, &escaped, &next) : ParseOutcome::kBad;
    if (outcome == ParseOutcome::kOk) {
      next = text.SkipSpace(next);
      if (next == window_.end())
        outcome = ParseOutcome::kNeedMore;
      else if (*next != ':')
        outcome = ParseOutcome::kBad;
    }
    if (outcome == ParseOutcome::kOk) {
      next = text.SkipSpace(next + 1);
      if (next == window_.end()) {
        outcome = ParseOutcome::kNeedMore;
      } else if (*next == '[' && key == "traceEvents") {
        CommitAttempt();
        window_.ConsumeTo(next + 1);
        ReadEvents();
        return true;
      } else {
        outcome = text.SkipValue(next, &kind, &raw, &escaped, &next);
      }
    }
    if (outcome == ParseOutcome::kNeedMore && Refill()) continue;
    if (outcome == ParseOutcome::kOk) {
      CommitAttempt();
      ReadTopLevelMember(key, kind, raw, window_.OffsetOf(raw.data()), &damage_, &assembler_);
      window_.ConsumeTo(next);
      return true;
    }
    if (window_.at_end_of_data()) {
      Truncated();
      return false;
    }
    damage_.Add(DamageKind::kBadMetadata, window_.OffsetOf(window_.begin()));
    // Damaged metadata must not hide the events: look for them.
    constexpr std::string_view kKey = "\"traceEvents\"";
    do {
      const std::string_view rest(window_.begin() + 1, window_.end());
      if (const size_t found = rest.find(kKey); found != std::string_view::npos) {
        window_.ConsumeTo(rest.data() + found);
        break;
      }
      if (rest.size() > kKey.size()) window_.ConsumeTo(rest.data() + rest.size() - kKey.size());
    } while (window_.Refill());
    if (window_.at_end_of_data() && !std::string_view(window_.begin(), window_.end()).starts_with(kKey)) {
      return false;
    }
  }
}

void TraceReader::ReadEvents() {
  found_events_ = true;
  while (SkipSpace()) {
    ReportEvents(kReportedEvents);
    const char first = *window_.begin();
    if (first == ']') {
      ReportEvents(1);
      window_.ConsumeTo(window_.begin() + 1);
      return;
    }
    if (first == ',') {
      window_.ConsumeTo(window_.begin() + 1);
      continue;
    }
    if (first == '{' && match_events_ != nullptr) {
      const char* const stopped = match_events_(&match_state_, window_.begin(), window_.end());
      const bool moved = stopped != window_.begin();
      window_.ConsumeTo(stopped);
      if (moved && stopped == window_.end()) continue;
      // Most stops are the window's last, incomplete event: more text, and it can be matched as well.
      const bool near_end = static_cast<size_t>(window_.end() - stopped) < kNearEnd;
      if (near_end && !window_.at_end_of_data() && window_.Refill()) continue;
      if (window_.begin() == window_.end() || *window_.begin() != '{') continue;
    }
    if (!ReadEvent()) return;
  }
  Truncated();
}

/// Reads one element of the array by the general path. False at the end of the data.
bool TraceReader::ReadEvent() {
  const char* next = nullptr;
  ParseOutcome outcome = ParseOutcome::kNeedMore;
  for (;;) {
    attempt_ = {};
    const EventText text = Text();
    if (*window_.begin() == '{') {
      outcome = text.ParseObject(window_.begin(), &fields_, &next);
    } else {
      outcome = ParseOutcome::kBad;
    }
    if (outcome != ParseOutcome::kNeedMore || !Refill()) break;
  }
  if (outcome == ParseOutcome::kOk) {
    CommitAttempt();
    const auto understood = assembler_.AddEvent(fields_, window_.OffsetOf(window_.begin()), window_.begin());
    if (match_events_ != nullptr) templates_.Learn(window_.begin(), next, fields_, understood);
    window_.ConsumeTo(next);
    return true;
  }
  if (outcome == ParseOutcome::kNeedMore && window_.at_end_of_data() &&
      std::string_view(window_.begin() + 1, window_.end()).find("\"ph\"", 16) == std::string_view::npos) {
    Truncated();
    window_.ConsumeTo(window_.end());
    return false;
  }
  const bool oversized = outcome == ParseOutcome::kNeedMore && !window_.at_end_of_data();
  damage_.Add(oversized ? DamageKind::kOversizedEvent : DamageKind::kBadEvent, window_.OffsetOf(window_.begin()));
  ResyncAfter(window_.begin() + 1);
  return true;
}

/// Moves to the next place that looks like the beginning of an event: a brace followed by a key that events have.
void TraceReader::ResyncAfter(const char* position) {
  window_.ConsumeTo(position);
  // An opening, and the phase behind it: as much text must be there to decide the same way in every window.
  constexpr size_t kPhaseBytes = 512;
  constexpr size_t kLongestOpening = kPhaseBytes + 64;
  for (;;) {
    const char* cursor = window_.begin();
    while (cursor < window_.end()) {
      cursor = static_cast<const char*>(std::memchr(cursor, '{', static_cast<size_t>(window_.end() - cursor)));
      if (cursor == nullptr) break;
      if (static_cast<size_t>(window_.end() - cursor) < kLongestOpening && !window_.at_end_of_data()) break;
      const char* key = cursor + 1;
      while (key < window_.end() && (*key == ' ' || *key == '\n' || *key == '\r' || *key == '\t')) ++key;
      const std::string_view rest(key, window_.end());
      if (rest.starts_with("\"ph\"") || rest.starts_with("\"name\"") || rest.starts_with("\"cat\"")) {
        // "name" also begins nested objects; an event has its phase close by.
        if (rest.substr(0, kPhaseBytes).find("\"ph\"") != std::string_view::npos) {
          window_.ConsumeTo(cursor);
          return;
        }
      }
      ++cursor;
    }
    window_.ConsumeTo(cursor == nullptr ? window_.end() : cursor);
    // The last look is at the end of the data, where openings may be short.
    const bool was_at_end = window_.at_end_of_data();
    if (!window_.Refill() && was_at_end) {
      window_.ConsumeTo(window_.end());
      return;
    }
  }
}

}  // namespace

Result<TraceContent> ReadTrace(ByteSource& source, const std::string& display_name, const TraceReaderOptions& options) {
  TraceReader reader(source, options);
  return reader.Read(display_name);
}

}  // namespace lockstep::ingest
