#include "measure.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace lockstep::bench {
namespace {

double ClockSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

double CpuSeconds() { return ClockSeconds(CLOCK_PROCESS_CPUTIME_ID); }
double WallSeconds() { return ClockSeconds(CLOCK_MONOTONIC); }

double Time(Clock clock, const std::function<void()>& call) {
  const auto now = clock == Clock::kCpu ? CpuSeconds : WallSeconds;
  const double start = now();
  call();
  return now() - start;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Paired RunPaired(int rounds, Clock clock, const std::function<void()>& first, const std::function<void()>& second) {
  first();
  second();
  std::vector<double> firsts;
  std::vector<double> seconds;
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    firsts.push_back(Time(clock, first));
    seconds.push_back(Time(clock, second));
    ratios.push_back(firsts.back() / seconds.back());
  }
  Paired paired;
  paired.first_seconds = Median(firsts);
  paired.second_seconds = Median(seconds);
  paired.ratio = Median(ratios);
  paired.low = *std::min_element(ratios.begin(), ratios.end());
  paired.high = *std::max_element(ratios.begin(), ratios.end());
  return paired;
}

ChildRun RunChild(const std::vector<std::string>& command) {
  ChildRun run;
  const double start = WallSeconds();
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) return run;
  run.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  run.wall_seconds = WallSeconds() - start;
  run.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  return run;
}

}  // namespace lockstep::bench
