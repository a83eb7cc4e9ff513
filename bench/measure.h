#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::bench {

/// Seconds of processor time of this process, all threads. What other work on the machine does hardly moves it.
double CpuSeconds();
double WallSeconds();

enum class Clock : uint8_t { kCpu, kWall };

/// Seconds one call takes.
double Time(Clock clock, const std::function<void()>& call);

double Median(std::vector<double> values);

/// Two things run in turn, A B A B, so that both see the same machine.
struct Paired {
  double first_seconds = 0;  ///< Medians.
  double second_seconds = 0;
  double ratio = 0;  ///< Median over rounds of first / second: how many times faster the second is.
  double low = 0;    ///< Smallest and largest ratio of a round.
  double high = 0;
};
Paired RunPaired(int rounds, Clock clock, const std::function<void()>& first, const std::function<void()>& second);

struct ChildRun {
  int exit_status = -1;
  uint64_t peak_bytes = 0;  ///< Largest resident set, as the kernel counted it.
  double wall_seconds = 0;
  double cpu_seconds = 0;
};
/// Runs a program with its output thrown away.
ChildRun RunChild(const std::vector<std::string>& command);

}  // namespace lockstep::bench
