#include "launch/rank_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::launch {
namespace {

/// Where a launcher says what; empty: it does not.
struct RankVariables {
  Launcher launcher;
  const char* name;
  bool starts_mpi;
  std::string_view rank;
  std::array<std::string_view, 2> world_size;  ///< The first that is there counts.
  std::array<std::string_view, 2> local_rank;
  std::array<std::string_view, 3> local_size;
  std::string_view node;
  std::string_view needed;  ///< Without this one the rank is of something else.
};

// The innermost launcher first.
constexpr auto kVariables = std::to_array<RankVariables>({
    {Launcher::kTorchrun,
     "torchrun",
     false,
     "RANK",
     {"WORLD_SIZE"},
     {"LOCAL_RANK"},
     {"LOCAL_WORLD_SIZE"},
     "GROUP_RANK",
     "LOCAL_RANK"},
    {Launcher::kTorchrun,
     "torchrun",
     false,
     "RANK",
     {"WORLD_SIZE"},
     {"LOCAL_RANK"},
     {"LOCAL_WORLD_SIZE"},
     "GROUP_RANK",
     "TORCHELASTIC_RUN_ID"},
    // OMPI_COMM_WORLD_NODE_RANK is an index on the node, not the node.
    {Launcher::kOpenMpi,
     "Open MPI",
     true,
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     "",
     ""},
    {Launcher::kMvapich,
     "MVAPICH2",
     true,
     "MV2_COMM_WORLD_RANK",
     {"MV2_COMM_WORLD_SIZE"},
     {"MV2_COMM_WORLD_LOCAL_RANK"},
     {"MV2_COMM_WORLD_LOCAL_SIZE"},
     "",
     ""},
    {Launcher::kPals,
     "PALS",
     true,
     "PALS_RANKID",
     {"PMI_SIZE"},
     {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"},
     {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
     "PALS_NODEID",
     ""},
    {Launcher::kHydra,
     "MPICH",
     true,
     "PMI_RANK",
     {"PMI_SIZE"},
     {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
     {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
     "",
     ""},
    {Launcher::kPmix, "PMIx", true, "PMIX_RANK", {}, {}, {}, "", ""},
    // FLUX_JOB_NNODES is how many nodes there are, not which.
    {Launcher::kFlux, "Flux", true, "FLUX_TASK_RANK", {"FLUX_JOB_SIZE"}, {"FLUX_TASK_LOCAL_ID"}, {}, "", ""},
    {Launcher::kJsrun,
     "jsrun",
     true,
     "JSM_NAMESPACE_RANK",
     {"JSM_NAMESPACE_SIZE"},
     {"JSM_NAMESPACE_LOCAL_RANK"},
     {"JSM_NAMESPACE_LOCAL_SIZE"},
     "",
     ""},
    {Launcher::kSlurm,
     "srun",
     true,
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     {"SLURM_LOCALID"},
     {},
     "SLURM_NODEID",
     "SLURM_STEP_ID"},
    {Launcher::kJax, "JAX", false, "JAX_PROCESS_ID", {"JAX_NUM_PROCESSES"}, {"JAX_LOCAL_PROCESS_ID"}, {}, "", ""},
    {Launcher::kEnvironment, "the environment", false, "RANK", {"WORLD_SIZE"}, {}, {}, "PET_NODE_RANK", "WORLD_SIZE"},
});

template <size_t kCount>
std::optional<int32_t> First(const Environment& environment, const std::array<std::string_view, kCount>& names) {
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    if (const auto number = environment.Number(name)) return number;
  }
  return std::nullopt;
}

// "2(x3),1": how many tasks each node has, in the order of nodes.
std::optional<int32_t> TasksOfNode(std::string_view text, int32_t node) {
  while (!text.empty()) {
    const std::string part(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t times_at = part.find("(x");
    const Environment numbers(
        {{"tasks", part.substr(0, times_at)},
         {"times", times_at == std::string::npos ? "1" : part.substr(times_at + 2, part.size() - times_at - 3)}});
    const auto tasks = numbers.Number("tasks");
    const auto times = numbers.Number("times");
    if (!tasks || !times) return std::nullopt;
    if (node < *times) return tasks;
    node -= *times;
  }
  return std::nullopt;
}

RankIdentity Read(const Environment& environment, const RankVariables& variables) {
  RankIdentity identity{.launcher = variables.launcher,
                        .rank = environment.Number(variables.rank),
                        .world_size = First(environment, variables.world_size),
                        .local_rank = First(environment, variables.local_rank),
                        .local_size = First(environment, variables.local_size),
                        .node = variables.node.empty() ? std::nullopt : environment.Number(variables.node),
                        .rank_variable = std::string(variables.rank)};
  const bool is_slurms = variables.launcher == Launcher::kSlurm || variables.launcher == Launcher::kPmix ||
                         variables.launcher == Launcher::kHydra;
  // srun sets PMI's and PMIx's rank too, and the rest under its own names alone. mpiexec inside of a step sets other
  // ranks, and then SLURM's node is where mpiexec's own process stands.
  if (is_slurms && environment.Has("SLURM_STEP_ID") && environment.Number("SLURM_PROCID") == identity.rank) {
    if (!identity.world_size)
      identity.world_size =
          First(environment, std::to_array<std::string_view>({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}));
    if (!identity.local_rank) identity.local_rank = environment.Number("SLURM_LOCALID");
    if (!identity.node) identity.node = environment.Number("SLURM_NODEID");
    if (!identity.local_size && identity.node)
      identity.local_size = TasksOfNode(environment.Get("SLURM_STEP_TASKS_PER_NODE"), *identity.node);
    if (!identity.local_size) identity.local_size = environment.Number("SLURM_NTASKS_PER_NODE");
  }
  if (variables.launcher == Launcher::kTorchrun)
    identity.restart = environment.Number("TORCHELASTIC_RESTART_COUNT").value_or(0);
  if (variables.launcher == Launcher::kEnvironment && !identity.local_rank) {
    // A pod of the training operator: RANK counts pods, and one that starts its program itself has one process.
    identity.local_rank = environment.Has("KUBERNETES_SERVICE_HOST") ? std::optional<int32_t>(0) : std::nullopt;
  }
  return identity;
}

// Who knows better than a RANK that was left in a shell, or made by hand for one process; nullptr: nobody.
const RankIdentity* WhoKnowsBetter(const Environment& environment, const RankIdentity& identity,
                                   const std::vector<RankIdentity>& others) {
  if (identity.rank_variable != "RANK" || environment.Has("TORCHELASTIC_RUN_ID")) return nullptr;
  const bool outside = identity.world_size && *identity.rank >= *identity.world_size;
  for (const RankIdentity& other : others) {
    if (other.rank_variable == "RANK") continue;
    if (outside || (identity.world_size == 1 && other.world_size.value_or(0) > 1)) return &other;
  }
  return nullptr;
}

}  // namespace

const char* LauncherName(Launcher launcher) {
  for (const RankVariables& variables : kVariables) {
    if (variables.launcher == launcher) return variables.name;
  }
  return "no launcher";
}

bool StartsMpiRanks(Launcher launcher) {
  return std::ranges::any_of(kVariables, [launcher](const RankVariables& variables) {
    return variables.launcher == launcher && variables.starts_mpi;
  });
}

RankIdentity FindRank(const Environment& environment) {
  std::vector<RankIdentity> found;
  for (const RankVariables& variables : kVariables) {
    if (!variables.needed.empty() && environment.Get(variables.needed).empty()) continue;
    // In a pod of several processes RANK is the pod's.
    if (variables.launcher == Launcher::kEnvironment && environment.Number("PET_NPROC_PER_NODE").value_or(1) > 1)
      continue;
    if (environment.Number(variables.rank)) found.push_back(Read(environment, variables));
  }
  std::vector<std::string> notes;
  for (const RankIdentity& identity : found) {
    if (const RankIdentity* other = WhoKnowsBetter(environment, identity, found)) {
      notes.push_back(fmt::format("RANK={} of WORLD_SIZE={} is ignored for {}={}; if it is a leftover, unset both",
                                  *identity.rank, environment.Get("WORLD_SIZE"), other->rank_variable, *other->rank));
      continue;
    }
    RankIdentity chosen = identity;
    if (chosen.world_size && *chosen.rank >= *chosen.world_size) {
      notes.push_back(fmt::format("{}={} is not below the world size {}, which is ignored", chosen.rank_variable,
                                  *chosen.rank, *chosen.world_size));
      chosen.world_size = std::nullopt;
    }
    chosen.notes = std::move(notes);
    return chosen;
  }
  return RankIdentity{};
}

}  // namespace lockstep::launch
