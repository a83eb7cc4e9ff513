#include "node/agent/daemon/daemon.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/agent/daemon/flags.h"
#include "node/agent/daemon/lease.h"
#include "node/agent/daemon/log.h"
#include "node/agent/daemon/notify.h"
#include "node/agent/daemon/service.h"

namespace lockstep::agent {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr rlim_t kDescriptors = 8192;
#ifdef LOCKSTEP_SANITIZED
constexpr auto kStopWithin = std::chrono::seconds(20);
#else
constexpr auto kStopWithin = std::chrono::milliseconds(900);
#endif

void LimitProcess() {
  ::umask(0077);
  // Tokens are in memory: no dump of it.
  const struct rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  struct rlimit descriptors = {};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur < kDescriptors) {
    descriptors.rlim_cur = std::min(descriptors.rlim_max, kDescriptors);
    ::setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  ::mallopt(M_ARENA_MAX, 2);  // A handful of threads that mostly sleep: an arena each would hold memory for nothing.
  std::signal(SIGPIPE, SIG_IGN);
}

/// The signals that mean something, as a descriptor; blocked in this thread and those it starts.
Result<UniqueFd> TakeSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Error{ErrorCode::kIo, "signals cannot be waited for"};
  return fd;
}

/// The next signal, or nullopt when `timeout_ms` is over (-1: never).
std::optional<int> WaitForSignal(const UniqueFd& signals, int timeout_ms) {
  struct pollfd waited = {signals.get(), POLLIN, 0};
  if (::poll(&waited, 1, timeout_ms) <= 0) return std::nullopt;
  struct signalfd_siginfo info = {};
  if (::read(signals.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void Reload(const DaemonFlags& flags, Service* service, Log* log) {
  NotifySystemd(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", SteadyNow() / 1000));
  const Result<DaemonConfig> config = LoadConfig(flags);
  Status status = config ? service->Reload(*config) : Status(config.error());
  if (status) status = log->Reopen(config->log_level);
  if (status) {
    log->Write(LogLevel::kInfo, "settings, tokens and certificates were read again");
  } else {
    log->Write(LogLevel::kError, "settings are unchanged: " + status.error().ToString());
  }
  NotifySystemd("READY=1");
}

/// Ends the program when the orderly end takes too long: what is on disk is whole at any moment.
void EndWithin(const std::string& unix_socket, std::chrono::milliseconds time) {
  std::thread([unix_socket, time] {
    std::this_thread::sleep_for(time);
    ::unlink(unix_socket.c_str());
    ::_exit(kDone);
  }).detach();
}

int Serve(const DaemonFlags& flags, const DaemonConfig& config, const UniqueFd& signals, Log* log) {
  const auto fail = [&](const Error& error) {
    log->Write(LogLevel::kError, error.ToString());
    return kFailed;
  };
  std::optional<Lease> lease;
  if (!config.lease_file.empty()) {
    Result<Lease> opened = Lease::Open(config.lease_file);
    if (!opened) return fail(opened.error());
    lease.emplace(std::move(*opened));
  }
  Result<std::unique_ptr<Service>> opened = Service::Open(config, log);
  if (!opened) return fail(opened.error());
  std::unique_ptr<Service> service = std::move(*opened);
  log->Write(LogLevel::kInfo,
             fmt::format("lockstepd {} serves {}", LOCKSTEP_VERSION, fmt::join(service->Listeners(), " ")));
  if (config.insecure_no_auth) {
    log->Write(LogLevel::kWarning, "insecure_no_auth: anyone who reaches a listener may trace every process");
  }
  NotifySystemd(fmt::format("READY=1\nMAINPID={}", ::getpid()));

  const std::optional<int64_t> watchdog_ns = WatchdogPeriodNs();
  int64_t period_ns = -1;
  if (watchdog_ns) period_ns = *watchdog_ns;
  if (lease) period_ns = period_ns < 0 ? kSecondNs : std::min(period_ns, kSecondNs);
  const int timeout_ms = period_ns < 0 ? -1 : static_cast<int>(std::max<int64_t>(period_ns / kMillisecondNs, 1));
  std::string reason;
  while (reason.empty()) {
    const std::optional<int> signal = WaitForSignal(signals, timeout_ms);
    if (signal == SIGHUP) Reload(flags, service.get(), log);
    if (signal == SIGTERM || signal == SIGINT) reason = signal == SIGTERM ? "SIGTERM" : "SIGINT";
    if (watchdog_ns) NotifySystemd("WATCHDOG=1");
    if (lease && lease->IsOver(SteadyNow())) reason = "no process holds the lease any more";
  }
  NotifySystemd("STOPPING=1");
  log->Write(LogLevel::kInfo, "stops: " + reason);
  EndWithin(config.unix_socket, kStopWithin);
  service.reset();
  log->Write(LogLevel::kInfo, "has stopped");
  return kDone;
}

}  // namespace

int DaemonMain(int argc, char** argv) {
  int exit_status = kDone;
  const std::optional<DaemonFlags> flags = ReadFlags(argc, argv, &exit_status);
  if (!flags) return exit_status;
  const auto fail = [](const Error& error) {
    fmt::print(stderr, "lockstepd: {}\n", error.ToString());
    return kFailed;
  };
  LimitProcess();
  const Result<DaemonConfig> config = LoadConfig(*flags);
  if (!config) return fail(config.error());
  if (flags->check) {
    fmt::print("{}: fine\n", config->config_file.empty() ? "settings" : config->config_file);
    return kDone;
  }
  const Result<UniqueFd> signals = TakeSignals();
  if (!signals) return fail(signals.error());
  const Result<std::unique_ptr<Log>> log = Log::Open(config->log_file, config->log_level);
  if (!log) return fail(log.error());
  return Serve(*flags, *config, *signals, log->get());
}

}  // namespace lockstep::agent
