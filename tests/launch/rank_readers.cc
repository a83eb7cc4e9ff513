// Says what each reader of launchers' variables makes of environments: rank, world size and local rank, "-" where it
// says none. In: NAME=VALUE lines, an empty line behind each environment. Out: a line "READER RANK SIZE LOCAL" for each
// reader.
#include <fmt/format.h>
#include <stdlib.h>

#include <iostream>
#include <string>
#include <vector>

#include "ingest/nsight/rank_environment.h"
#include "inside/launch/rank_environment.h"
#include "inside/process/process_facts.h"
#include "node/proc/job_environment.h"
#ifdef LOCKSTEP_HAS_MPI
#include "base/mpi/launch.h"
#endif

namespace {

using namespace lockstep;

using Number = std::optional<int64_t>;

void Say(const char* reader, Number rank, Number size, Number local) {
  const auto text = [](Number number) { return number && *number >= 0 ? std::to_string(*number) : "-"; };
  std::cout << fmt::format("{} {} {} {}\n", reader, text(rank), text(size), text(local));
}

void AskAll(const std::vector<std::string>& entries) {
  const launch::Environment environment = launch::Environment::FromEntries(entries);
  const launch::RankIdentity identity = launch::FindRank(environment);
  Say("launch", identity.rank, identity.world_size, identity.local_rank);

  std::string bytes;
  for (const std::string& entry : entries) bytes += entry + '\0';
  proc::ProcessDetails details;
  proc::ReadJobEnvironment(bytes, &details);
  Say("proc", details.rank, details.world_size, details.local_rank);

  const auto facts = ingest::nsight::ReadLaunch([&](std::string_view name) -> std::optional<std::string> {
    if (!environment.Has(name)) return std::nullopt;
    return std::string(environment.Get(name));
  });
  Say("nsight", facts.rank, facts.world_size, std::nullopt);

  ::clearenv();
  for (const std::string& entry : entries)
    ::setenv(entry.substr(0, entry.find('=')).c_str(), entry.c_str() + entry.find('=') + 1, 1);
  const instrument::RankFacts own = instrument::ReadRankFacts();
  Say("process", own.rank, own.world_size, own.local_rank);

#ifdef LOCKSTEP_HAS_MPI
  const auto word = mpi::AskLauncher([](const char* name) -> const char* { return ::getenv(name); });
  Say("mpi", word ? Number(word->process) : std::nullopt, word ? Number(word->process_count) : std::nullopt,
      std::nullopt);
#endif
}

}  // namespace

int main() {
  std::vector<std::string> entries;
  for (std::string line; std::getline(std::cin, line);) {
    if (!line.empty()) {
      entries.push_back(line);
      continue;
    }
    AskAll(entries);
    std::cout << '\n';
    entries.clear();
  }
}
