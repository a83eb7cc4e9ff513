#include "base/launchers/launchers.h"

#include <string.h>

#include <iterator>

namespace lockstep::launchers {
namespace {

constexpr LauncherRow kRows[] = {
#include <launcher_rows.inc>
    {"no launcher", "", "", "", "", "", "", "", ""},
};
static_assert(std::size(kRows) == static_cast<size_t>(Launcher::kAlone) + 1);
constexpr const char* kJobVariables[] = {
#include <job_variables.inc>
};

constexpr int32_t kMostRanks = 100'000'000;  // More than any job has.
constexpr size_t kMostNameBytes = 63;

/// With nothing before or behind the digits.
std::optional<int32_t> ParseNumber(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
    if (number > kMostRanks) return std::nullopt;
  }
  return static_cast<int32_t>(number);
}

/// Takes the part before the first `separator` off.
std::string_view TakeBefore(char separator, std::string_view* text) {
  const std::string_view part(text->data(), std::min(text->find(separator), text->size()));
  text->remove_prefix(std::min(part.size() + 1, text->size()));
  return part;
}

bool HasAny(const Variables& variables, std::string_view names) {
  while (!names.empty()) {
    if (!variables.Get(TakeBefore(' ', &names)).empty()) return true;
  }
  return false;
}

/// "2(x3),1": how many tasks each node has, in the order of nodes.
std::optional<int32_t> TasksOfNode(std::string_view text, int32_t node) {
  while (!text.empty()) {
    std::string_view part = TakeBefore(',', &text);
    const auto tasks = ParseNumber(TakeBefore('(', &part));
    std::optional<int32_t> times = 1;
    if (!part.empty())
      times =
          part.starts_with('x') && part.ends_with(')') ? ParseNumber({part.data() + 1, part.size() - 2}) : std::nullopt;
    if (!tasks || !times) return std::nullopt;
    if (node < *times) return tasks;
    node -= *times;
  }
  return std::nullopt;
}

/// Of the first name that has a number. SLURM's names only where srun has the word; `node` chooses from lists.
std::optional<int32_t> NumberIn(const Variables& variables, std::string_view names, bool is_srun = true,
                                std::optional<int32_t> node = {}) {
  while (!names.empty()) {
    const std::string_view name = TakeBefore(' ', &names);
    if (!is_srun && name.starts_with("SLURM_")) continue;
    const std::string_view text = variables.Get(name);
    const auto number = name == "SLURM_STEP_TASKS_PER_NODE" && node ? TasksOfNode(text, *node) : ParseNumber(text);
    if (number) return number;
  }
  return std::nullopt;
}

/// Batch scripts and shells have SLURM_PROCID=0 and a number of tasks, and are none. What salloc starts is a step of
/// one whose id, 4294967290, is not a number here.
bool IsStepTask(const Variables& variables) {
  if (HasAny(variables, "SLURM_STEP_ID")) return NumberIn(variables, "SLURM_STEP_ID").has_value();
  return HasAny(variables, "SLURM_STEP_NUM_TASKS") || NumberIn(variables, "SLURM_PROCID").value_or(0) > 0;
}

/// Without a rank when this launcher says none, or of something else.
FoundRank Read(const Variables& variables, Launcher launcher, Viewpoint viewpoint) {
  const LauncherRow& row = RowOf(launcher);
  const auto rank = NumberIn(variables, row.rank);
  const bool is_bare = launcher == Launcher::kEnvironment;
  if (!rank || (viewpoint == Viewpoint::kOfMpi && *row.mpi_command == '\0')) return {};
  if (*row.beside != '\0' && !HasAny(variables, row.beside) && !(is_bare && viewpoint == Viewpoint::kInProgram))
    return {};
  // In a pod of several processes RANK is the pod's.
  if (is_bare && (viewpoint == Viewpoint::kOfAnyProcess || NumberIn(variables, "PET_NPROC_PER_NODE").value_or(1) > 1))
    return {};
  // mpiexec inside of a step sets other ranks than srun, and then SLURM's node is where mpiexec's own process stands.
  const bool is_srun = IsStepTask(variables) && NumberIn(variables, RowOf(Launcher::kSlurm).rank) == rank;
  if (launcher == Launcher::kSlurm && !is_srun) return {};
  FoundRank found{.launcher = launcher,
                  .rank = rank,
                  .world_size = NumberIn(variables, row.world_size, is_srun),
                  .local_rank = NumberIn(variables, row.local_rank, is_srun),
                  .node = NumberIn(variables, row.node, is_srun)};
  found.local_size = NumberIn(variables, row.local_size, is_srun, found.node);
  // A pod of the training operator that starts its program itself has one process.
  if (is_bare && HasAny(variables, "KUBERNETES_SERVICE_HOST")) found.local_rank = 0;
  if (found.world_size && *rank >= *found.world_size) {
    found.refused_size = found.world_size;
    found.world_size = std::nullopt;
  }
  return found;
}

bool KnowsBetter(const Variables& variables, const FoundRank& other, const FoundRank& first) {
  const bool is_rank = first.launcher == Launcher::kTorchrun || first.launcher == Launcher::kEnvironment;
  if (other.refused_size || (is_rank && other.launcher == Launcher::kEnvironment)) return false;
  if (first.refused_size) return true;
  // A separate torchrun on each node is not a leftover.
  return is_rank && first.world_size == 1 && other.world_size.value_or(0) > 1 &&
         !HasAny(variables, RowOf(Launcher::kTorchrun).job);
}

}  // namespace

const LauncherRow& RowOf(Launcher launcher) { return kRows[static_cast<size_t>(launcher)]; }

std::span<const char* const> JobVariables() { return kJobVariables; }

std::string_view Variables::Get(std::string_view name) const {
  char text[kMostNameBytes + 1];  // In a cell they end at a space.
  if (name.size() > kMostNameBytes) return {};
  memcpy(text, name.data(), name.size());
  text[name.size()] = '\0';
  return call_(get_, text);
}

FoundRank FindRank(const Variables& variables, Viewpoint viewpoint) {
  constexpr size_t kLast = static_cast<size_t>(Launcher::kEnvironment);
  FoundRank first;
  for (size_t i = 0; i <= kLast; ++i) {
    size_t place = i;
    if (viewpoint == Viewpoint::kInProgram && i > 0) place = i == 1 ? kLast : i - 1;
    FoundRank found = Read(variables, static_cast<Launcher>(place), viewpoint);
    if (!found.rank) continue;
    if (!first.rank) {
      first = found;
    } else if (KnowsBetter(variables, found, first)) {
      found.passed_over = first.launcher;
      return found;
    }
  }
  return first;
}

}  // namespace lockstep::launchers
