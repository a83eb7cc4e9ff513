#include "base/mpi/launch.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/launchers/launchers.h"
#include "base/pause.h"

namespace lockstep::mpi {

std::optional<LauncherWord> AskLauncher(const std::function<const char*(const char*)>& variable) {
  const auto get = [&](const char* name) {
    const char* const text = variable(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  const launchers::FoundRank found = launchers::FindRank(get, launchers::Viewpoint::kOfMpi);
  if (!found.rank || !found.world_size) return std::nullopt;
  return LauncherWord{launchers::RowOf(found.launcher).mpi_command, static_cast<size_t>(*found.rank),
                      static_cast<size_t>(*found.world_size)};
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
