#include "measure/nccl/program/local_ranks.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace lockstep::nccl_bench {
namespace {

constexpr auto kGrace = std::chrono::seconds(3);

/// A port below one that was free just now; rank 0 tries the ones above it in turn.
uint16_t FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), generic, length) != 0 || ::getsockname(fd.get(), generic, &length) != 0) return 0;
  return static_cast<uint16_t>(ntohs(address.sin_port) - 1);
}

void SetRank(int rank, int count, uint16_t port, const std::string& token) {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(count));
  set("LOCAL_WORLD_SIZE", std::to_string(count));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port));
  set("LOCKSTEP_BENCH_TOKEN", token);
  ::unsetenv("LOCKSTEP_BENCH_LISTEN");
}

int StatusOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace

int StartLocalRanks(int count, const std::function<int()>& work) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) random = static_cast<uint64_t>(::getpid());
  const uint16_t port = FreePort();
  const pid_t parent = ::getpid();
  // Some launchers hand it on ignored: then nothing is left of a process to wait for.
  ::signal(SIGCHLD, SIG_DFL);
  std::vector<pid_t> running;
  int first_failure = 0;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) std::_Exit(1);
      SetRank(rank, count, port, fmt::format("{:016x}", random));
      return work();
    }
    if (pid < 0) {
      std::fputs(fmt::format("lockstep-nccl-bench: rank {} cannot be started: too many processes?\n", rank).c_str(),
                 stderr);
      first_failure = 1;
      break;
    }
    running.push_back(pid);
  }
  using Clock = std::chrono::steady_clock;
  auto kill_at = Clock::time_point::max();
  while (!running.empty()) {
    int wait_status = 0;
    const pid_t ended = ::waitpid(-1, &wait_status, WNOHANG);
    if (ended > 0) {
      std::erase(running, ended);
      if (first_failure == 0) first_failure = StatusOf(wait_status);
      continue;
    }
    if (ended < 0 && errno == ECHILD) return first_failure != 0 ? first_failure : 1;  // Somebody else waited for them.
    if (first_failure != 0 && kill_at == Clock::time_point::max()) kill_at = Clock::now() + kGrace;
    if (Clock::now() >= kill_at) {
      for (const pid_t pid : running) ::kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return first_failure;
}

}  // namespace lockstep::nccl_bench
