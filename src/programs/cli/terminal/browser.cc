#include "programs/cli/terminal/browser.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace lockstep::cli {

bool OpenInBrowser(const std::string& url) {
  std::string program = "xdg-open";
  std::string argument = url;
  const std::array<char*, 3> arguments = {program.data(), argument.data(), nullptr};
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const UniqueFd failure(ends[0]);
  UniqueFd failure_in(ends[1]);
  // The browser is not waited for: it is the child of a child that ends at once, so it is not a child of ours, and our
  // own children are waited for as before. Other threads run here: between fork and exec there are system calls only.
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    if (::fork() != 0) ::_exit(0);
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDOUT_FILENO);
    ::execvp(program.c_str(), arguments.data());
    const char byte = 1;
    [[maybe_unused]] const ssize_t written = ::write(failure_in.get(), &byte, 1);
    ::_exit(127);
  }
  failure_in = UniqueFd();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(failure.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  return got == 0;  // The pipe went with the exec.
}

}  // namespace lockstep::cli
