#pragma once

#include <stddef.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// What launchers tell the processes that they start (docs/capture.md#ranks). Part of what lies inside the job: needs
/// the C library alone.
namespace lockstep::launchers {

/// In the order of the table, the innermost first.
enum class Launcher : uint8_t {
  kTorchrun,
  kOpenMpi,
  kMvapich,
  kPals,
  kHydra,
  kPmix,
  kFlux,
  kJsrun,
  kSlurm,
  kJax,
  kEnvironment,  ///< RANK and WORLD_SIZE without what torchrun sets beside them.
  kAlone,        ///< None.
};

/// Of LAUNCHERS in python/lockstep/_launchers.py, which says what the columns are. No cell is null.
struct LauncherRow {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;
  const char* node;
  const char* job;
  const char* beside;
  const char* mpi_command;
};

/// "no launcher" and no variables for kAlone.
const LauncherRow& RowOf(Launcher launcher);
/// SLURM_JOB_ID and its like, the outermost scheduler first.
std::span<const char* const> JobVariables();

/// The first name of a cell.
constexpr std::string_view FirstName(std::string_view cell) {
  return {cell.data(), std::min(cell.find(' '), cell.size())};
}

/// Looks up variables by name: `get` takes a const char* and returns a std::string_view, empty where there is none,
/// that need not outlive the next call. Refers to `get`.
class Variables {
 public:
  template <typename Get>
  Variables(const Get& get)  // NOLINT(google-explicit-constructor): a lambda is one.
      : get_(&get), call_([](const void* what, const char* name) -> std::string_view {
          return (*static_cast<const Get*>(what))(name);
        }) {}

  std::string_view Get(std::string_view name) const;

 private:
  const void* get_;
  std::string_view (*call_)(const void* get, const char* name);
};

/// The intended difference between readers: whether RANK counts without the other variables of torchrun.
enum class Viewpoint : uint8_t {
  /// What starts the program: last of all, since it may be left over in the shell. With WORLD_SIZE, as operators of
  /// Kubernetes set both.
  kBeforeProgram,
  /// The program itself: before other launchers, since PyTorch goes by it, and a program that starts its own ranks sets
  /// it.
  kInProgram,
  /// Any process of the node: never. In a pod it is the pod's number, and torchrun in the pod has it too.
  kOfAnyProcess,
  /// MPI: never, nor any launcher that starts no ranks of MPI.
  kOfMpi,
};

/// What the launcher says of a process. What it does not say is nullopt.
struct FoundRank {
  Launcher launcher = Launcher::kAlone;
  std::optional<int32_t> rank = {};
  std::optional<int32_t> world_size = {};
  std::optional<int32_t> local_rank = {};
  std::optional<int32_t> local_size = {};
  std::optional<int32_t> node = {};
  std::optional<int32_t> refused_size = {};  ///< A world size that the rank is not below; world_size is nullopt then.
  Launcher passed_over = Launcher::kAlone;   ///< Who spoke first and was not believed.
};

/// The first launcher of the table that has a rank. It is skipped if its rank is not below its world size, or if it is
/// RANK of a world of one without torchrun (left over in a shell), and another launcher has a better rank. SLURM's
/// variables count in tasks of a step alone: batch scripts and shells in an allocation have SLURM_PROCID=0 too.
FoundRank FindRank(const Variables& variables, Viewpoint viewpoint);

}  // namespace lockstep::launchers
