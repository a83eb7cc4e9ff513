#include "ingest/rank_log/rank_log.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/calendar.h"
#include "base/nanoseconds.h"
#include "base/text_scan.h"
#include "base/utf8.h"
#include "ingest/rank_log/line_prefix.h"
#include "ingest/rank_log/log_rules.h"
#include "model/log_line/line.h"

namespace lockstep::ingest {
namespace {

using evidence::LogEvent;
using evidence::LogEventKind;

constexpr size_t kMaxTextBytes = 1'024;
constexpr size_t kMaxLineBytes = 16'384;  ///< Longer lines are looked at to here.
constexpr size_t kFirstOfKind = 29;       ///< And as many of the last: 17 kinds stay below 1,000.

std::string Shortened(std::string_view text) {
  return ValidUtf8(text.substr(0, kMaxTextBytes)).substr(0, kMaxTextBytes);
}

/// A traceback that is being read; ranks mix theirs line by line, so each prefix has its own.
struct Traceback {
  bool open = false;
  evidence::StackFrame user;
};

/// torchrun's summary, field by field.
struct Failure {
  std::optional<int32_t> rank;
  std::optional<int64_t> time_unix_ns;
};

class LogReader {
 public:
  explicit LogReader(std::string_view file_name) : file_name_(file_name) {}

  RankLogEvents Read(std::string_view text) {
    LineScanner lines(text);
    std::string storage;
    for (std::string_view raw; lines.Next(&raw);) {
      number_ = lines.number();
      const std::string_view plain = WithoutColour(raw.substr(0, kMaxLineBytes), &storage);
      if (plain.size() < 4) continue;
      // A line of `lockstep run --logs` or of our loggers says whose it is and when it was.
      head_ = {};
      const auto parsed = logs::ParseLine(plain, &json_text_);
      if (parsed) head_ = parsed->head;
      ReadLine(parsed ? parsed->text : plain);
    }
    RankLogEvents result;
    result.line_count = lines.number();
    for (auto& [kind, kept] : kept_) {
      std::move(kept.first.begin(), kept.first.end(), std::back_inserter(result.events));
      std::move(kept.last.begin(), kept.last.end(), std::back_inserter(result.events));
      result.dropped_count += kept.dropped;
    }
    std::stable_sort(result.events.begin(), result.events.end(),
                     [](const LogEvent& a, const LogEvent& b) { return a.line < b.line; });
    result.world_size = world_size_;
    // srun labels every line, or none.
    if (weak_count_ * 2 < result.line_count) {
      for (LogEvent& event : result.events) {
        if (weak_lines_.count(event.line) > 0) event.rank.reset();
      }
    } else {
      ranks_.merge(weak_ranks_);
    }
    result.prefixed_ranks.assign(ranks_.begin(), ranks_.end());
    return result;
  }

 private:
  struct Kept {
    std::vector<LogEvent> first;
    std::deque<LogEvent> last;
    uint64_t dropped = 0;
  };

  void ReadLine(std::string_view line) {
    PrefixedLine prefixed = TakePrefixes(line);
    if (head_.rank) {
      prefixed.rank = head_.rank;
      prefixed.is_weak = false;
    }
    if (prefixed.rank) {
      std::set<int32_t>& ranks = prefixed.is_weak ? weak_ranks_ : ranks_;
      if (ranks.size() < kMaxRanks) ranks.insert(*prefixed.rank);
      if (prefixed.is_weak) ++weak_count_;
    }
    is_weak_ = prefixed.is_weak;
    const std::string_view text = prefixed.text;
    ReadWorldSize(text);
    if (ReadTraceback(prefixed, line) || ReadSummary(text)) return;
    const auto glog = ReadGlogHead(text);
    if (auto event = MatchLogLine(text)) {
      if (prefixed.rank && event->kind != LogEventKind::kSignal) event->rank = prefixed.rank;
      if (!event->rank) event->rank = prefixed.rank;
      Add(std::move(*event), line, glog);
    } else if (IsErrorLevel(text, glog) && !IsMereConsequence(text)) {
      LogEvent other;
      other.rank = prefixed.rank;
      Add(std::move(other), line, glog);
    }
  }

  static bool IsErrorLevel(std::string_view text, const std::optional<GlogHead>& glog) {
    if (glog) return glog->level == 'E' || glog->level == 'F';
    const std::string_view head = text.substr(0, 96);
    return head.starts_with("ERROR") || head.starts_with("FATAL") || head.find("[ERROR]") != std::string_view::npos ||
           head.find(" - ERROR - ") != std::string_view::npos || head.find(" ERROR ") != std::string_view::npos ||
           head.starts_with("terminate called after throwing");
  }

  /// True: the line belongs to a traceback and is done with.
  bool ReadTraceback(const PrefixedLine& prefixed, std::string_view line) {
    const std::string_view text = prefixed.text;
    if (text.find("Traceback (most recent call last):") != std::string_view::npos) {
      if (tracebacks_.size() < kMaxRanks || tracebacks_.count(prefixed.rank.value_or(-1)) > 0) {
        tracebacks_[prefixed.rank.value_or(-1)] = {.open = true, .user = {}};
      }
      return true;
    }
    const auto found = tracebacks_.find(prefixed.rank.value_or(-1));
    if (found == tracebacks_.end() || !found->second.open) return false;
    Traceback& traceback = found->second;
    TextCursor cursor(text);
    cursor.SkipBlanks();
    cursor.Skip("| ");  // Of an exception group.
    cursor.SkipBlanks();
    if (cursor.Skip("File \"")) {
      const auto file = cursor.Until("\", line ");
      const auto number = cursor.Number<int32_t>();
      if (file && number && IsUserFile(*file)) {
        traceback.user.file = Shortened(*file);
        traceback.user.line = *number;
        if (cursor.Skip(", in ")) traceback.user.function = Shortened(cursor.rest());
      }
      return true;
    }
    if (text.empty() || text.front() == ' ' || text.front() == '\t') return true;  // Source, marks below it.
    traceback.open = false;
    if (!IsExceptionLine(text)) return false;
    if (IsMereConsequence(text)) return true;
    LogEvent raised;
    raised.kind = LogEventKind::kException;
    LogEvent event = MatchLogLine(text).value_or(std::move(raised));
    if (event.kind != LogEventKind::kSignal || !event.rank) event.rank = prefixed.rank;
    event.frame = std::move(traceback.user);
    Add(std::move(event), line, std::nullopt);
    return true;
  }

  /// "RuntimeError: ...", "torch.distributed.DistBackendError: ...", "KeyboardInterrupt".
  static bool IsExceptionLine(std::string_view text) {
    const std::string_view name = text.substr(0, text.find(':'));
    return !name.empty() && name.size() < 200 &&
           std::all_of(name.begin(), name.end(), [](char c) { return IsAlphanumeric(c) || c == '_' || c == '.'; });
  }

  /// torchrun's error summary: "  rank      : 3 (local_rank: 3)", "  exitcode  : -9 (pid: 12345)".
  bool ReadSummary(std::string_view text) {
    if (!text.starts_with("  ")) return false;
    TextCursor cursor(text);
    cursor.SkipBlanks();
    const auto field = [&cursor](std::string_view name) {
      TextCursor at = cursor;
      if (!at.Skip(name)) return false;
      at.SkipBlanks();
      if (!at.Skip(": ")) return false;
      cursor = at;
      return true;
    };
    if (field("time")) {
      failure_ = {.rank = {}, .time_unix_ns = TimeOfLine(cursor.rest())};
    } else if (field("rank")) {
      failure_.rank = cursor.Number<int32_t>();
      if (failure_.rank && *failure_.rank < 0) failure_.rank.reset();
    } else if (field("exitcode")) {
      AddFailure(cursor);
    } else {
      return false;
    }
    return true;
  }

  void AddFailure(TextCursor cursor) {
    const std::string_view text = cursor.rest();
    const auto code = cursor.Number();
    // The root cause stands in the list of failures or apart: each rank once.
    if (!code || !failure_.rank || !failed_.insert(*failure_.rank).second || failed_.size() > kMaxRanks) return;
    LogEvent event;
    event.rank = failure_.rank;
    event.time_unix_ns = failure_.time_unix_ns;
    if (*code < 0 && *code >= -64) event.signal = static_cast<int32_t>(-*code);
    if (*code > 128 && *code <= 192) event.signal = static_cast<int32_t>(*code - 128);
    if (*code >= 0 && *code < 256) event.exit_status = static_cast<int32_t>(*code);
    event.kind = event.signal != 0 ? LogEventKind::kSignal : LogEventKind::kOtherError;
    const std::string line = "rank " + std::to_string(*failure_.rank) + " exitcode: " + std::string(text);
    Add(std::move(event), line, std::nullopt);
  }

  void ReadWorldSize(std::string_view text) {
    constexpr int32_t kMost = 1 << 20;
    const auto take = [this](std::optional<int32_t> size) {
      if (size && *size > 0 && *size <= kMost) world_size_ = std::max(world_size_.value_or(0), *size);
    };
    TextCursor gloo(text);
    if (gloo.SkipPast("Expected number of connected peers is: ")) {
      const auto peers = gloo.Number<int32_t>();
      if (peers && *peers < kMost) take(*peers + 1);
    }
    TextCursor clients(text);
    if (clients.SkipPast("waiting for clients. ") && clients.SkipPast("/")) take(clients.Number<int32_t>());
    for (const std::string_view mark : {"world_size", "WORLD_SIZE"}) {
      TextCursor cursor(text);
      if (!cursor.SkipPast(mark)) continue;
      while (cursor.Skip("=") || cursor.Skip(":") || cursor.Skip(" ") || cursor.Skip("'") || cursor.Skip("\"")) {
      }
      take(cursor.Number<int32_t>());
    }
  }

  void Add(LogEvent event, std::string_view line, const std::optional<GlogHead>& glog) {
    if (!event.time_unix_ns && head_.time_unix_ns != 0) event.time_unix_ns = head_.time_unix_ns;
    if (!event.time_unix_ns) event.time_unix_ns = TimeOfLine(line);
    if (event.time_unix_ns) {
      last_full_ns_ = event.time_unix_ns;
    } else if (glog && last_full_ns_) {
      // glog leaves the year out; another line of the file has told it.
      const int year = static_cast<int>(1970 + *last_full_ns_ / kSecondNs / 86'400 * 400 / 146'097);
      event.time_unix_ns = DaysFromEpoch(year, glog->month, glog->day) * 24 * kHourNs + glog->time_of_day_ns;
    }
    if (is_weak_ && event.kind != LogEventKind::kSignal) weak_lines_.insert(number_);
    event.file = std::string(file_name_);
    event.line = number_;
    event.text = Shortened(line);
    for (std::string* named : {&event.peer, &event.group, &event.operation}) *named = ValidUtf8(*named);
    Kept& kept = kept_[event.kind];
    if (kept.first.size() < kFirstOfKind) {
      kept.first.push_back(std::move(event));
      return;
    }
    kept.last.push_back(std::move(event));
    if (kept.last.size() <= kFirstOfKind) return;
    kept.last.pop_front();
    ++kept.dropped;
  }

  static constexpr size_t kMaxRanks = 65'536;
  std::string_view file_name_;
  uint64_t number_ = 0;
  std::map<LogEventKind, Kept> kept_;
  std::map<int32_t, Traceback> tracebacks_;  ///< By prefix, -1 = none.
  Failure failure_;
  std::set<int32_t> failed_;
  std::set<int32_t> ranks_;
  std::set<int32_t> weak_ranks_;
  std::set<uint64_t> weak_lines_;  ///< Of events.
  uint64_t weak_count_ = 0;
  bool is_weak_ = false;  ///< The line in hand.
  logs::LineHead head_;   ///< Of the line in hand, where it has one of ours.
  std::string json_text_;
  std::optional<int32_t> world_size_;
  std::optional<int64_t> last_full_ns_;
};

}  // namespace

RankLogEvents ReadRankLog(std::string_view text, std::string_view file_name) { return LogReader(file_name).Read(text); }

}  // namespace lockstep::ingest
