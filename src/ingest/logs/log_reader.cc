#include "ingest/logs/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/calendar.h"
#include "base/nanoseconds.h"
#include "base/text_scan.h"
#include "ingest/rank_log/line_prefix.h"

namespace lockstep::logs {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kMostLineBytes = size_t{1} << 20;  ///< Longer ones are cut.
constexpr int64_t kClockStep_ns = 50'000'000;
constexpr size_t kMostNotes = 100;
constexpr int kMostAttempts = 10;  ///< Rotations that may come in the middle of a look.
constexpr int64_t kDay_ns = 24 * kHourNs;

/// Whether half of the lines begin with a number and ": ": srun --label.
bool HasWeakRanks(std::string_view text) {
  size_t lines = 0, weak = 0;
  LineScanner scanner(text.substr(0, size_t{64} << 10));
  for (std::string_view line; scanner.Next(&line); ++lines) {
    const ingest::PrefixedLine prefixed = ingest::TakePrefixes(line);
    if (prefixed.rank && prefixed.is_weak) ++weak;
  }
  return weak * 2 >= lines && weak > 0;
}

}  // namespace

LogReader::LogReader(LogFamily family, const LogFilter& filter, ClockOffset offset)
    : family_(std::move(family)), filter_(filter), offset_(std::move(offset)) {}

bool LogReader::Next(LogLine* line, bool follows) {
  for (std::string_view bytes; NextBytes(&bytes, follows);) {
    ++counts_.line_count;
    if (!Understand(bytes, line)) continue;
    ++counts_.wanted_count;
    return true;
  }
  return false;
}

bool LogReader::NextBytes(std::string_view* line, bool follows) {
  for (size_t searched = 0;;) {
    const char* from = buffer_.data() + begin_;
    const size_t held = end_ - begin_;
    const void* found = held > searched ? std::memchr(from + searched, '\n', held - searched) : nullptr;
    if (found != nullptr) {
      const auto size = static_cast<size_t>(static_cast<const char*>(found) - from);
      *line = std::string_view(from, size);
      begin_ += size + 1;
      if (line->ends_with('\r')) line->remove_suffix(1);
      return true;
    }
    if (held >= kMostLineBytes) {
      *line = std::string_view(from, kMostLineBytes);
      begin_ += kMostLineBytes;
      return true;
    }
    searched = held;
    if (Refill(follows)) continue;
    // What was written between the last look and its rotation is read before the next is opened.
    if (follows && next_file_ >= family_.files.size() && TakeUpRotated() && Refill(follows)) continue;
    // The last line of a file may have no end, unless it is being written.
    const bool is_last = next_file_ >= family_.files.size();
    if (held > 0 && is_at_file_end_ && !(follows && is_last)) {
      *line = std::string_view(buffer_.data() + begin_, held);
      begin_ = end_;
      return true;
    }
    if (!OpenNext()) return false;
    searched = 0;
  }
}

bool LogReader::Refill(bool follows) {
  if (source_ == nullptr || (is_at_file_end_ && !follows)) return false;
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() - end_ < kBufferBytes / 2) buffer_.resize(std::max(kBufferBytes, buffer_.size() * 2));
  const Result<size_t> got = source_->Read({buffer_.data() + end_, buffer_.size() - end_});
  if (!got) {
    Problem(current_.path, got.error());
    source_.reset();
    is_at_file_end_ = true;
    return false;
  }
  // A decoder hands out what it has before it tells what is wrong.
  const bool is_plain = source_->compression() == ingest::Compression::kNone;
  is_at_file_end_ = *got == 0 || (is_plain && *got < buffer_.size() - end_);
  end_ += *got;
  counts_.byte_count += *got;
  if (*got > 0 && std::exchange(is_first_fill_, false)) {
    has_weak_ranks_ = HasWeakRanks({buffer_.data() + begin_, end_ - begin_});
  }
  return *got > 0;
}

bool LogReader::OpenNext() {
  while (next_file_ < family_.files.size()) {
    LogFile file = family_.files[next_file_++];
    auto source = OpenAsItIsNow(&file);
    if (!source) {
      Problem(file.path, source.error());
      continue;
    }
    source_ = std::move(*source);
    current_ = std::move(file);
    is_at_file_end_ = false;
    is_first_fill_ = true;
    has_weak_ranks_ = false;
    begin_ = end_ = 0;
    return true;
  }
  return false;
}

/// It may have been rotated and compressed since it was listed, and may be just now: its number stays.
Result<std::unique_ptr<ingest::ByteSource>> LogReader::OpenAsItIsNow(LogFile* file) const {
  Error error{.code = ErrorCode::kNotFound, .message = "no longer exists: it was rotated away while it was read"};
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto found = FindFile(family_.path, *file, false);
    if (!found && NumberOf(file->path) != file->number) break;
    if (found) file->path = found->path;
    auto source = ingest::OpenFile(file->path, {});
    if (!source) {
      error = source.error();
      if (error.code != ErrorCode::kNotFound) break;
    } else if (NumberOf(file->path) == file->number) {
      return source;
    }
  }
  return error;
}

/// Whether the log that was written is another file by now: those that came after it are put into the list.
bool LogReader::TakeUpRotated() {
  const auto written = NumberOf(family_.path);
  // A file that is being written is not compressed, and no other file gets the inode number of an open file.
  const bool is_plain = !current_.path.ends_with(".gz");
  if (!written || (is_plain && *written == current_.number)) return false;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto ours = FindFile(family_.path, current_, is_plain);
    std::vector<LogFile> later;
    for (int32_t age = ours ? ours->age - 1 : 0; age >= 0; --age) {
      if (auto file = FileOfAge(family_.path, age)) later.push_back(std::move(*file));
    }
    // Another rotation in the middle would have moved one past us.
    const auto still = FindFile(family_.path, current_, is_plain);
    if (ours.has_value() != still.has_value() || (ours && ours->age != still->age)) continue;
    for (LogFile& file : later) family_.files.push_back(std::move(file));
    break;
  }
  return next_file_ < family_.files.size();
}

bool LogReader::Understand(std::string_view bytes, LogLine* line) {
  if (const auto parsed = ParseLine(bytes, &storage_)) {
    const LineHead& head = parsed->head;
    LookAtClock(head);
    if (head.host != host_) host_.assign(head.host);
    line->level = head.level;
    line->rank = head.rank ? head.rank : family_.rank;
    line->host = head.host;
    line->source = head.source;
    line->text = parsed->text;
    if (line->text.starts_with('[')) {
      const ingest::PrefixedLine prefixed = ingest::TakePrefixes(line->text);
      // Its own name before each of its lines would keep those of ranks apart that say the same.
      line->text = prefixed.text;
      if (!line->rank) line->rank = prefixed.rank;
    }
    if (line->rank) last_rank_ = line->rank;
    SetTime(head.time_unix_ns, line);
  } else {
    ReadPlain(bytes, line);
  }
  return filter_.Wants(line->level, line->rank, line->text);
}

void LogReader::ReadPlain(std::string_view bytes, LogLine* line) {
  const std::string_view plain = ingest::WithoutColour(bytes, &colourless_);
  const ingest::PrefixedLine prefixed = ingest::TakePrefixes(plain);
  const bool is_prefixed = prefixed.rank && (!prefixed.is_weak || has_weak_ranks_);
  line->text = prefixed.is_weak && !has_weak_ranks_ ? plain : prefixed.text;
  line->rank = is_prefixed ? prefixed.rank : family_.rank;
  line->level = levels_.Next(line->text);
  line->host = {};
  line->source = {};
  if (line->rank) last_rank_ = line->rank;
  if (const auto time_ns = ingest::TimeOfLine(line->text)) return SetTime(*time_ns, line);
  if (const auto glog = ingest::ReadGlogHead(line->text)) {
    // It leaves the year out: that of the line above, else of the file.
    const int64_t near_ns = last_time_ns_.value_or(current_.modified_ns);
    const int year = static_cast<int>(1970 + near_ns / kDay_ns * 400 / 146'097);
    return SetTime(DaysFromEpoch(year, glog->month, glog->day) * kDay_ns + glog->time_of_day_ns, line);
  }
  line->has_time = last_time_ns_.has_value();
  line->time_unix_ns = last_time_ns_.value_or(INT64_MIN);
  if (!last_time_ns_) ++counts_.untimed_count;
}

void LogReader::SetTime(int64_t time_ns, LogLine* line) {
  const int64_t corrected_ns = time_ns - (offset_ ? offset_(line->rank) : 0);
  last_time_ns_ = std::max(corrected_ns, last_time_ns_.value_or(corrected_ns));
  line->time_unix_ns = *last_time_ns_;
  line->has_time = true;
}

/// Wall clocks are set now and then; the monotonic one tells.
void LogReader::LookAtClock(const LineHead& head) {
  if (!head.monotonic_ns) return;
  const int64_t difference_ns = head.time_unix_ns - *head.monotonic_ns;
  if (clock_difference_ns_ && std::abs(difference_ns - *clock_difference_ns_) > kClockStep_ns &&
      counts_.clock_steps.size() < kMostNotes) {
    counts_.clock_steps.push_back(
        fmt::format("{}: the clock of {} was set by {:+.3f} s at {}Z", family_.path, head.host,
                    static_cast<double>(difference_ns - *clock_difference_ns_) / 1e9, DateText(head.time_unix_ns)));
  }
  clock_difference_ns_ = difference_ns;
}

void LogReader::Problem(const std::string& path, const Error& error) {
  if (counts_.problems.size() >= kMostNotes) return;
  Error placed = error;
  if (placed.file.empty()) placed.file = path;
  if (!placed.rank) placed.rank = rank();
  counts_.problems.push_back(placed.ToString());
}

}  // namespace lockstep::logs
