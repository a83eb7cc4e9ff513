// Hot paths of ingest one by one, each beside its own limit. `bench/run` compares them in pairs.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "baselines.h"
#include "bench_inputs.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/job/ingest_run.h"
#include "ingest/torch_trace/trace_reader.h"

namespace {

using lockstep::bench::BenchInputs;

const BenchInputs& Inputs() {
  static const BenchInputs inputs = [] {
    const char* folder = std::getenv("LOCKSTEP_BENCH_DATA");
    const char* megabytes = std::getenv("LOCKSTEP_BENCH_MB");
    return lockstep::bench::PrepareInputs(folder != nullptr ? folder : "bench-data",
                                          megabytes != nullptr ? std::atof(megabytes) : 100);
  }();
  return inputs;
}

void SetRates(benchmark::State& state, uint64_t json_bytes, uint64_t events) {
  const auto iterations = static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<int64_t>(json_bytes * static_cast<uint64_t>(state.iterations())));
  state.counters["events"] = benchmark::Counter(static_cast<double>(events) * iterations, benchmark::Counter::kIsRate);
}

void SimdjsonOnDemand(benchmark::State& state) {
  const std::string json = lockstep::bench::ReadWholeFile(Inputs().plain_files[0]);
  lockstep::bench::SimdjsonVisit visit(json);
  for (auto _ : state) benchmark::DoNotOptimize(visit.Run());
  SetRates(state, json.size(), 0);
}
BENCHMARK(SimdjsonOnDemand)->Unit(benchmark::kMillisecond);

void IsalInflate(benchmark::State& state) {
  const std::string bytes = lockstep::bench::ReadWholeFile(Inputs().gzip_files[0]);
  uint64_t made = 0;
  for (auto _ : state) made = lockstep::bench::InflateAll(bytes);
  SetRates(state, made, 0);
}
BENCHMARK(IsalInflate)->Unit(benchmark::kMillisecond);

void ReadTrace(benchmark::State& state, const std::string& path, bool learned_templates) {
  lockstep::ingest::TraceReaderOptions options;
  options.learned_templates = learned_templates;
  uint64_t bytes = 0;
  uint64_t events = 0;
  for (auto _ : state) {
    auto source = lockstep::ingest::OpenFile(path, {});
    if (!source) return state.SkipWithError(source.error().ToString().c_str());
    auto content = lockstep::ingest::ReadTrace(**source, path, options);
    if (!content) return state.SkipWithError(content.error().ToString().c_str());
    bytes = content->trace.json_bytes;
    events = content->trace.event_count;
  }
  SetRates(state, bytes, events);
}
void ReadPlain(benchmark::State& state) { ReadTrace(state, Inputs().plain_files[0], true); }
void ReadPlainGeneralPath(benchmark::State& state) { ReadTrace(state, Inputs().plain_files[0], false); }
void ReadGzip(benchmark::State& state) { ReadTrace(state, Inputs().gzip_files[0], true); }
BENCHMARK(ReadPlain)->Unit(benchmark::kMillisecond);
BENCHMARK(ReadPlainGeneralPath)->Unit(benchmark::kMillisecond);
BENCHMARK(ReadGzip)->Unit(benchmark::kMillisecond);

void IngestFolder(benchmark::State& state, const std::string& folder) {
  lockstep::ingest::IngestOptions options;
  options.thread_count = static_cast<uint32_t>(state.range(0));
  for (auto _ : state) {
    auto run = lockstep::ingest::IngestRun({folder}, options);
    if (!run) return state.SkipWithError(run.error().ToString().c_str());
  }
  SetRates(state, Inputs().json_bytes, Inputs().event_count);
}
void IngestEightPlainRanks(benchmark::State& state) { IngestFolder(state, Inputs().plain_folder); }
void IngestEightGzipRanks(benchmark::State& state) { IngestFolder(state, Inputs().gzip_folder); }
BENCHMARK(IngestEightPlainRanks)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(IngestEightGzipRanks)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
