#include "node/agent/log_metrics/log_meter.h"

#include "ingest/rank_log/line_prefix.h"
#include "ingest/rank_log/log_rules.h"
#include "model/log_line/line.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostLineBytes = 16'384;  // Longer lines are looked at to here.
constexpr std::string_view kTraceback = "Traceback (most recent call last):";

}  // namespace

void LogMeter::Break() {
  begun_.clear();
  in_traceback_ = false;
  levels_ = {};
}

void LogMeter::Take(std::string_view bytes, bool skips_own, const CountsOf& counts_of) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const bool is_whole = end != std::string_view::npos;
    bytes.remove_prefix(is_whole ? end + 1 : bytes.size());
    if (is_whole && begun_.empty()) {
      TakeLine(part.substr(0, kMostLineBytes), skips_own, counts_of);
      continue;
    }
    begun_.append(part.substr(0, kMostLineBytes - begun_.size()));
    if (!is_whole) continue;
    TakeLine(begun_, skips_own, counts_of);
    begun_.clear();
  }
}

void LogMeter::TakeLine(std::string_view line, bool skips_own, const CountsOf& counts_of) {
  line = ingest::WithoutColour(line, &colourless_);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const auto parsed = logs::ParseLine(line, &json_text_);
  if (parsed && skips_own) return;
  const ingest::PrefixedLine prefixed = ingest::TakePrefixes(parsed ? parsed->text : line);
  const std::string_view text = prefixed.text;
  std::optional<int32_t> rank = parsed ? parsed->head.rank : std::nullopt;
  if (!rank && prefixed.rank && !prefixed.is_weak) rank = prefixed.rank;
  LogCounts* const counts = counts_of(rank);
  const logs::Level said = levels_.Next(text);
  const logs::Level level = parsed ? parsed->head.level : said;
  const bool begins_traceback = text.find(kTraceback) != std::string_view::npos;
  // Frames, and the exception that ends them, are of the error that the traceback is.
  const bool goes_on = in_traceback_ && !begins_traceback;
  if (begins_traceback) {
    in_traceback_ = true;
  } else if (in_traceback_ && !text.empty() && text.front() != ' ' && text.front() != '\t') {
    in_traceback_ = false;
  }
  if (counts == nullptr) return;
  ++counts->lines[static_cast<size_t>(level)];
  if (level >= logs::Level::kError && !goes_on) ++counts->errors;
  if (text.empty()) return;
  if (const auto event = ingest::MatchLogLine(text)) ++counts->events[event->kind];
}

}  // namespace lockstep::agent
