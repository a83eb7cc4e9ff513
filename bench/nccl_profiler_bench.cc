// The NCCL profiler plugin: nanoseconds a callback, beside an empty loop and a clock read in the same run. NCCL's own
// side of the interface is played by tests/nccl_profiler/nccl_driver.h.
#include <benchmark/benchmark.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "nccl_driver.h"

namespace {

constexpr uint64_t kCommunicator = 17;

NcclDriver& Driver() {
  static NcclDriver driver(LOCKSTEP_NCCL_PROFILER, 5);
  return driver;
}

void EmptyLoop(benchmark::State& state) {
  for (auto _ : state) benchmark::ClobberMemory();
}
BENCHMARK(EmptyLoop);

void ClockRead(benchmark::State& state) {
  timespec now;
  for (auto _ : state) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    benchmark::DoNotOptimize(now);
  }
}
BENCHMARK(ClockRead);

/// Start and stop of a collective and of the kernels of its channels, each with its state: 2 + 3 x channels callbacks.
void Collective(benchmark::State& state) {
  static void* const context = Driver().Init(kCommunicator, "bench", 0, 8);
  void* const own = state.thread_index() == 0 ? context : Driver().Init(kCommunicator + 1, "bench", 0, 8);
  const auto channels = static_cast<uint8_t>(state.range(0));
  uint64_t sequence = 0;
  for (auto _ : state) Driver().Whole(own, kCommunicator, 0, sequence++, 1 << 20, channels);
  const double callbacks = 2 + 3.0 * channels;
  state.counters["callbacks"] = callbacks;
  state.counters["per_callback"] = benchmark::Counter(static_cast<double>(state.iterations()) * callbacks,
                                                      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(Collective)->Arg(1)->Arg(8);
BENCHMARK(Collective)->Arg(8)->Threads(8);

/// A proxy's operation of four steps, each with three states: 2 + 4 x 5 callbacks.
void Steps(benchmark::State& state) {
  static void* const context = Driver().Init(kCommunicator + 2, "bench", 0, 8);
  void* const operation = Driver().AllReduce(context, kCommunicator, 0, 0, 1, 1);
  for (auto _ : state) {
    void* const proxy = Driver().Proxy(context, operation, 1, true);
    for (int i = 0; i < 4; ++i) {
      void* const step = Driver().Step(context, proxy, i);
      for (const int change : {8, 20, 9}) Driver().State(step, change, nullptr);
      Driver().Stop(step);
    }
    Driver().Stop(proxy);
  }
  state.counters["per_callback"] = benchmark::Counter(static_cast<double>(state.iterations()) * 22,
                                                      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(Steps);

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = (std::filesystem::temp_directory_path() / "lockstep_nccl_bench").string();
  std::filesystem::create_directories(folder);
  ::setenv("LOCKSTEP_NCCL_DIR", folder.c_str(), 1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(folder);
  return 0;
}
