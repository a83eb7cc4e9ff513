#include "inside/logger/logger.h"

#include <utility>
#include <vector>

#include "inside/launch/environment.h"
#include "inside/launch/rank_environment.h"
#include "inside/logger/rank_sink.h"

namespace lockstep {

std::shared_ptr<Logger> Logger::Create(const LoggerOptions& options) {
  const launch::Environment environment = launch::Environment::Own();
  LoggerOptions known = options;
  if (!known.rank) known.rank = launch::FindRank(environment).rank;
  const bool is_captured = known.folder.empty() && environment.Has("LOCKSTEP_LOG_DIR");
  std::vector<spdlog::sink_ptr> sinks;
  if (!known.folder.empty()) sinks.push_back(std::make_shared<RankFileSink>(known));
  if (is_captured || (known.is_on_console && known.rank.value_or(0) == 0)) {
    sinks.push_back(std::make_shared<RankConsoleSink>(known.rank));
  }
  return std::shared_ptr<Logger>(new Logger(known.name, sinks.begin(), sinks.end()));
}

std::string Logger::path() const {
  for (const spdlog::sink_ptr& sink : sinks()) {
    if (auto* file = dynamic_cast<RankFileSink*>(sink.get())) return file->path();
  }
  return {};
}

}  // namespace lockstep
