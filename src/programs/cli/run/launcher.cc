#include "programs/cli/run/launcher.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "inside/launch/rank_environment.h"
#include "node/proc/job_environment.h"

namespace lockstep::cli {
namespace {

// Launchers of a resource manager, for which the nodes are those of the allocation.
const std::set<std::string_view> kAllocationLaunchers = {"srun", "sbatch", "salloc", "aprun", "jsrun", "flux"};
const std::set<std::string_view> kMpiLaunchers = {"mpirun",  "mpiexec", "mpirun.openmpi", "mpiexec.openmpi",
                                                  "orterun", "prterun", "mpiexec.hydra",  "mpirun.mpich"};
const std::set<std::string_view> kHostFlags = {"-H",         "-host",     "--host",        "-hosts",       "--hosts",
                                               "--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"};

std::optional<int32_t> VariableNumber(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool AllocationHasOneNode() {
  for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "FLUX_JOB_NNODES"}) {
    if (const auto nodes = VariableNumber(name)) return *nodes == 1;
  }
  return false;
}

bool AllocationHasSeveralNodes() {
  if (VariableNumber("SLURM_JOB_NUM_NODES").value_or(1) > 1) return true;
  const char* node_file = std::getenv("PBS_NODEFILE");
  if (node_file == nullptr) return false;
  std::ifstream file(node_file);
  std::set<std::string> hosts;
  for (std::string host; hosts.size() < 2 && file >> host;) hosts.insert(host);
  return hosts.size() > 1;
}

}  // namespace

std::optional<int32_t> RankFromEnvironment() { return launch::FindRank(launch::Environment::Own()).rank; }

bool StartsRanksHere(const std::vector<std::string>& command) {
  std::string words;
  for (const std::string& word : command) words += word + '\0';
  const std::string name = command.empty() ? "" : std::filesystem::path(command[0]).filename().string();
  return kAllocationLaunchers.count(name) != 0 || kMpiLaunchers.count(name) != 0 || proc::IsLauncherCommand(words);
}

bool StartsOnOtherNodes(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = std::filesystem::path(command[0]).filename().string();
  if (kAllocationLaunchers.count(name) != 0) return name == "sbatch" || !AllocationHasOneNode();
  if (kMpiLaunchers.count(name) == 0) return false;
  for (const std::string& word : command) {
    if (kHostFlags.count(word.substr(0, word.find('='))) != 0) return true;
  }
  return AllocationHasSeveralNodes();
}

}  // namespace lockstep::cli
