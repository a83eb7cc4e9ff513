#include "ingest/nsight/rank_environment.h"

#include "base/launchers/launchers.h"

namespace lockstep::ingest::nsight {

LaunchFacts ReadLaunch(const Environment& environment) {
  std::string text;
  const auto get = [&](const char* name) -> std::string_view { return text = environment(name).value_or(""); };
  const launchers::FoundRank found = launchers::FindRank(get, launchers::Viewpoint::kInProgram);
  // A report says the rank elsewhere too: what contradicts itself, and a step of one task, which may be one of many
  // that start a rank each, are worth less than that.
  const bool is_step_of_one = found.launcher == launchers::Launcher::kSlurm && found.world_size.value_or(1) == 1;
  if (!found.rank || found.refused_size || is_step_of_one) return {};
  return {.rank = found.rank, .world_size = found.world_size, .variable = launchers::RowOf(found.launcher).rank};
}

std::optional<std::string> FindVariable(std::string_view joined, std::string_view name) {
  // Until schema 3 variables stand on lines of their own.
  constexpr std::string_view kSeparators(";\n\0", 3);
  for (size_t at = joined.find(name); at != std::string_view::npos; at = joined.find(name, at + 1)) {
    const size_t equals = at + name.size();
    if (at > 0 && kSeparators.find(joined[at - 1]) == std::string_view::npos) continue;
    if (equals >= joined.size() || joined[equals] != '=') continue;
    const std::string_view value = joined.substr(equals + 1);
    return std::string(value.substr(0, value.find_first_of(kSeparators)));
  }
  return std::nullopt;
}

}  // namespace lockstep::ingest::nsight
