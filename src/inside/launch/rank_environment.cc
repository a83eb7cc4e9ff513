#include "inside/launch/rank_environment.h"

#include <fmt/format.h>

namespace lockstep::launch {

const char* LauncherName(Launcher launcher) { return launchers::RowOf(launcher).name; }

bool StartsMpiRanks(Launcher launcher) { return *launchers::RowOf(launcher).mpi_command != '\0'; }

RankIdentity FindRank(const Environment& environment) {
  const launchers::FoundRank found = launchers::FindRank([&](const char* name) { return environment.Get(name); },
                                                         launchers::Viewpoint::kBeforeProgram);
  const launchers::LauncherRow& row = launchers::RowOf(found.launcher);
  RankIdentity identity{.launcher = found.launcher,
                        .rank = found.rank,
                        .world_size = found.world_size,
                        .local_rank = found.local_rank,
                        .local_size = found.local_size,
                        .node = found.node,
                        .rank_variable = row.rank};
  if (found.launcher == Launcher::kTorchrun)
    identity.restart = environment.Number("TORCHELASTIC_RESTART_COUNT").value_or(0);
  if (found.passed_over != Launcher::kAlone) {
    const launchers::LauncherRow& other = launchers::RowOf(found.passed_over);
    const std::string_view size = launchers::FirstName(other.world_size);
    identity.notes.push_back(fmt::format("{}={} of {}={} is ignored for {}={}; if it is a leftover, unset both",
                                         other.rank, environment.Get(other.rank), size, environment.Get(size), row.rank,
                                         *found.rank));
  }
  if (found.refused_size) {
    identity.notes.push_back(fmt::format("{}={} is not below the world size {}, which is ignored", row.rank,
                                         *found.rank, *found.refused_size));
  }
  return identity;
}

}  // namespace lockstep::launch
