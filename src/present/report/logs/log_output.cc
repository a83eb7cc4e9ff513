#include "present/report/logs/log_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/nanoseconds.h"
#include "base/utf8.h"
#include "model/log_line/line.h"

namespace lockstep::report {
namespace {

constexpr size_t kBufferBytes = size_t{128} << 10;

/// Whether it can go to a terminal as it is.
bool IsPlain(std::string_view text) {
  unsigned char odd = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    odd |= static_cast<unsigned char>(static_cast<unsigned char>(byte - 0x20) >= 0x5f);
  }
  return odd == 0;
}

/// Terminals' commands ("ESC [ ... m") taken out.
std::string WithoutCommands(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '[') {
      for (i += 2; i < text.size() && (text[i] < '@' || text[i] > '~');) ++i;
    }
  }
  return plain;
}

void AppendPrintable(std::string_view text, std::string* out) {
  if (IsPlain(text)) {
    out->append(text);
    return;
  }
  std::string plain = WithoutCommands(text);
  std::replace(plain.begin(), plain.end(), '\t', ' ');
  out->append(Printable(plain));
}

void AppendInt(int64_t value, std::string* out) {
  const fmt::format_int text(value);
  out->append(text.data(), text.size());
}

void AppendStrings(const std::vector<std::string>& texts, std::string* out) {
  out->push_back('[');
  for (const std::string& text : texts) {
    out->append(&text == &texts.front() ? "\"" : ",\"");
    logs::AppendJsonText(text, out);
    out->push_back('"');
  }
  out->push_back(']');
}

}  // namespace

void AppendRanks(const std::vector<int32_t>& ranks, std::string* out) {
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) out->push_back(',');
    AppendInt(ranks[i], out);
    if (last > i) {
      out->push_back('-');
      AppendInt(ranks[last], out);
    }
    i = last + 1;
  }
}

void LogOutput::Flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
  out_.flush();
}

void LogOutput::WriteFull() {
  if (buffer_.size() < kBufferBytes) return;
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

void LogText::AppendTime(const logs::FoldedLine& line) {
  if (!line.has_time) {
    buffer_.append("- ");
    return;
  }
  int64_t seconds = line.time_unix_ns / kSecondNs;
  if (line.time_unix_ns % kSecondNs < 0) --seconds;
  if (seconds != second_) {
    date_ = logs::DateText(line.time_unix_ns) + '.';
    second_ = seconds;
  }
  buffer_.append(date_);
  char digits[8] = {};
  int64_t rest = (line.time_unix_ns - seconds * kSecondNs) / 1'000;
  for (int i = 5; i >= 0; --i, rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
  digits[6] = 'Z';
  digits[7] = ' ';
  buffer_.append(digits, 8);
}

void LogText::Line(const logs::FoldedLine& line) {
  const bool is_bad = line.level >= logs::Level::kError;
  const bool is_painted = colour_ && line.level >= logs::Level::kWarning;
  AppendTime(line);
  if (is_painted) buffer_.append(is_bad ? "\x1b[31m" : "\x1b[33m");
  buffer_.push_back(logs::LevelLetter(line.level));
  if (line.ranks.empty()) {
    buffer_.push_back(' ');
    AppendPrintable(line.host.empty() ? "?" : line.host, &buffer_);
  } else {
    buffer_.append(line.ranks.size() == 1 ? " rank " : " ranks ");
    AppendRanks(line.ranks, &buffer_);
  }
  if (!line.source.empty() && line.source != "out" && line.source != "err") {
    buffer_.append(" [");
    AppendPrintable(line.source, &buffer_);
    buffer_.push_back(']');
  }
  buffer_.append(": ");
  AppendText(line);
  if (is_painted) buffer_.append("\x1b[0m");
  buffer_.push_back('\n');
  WriteFull();
}

/// The lines of a message that has several stand below each other.
void LogText::AppendText(const logs::FoldedLine& line) {
  std::string_view text = line.text;
  for (;;) {
    const size_t end = text.find('\n');
    AppendPrintable(text.substr(0, end), &buffer_);
    if (end == std::string_view::npos) return;
    buffer_.append("\n    ");
    text.remove_prefix(end + 1);
  }
}

void LogJson::Write(const char* event, const logs::FoldedLine& line) {
  buffer_.append("{\"schema\":\"lockstep.logs/1\",\"event\":\"");
  buffer_.append(event);
  buffer_.append("\",\"time_unix_ns\":");
  if (line.has_time) {
    AppendInt(line.time_unix_ns, &buffer_);
  } else {
    buffer_.append("null");
  }
  buffer_.append(",\"level\":\"");
  buffer_.append(logs::LevelName(line.level));
  buffer_.append("\",\"ranks\":[");
  for (size_t i = 0; i < line.ranks.size(); ++i) {
    if (i > 0) buffer_.push_back(',');
    AppendInt(line.ranks[i], &buffer_);
  }
  buffer_.push_back(']');
  const auto text_or_null = [this](const char* key, const std::string& text) {
    buffer_.append(key);
    if (text.empty()) {
      buffer_.append("null");
      return;
    }
    buffer_.push_back('"');
    logs::AppendJsonText(text, &buffer_);
    buffer_.push_back('"');
  };
  text_or_null(",\"host\":", line.host);
  text_or_null(",\"source\":", line.source);
  buffer_.append(",\"text\":\"");
  logs::AppendJsonText(line.text, &buffer_);
  buffer_.append("\"}\n");
  WriteFull();
}

void LogJson::End(const LogSummary& summary) {
  const logs::LogCounts& counts = summary.counts;
  fmt::format_to(std::back_inserter(buffer_),
                 "{{\"schema\":\"lockstep.logs/1\",\"event\":\"summary\",\"log_count\":{},\"line_count\":{},"
                 "\"wanted_count\":{},\"untimed_count\":{},\"bytes\":{},\"clock\":\"{}\",\"partial\":{},\"problems\":",
                 summary.log_count, counts.line_count, counts.wanted_count, counts.untimed_count, counts.byte_count,
                 summary.is_aligned ? "aligned" : "wall", counts.problems.empty() ? "false" : "true");
  AppendStrings(counts.problems, &buffer_);
  buffer_.append(",\"clock_steps\":");
  AppendStrings(counts.clock_steps, &buffer_);
  buffer_.append("}\n");
}

}  // namespace lockstep::report
