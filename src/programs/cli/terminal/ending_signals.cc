#include "programs/cli/terminal/ending_signals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/nanoseconds.h"
#include "base/now.h"

namespace lockstep::cli {
namespace {

/// The descriptor that signals wake; -1 while no thread waits for them.
volatile sig_atomic_t signal_fd = -1;

void OnEndingSignal(int) {
  const int before = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(signal_fd, &byte, 1);
  errno = before;
}

}  // namespace

Result<EndingSignals> EndingSignals::Catch() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no pipe: {}", std::strerror(errno))};
  }
  return EndingSignals(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

EndingSignals::EndingSignals(UniqueFd read, UniqueFd write) : read_(std::move(read)), write_(std::move(write)) {
  signal_fd = write_.get();
  struct sigaction action = {};
  action.sa_handler = OnEndingSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);  // nohup's wish counts.
  }
}

EndingSignals::~EndingSignals() {
  if (!write_.valid()) return;
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  signal_fd = -1;
}

bool EndingSignals::Wait(int64_t ns) const {
  const int64_t end_ns = SteadyNow() + std::max<int64_t>(ns, 0);
  while (true) {
    const int64_t left_ns = std::max<int64_t>(end_ns - SteadyNow(), 0);
    pollfd entry = {.fd = read_.get(), .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::min<int64_t>((left_ns + 999'999) / kMillisecondNs, 60'000)));
    if (ready > 0) return true;
    if (SteadyNow() >= end_ns) return false;
  }
}

}  // namespace lockstep::cli
