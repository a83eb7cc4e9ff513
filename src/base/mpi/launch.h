#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace lockstep::mpi {

/// What the launcher says of a process, from its environment (docs/capture.md#ranks; kOfMpi).
struct LauncherWord {
  std::string launcher;  ///< Its command: "mpirun", "mpiexec", "srun".
  size_t process = 0;
  size_t process_count = 1;
};

/// `variable` looks up the environment. Absent when no launcher says both numbers.
std::optional<LauncherWord> AskLauncher(const std::function<const char*(const char*)>& variable);

/// What to say when a launcher started several processes of which MPI knows but one each; empty when all is well.
/// Every process would do the whole work then.
std::string ExplainLonelyProcesses(const std::optional<LauncherWord>& word, size_t process_count);

/// Waits until the launcher has read all that this process has written to `fd`, a pipe of its; 5 s at most. Anything
/// but a pipe keeps what is written to it. MPICH's launcher ends an aborted job without reading on.
void AwaitReader(int fd);

/// Ends the process with status 1 and a message when it still runs after `deadline`: a program of many processes whose
/// one process is stuck would wait for ever. Its launcher ends the others.
class Deadline {
 public:
  explicit Deadline(std::chrono::seconds deadline);

 private:
  std::jthread watch_;
};

}  // namespace lockstep::mpi
