#include "mpi/launch.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/pause.h"

namespace lockstep::mpi {
namespace {

struct Variables {
  const char* launcher;
  const char* process;
  const char* process_count;
};

// The innermost first: mpirun inside an allocation of SLURM has SLURM's variables too, for its own daemons.
constexpr Variables kVariables[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

std::optional<size_t> NumberIn(const char* text) {
  if (text == nullptr) return std::nullopt;
  size_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [last, error] = std::from_chars(text, end, number);
  if (error != std::errc() || last != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<LauncherWord> AskLauncher(const std::function<const char*(const char*)>& variable) {
  for (const Variables& known : kVariables) {
    const std::optional<size_t> process = NumberIn(variable(known.process));
    const std::optional<size_t> count = NumberIn(variable(known.process_count));
    if (process && count) return LauncherWord{known.launcher, *process, *count};
  }
  return std::nullopt;
}

std::string ExplainLonelyProcesses(const std::optional<LauncherWord>& word, size_t process_count) {
  if (!word || word->process_count <= 1 || process_count > 1) return "";
  return fmt::format(
      "{} started {} processes, but MPI in each sees only itself: the launcher and the MPI library do not work "
      "together, and every process would do all the work; {}",
      word->launcher, word->process_count,
      word->launcher == "srun" ? "pass --mpi=pmix to srun (srun --mpi=list has what there is)"
                               : "start it with the mpirun of the MPI that lockstep-mpi was built with");
}

void AwaitReader(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  int left_bytes = 0;
  while (::ioctl(fd, FIONREAD, &left_bytes) == 0 && left_bytes > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Deadline::Deadline(std::chrono::seconds deadline)
    : watch_([deadline](const std::stop_token& stop) {
        if (!Pause(stop, deadline)) return;
        std::fputs(fmt::format("lockstep-mpi: not done after {} s: another process may be stuck or lost; see what the "
                               "launcher says, or give it longer with --deadline SECONDS\n",
                               deadline.count())
                       .c_str(),
                   stderr);
        AwaitReader(STDERR_FILENO);
        std::_Exit(1);  // Not MPI's abort: another thread may be in the middle of it.
      }) {}

}  // namespace lockstep::mpi
