#include "node/control/client/tunnel_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

namespace lockstep::control {
namespace {

constexpr size_t kErrorBytes = 4096;
constexpr size_t kErrorLines = 3;
constexpr auto kLookAgainAfter = std::chrono::milliseconds(5);
constexpr auto kGrace = std::chrono::milliseconds(500);

/// The last lines that say something.
std::string LastLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < kErrorLines) {
    const size_t end = text.find_last_not_of(" \r\n\t");
    if (end == std::string_view::npos) break;
    text = text.substr(0, end + 1);
    const size_t begin = text.find_last_of("\r\n");
    const size_t first = begin == std::string_view::npos ? 0 : begin + 1;
    lines.push_back(text.substr(first));
    text = text.substr(0, first);
  }
  std::reverse(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace

Result<std::unique_ptr<TunnelProcess>> TunnelProcess::Spawn(const std::vector<std::string>& command, int socket) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no pipe for a tunnel: {}", std::strerror(errno))};
  }
  UniqueFd errors(ends[0]);
  const UniqueFd errors_in(ends[1]);
  ::fcntl(errors.get(), F_SETFL, O_NONBLOCK);  // Our end only; the child's stays as programs expect it.
  Result<ChildProcess> child =
      ChildProcess::Start(command, {.input = socket, .output = socket, .error = errors_in.get()});
  if (!child) {
    Error error = std::move(child).error();
    error.message = "the tunnel cannot be started: " + error.message;
    return error;
  }
  return std::unique_ptr<TunnelProcess>(
      new TunnelProcess(fmt::format("{}", fmt::join(command, " ")), std::move(*child), std::move(errors)));
}

TunnelProcess::~TunnelProcess() {
  if (!HasEnded()) {
    ::kill(-child_.pid(), SIGTERM);
    const auto end = std::chrono::steady_clock::now() + kGrace;
    while (!HasEnded() && std::chrono::steady_clock::now() < end) {
      DrainErrors();  // One that blocks on its last words would not end.
      std::this_thread::sleep_for(kLookAgainAfter);
    }
  }
  // The leader is not reaped yet, so the group's number is still its own: what it left behind goes too.
  ::kill(-child_.pid(), SIGKILL);
  child_.End(0);
}

void TunnelProcess::DrainErrors() {
  std::array<char, 4096> window;
  // Bounded: a command that writes without end must not hold us here.
  for (int i = 0; i < 64 && error_pipe_.valid(); ++i) {
    const ssize_t got = ::read(error_pipe_.get(), window.data(), window.size());
    if (got > 0) {
      errors_.append(window.data(), static_cast<size_t>(got));
      if (errors_.size() > kErrorBytes) errors_.erase(0, errors_.size() - kErrorBytes);
    } else if (got == 0) {
      error_pipe_ = UniqueFd();
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool TunnelProcess::HasEnded() {
  if (!ending_.empty()) return true;
  siginfo_t info = {};
  if (::waitid(P_PID, static_cast<id_t>(child_.pid()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return false;
  }
  ending_ =
      fmt::format("{} {}", info.si_code == CLD_EXITED ? "ended with status" : "was ended by signal", info.si_status);
  return true;
}

std::string TunnelProcess::Describe(int64_t wait_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait_ns);
  while (!HasEnded() && std::chrono::steady_clock::now() < end) {
    DrainErrors();
    std::this_thread::sleep_for(kLookAgainAfter);
  }
  DrainErrors();
  std::string text = fmt::format("the tunnel '{}' {}", command_, ending_.empty() ? "is still there" : ending_);
  const std::string words = LastLines(errors_);
  if (!words.empty()) text += ": " + words;
  return text;
}

}  // namespace lockstep::control
