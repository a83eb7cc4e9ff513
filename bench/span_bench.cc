// What a span costs the job that records it, beside the least that it can cost: two reads of the clock and 32 bytes
// stored. The file is written for real, into $LOCKSTEP_BENCH_DATA, else a temporary folder; it is removed in the end.
#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <lockstep/trace.hpp>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

// Never so many that a repetition meets the limit of the file.
constexpr int64_t kIterations = 1'000'000;

struct alignas(32) Record {
  uint64_t words[4];
};

uint64_t SystemClock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Clock() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return SystemClock();
#endif
}

std::string& Folder() {
  static std::string folder;
  return folder;
}

void Record(const benchmark::State&) {
  if (lockstep_trace_start(Folder().c_str()) == 0) std::abort();
}
void DoNotRecord(const benchmark::State&) { lockstep_trace_stop(); }

void EmptyLoop(benchmark::State& state) {
  for (auto _ : state) benchmark::ClobberMemory();
}
void ProcessorClock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Clock());
}
void SystemClockRead(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(SystemClock());
}
void Floor(benchmark::State& state) {
  static std::vector<struct Record> ring(65536);  // 2 MiB
  size_t next = 0;
  for (auto _ : state) {
    const uint64_t begin = Clock();
    benchmark::ClobberMemory();
    ring[next++ % ring.size()] = {begin, Clock(), 1, 2};
    benchmark::ClobberMemory();
  }
}
void Span(benchmark::State& state) {
  for (auto _ : state) {
    LOCKSTEP_SPAN("bench");
    benchmark::ClobberMemory();
  }
}
void NamedAtRunTime(benchmark::State& state) {
  const std::string name = "bench at run time";
  for (auto _ : state) {
    const lockstep::trace::Span span(name);
    benchmark::ClobberMemory();
  }
}
void Counter(benchmark::State& state) {
  double value = 0;
  for (auto _ : state) {
    LOCKSTEP_COUNTER("bench counter", value);
    value += 1;
    benchmark::ClobberMemory();
  }
}
void BytesPerSpan(benchmark::State& state) {
  lockstep_trace_status before, after;
  lockstep_trace_get_status(&before);
  for (auto _ : state) {
    LOCKSTEP_SPAN("bench");
  }
  lockstep_trace_get_status(&after);
  state.counters["bytes"] =
      static_cast<double>(after.file_bytes - before.file_bytes) / static_cast<double>(state.iterations());
}

BENCHMARK(EmptyLoop)->Iterations(kIterations);
BENCHMARK(ProcessorClock)->Iterations(kIterations);
BENCHMARK(SystemClockRead)->Iterations(kIterations);
BENCHMARK(Floor)->Iterations(kIterations);
BENCHMARK(Span)->Name("Span/off")->Setup(DoNotRecord)->Iterations(kIterations);
BENCHMARK(Counter)->Name("Counter/off")->Setup(DoNotRecord)->Iterations(kIterations);
BENCHMARK(Span)->Setup(Record)->Teardown(DoNotRecord)->Iterations(kIterations);
BENCHMARK(Span)->Setup(Record)->Teardown(DoNotRecord)->Iterations(kIterations)->Threads(2)->Threads(4)->Threads(8);
BENCHMARK(NamedAtRunTime)->Setup(Record)->Teardown(DoNotRecord)->Iterations(kIterations);
BENCHMARK(Counter)->Setup(Record)->Teardown(DoNotRecord)->Iterations(kIterations);
BENCHMARK(BytesPerSpan)->Setup(Record)->Teardown(DoNotRecord)->Iterations(kIterations);

}  // namespace

int main(int argc, char** argv) {
  setenv("LOCKSTEP_TRACE_LIMIT_MIB", "8192", 1);
  const char* const data = std::getenv("LOCKSTEP_BENCH_DATA");
  Folder() = (data != nullptr ? std::string(data) : "/tmp") + "/lockstep-span-bench-" + std::to_string(getpid());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  lockstep_trace_status status;
  lockstep_trace_get_status(&status);
  unlink(status.path);
  rmdir(Folder().c_str());
  if (status.dropped_records == 0) return 0;
  std::fprintf(stderr, "%llu records were dropped: the figures are not those of spans\n",
               static_cast<unsigned long long>(status.dropped_records));
  return 1;
}
