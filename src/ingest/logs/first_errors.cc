#include "ingest/logs/first_errors.h"

namespace lockstep::logs {

void FirstErrors::Add(const LogLine& line) {
  if (line.level < Level::kError || !seen_.emplace(line.rank.value_or(-1), true).second) return;
  lines_.push_back({.time_unix_ns = line.time_unix_ns,
                    .has_time = line.has_time,
                    .level = line.level,
                    .ranks = line.rank ? std::vector<int32_t>{*line.rank} : std::vector<int32_t>{},
                    .host = std::string(line.host),
                    .source = std::string(line.source),
                    .text = std::string(line.text)});
}

}  // namespace lockstep::logs
