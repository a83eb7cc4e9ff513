// Full scans through SQLite's virtual tables beside plain loops over the same columns.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/rank_context.h"
#include "base/cell.h"
#include "bench_inputs.h"
#include "ingest/job/ingest_run.h"
#include "present/query/database.h"

namespace {

using namespace lockstep;

// A run that is read once and asked again and again.
struct Asked {
  model::Run run;
  analysis::AnalysisResult result;
  std::unique_ptr<query::Database> database;
  std::unique_ptr<query::Source> source;
};

Asked& TheRun() {
  static Asked asked = [] {
    const char* folder = std::getenv("LOCKSTEP_BENCH_DATA");
    const char* megabytes = std::getenv("LOCKSTEP_BENCH_MB");
    const bench::BenchInputs inputs = bench::PrepareInputs(folder != nullptr ? folder : "bench-data",
                                                           megabytes != nullptr ? std::atof(megabytes) : 100);
    Asked made;
    made.run = std::move(*ingest::IngestRun({inputs.plain_folder}, {}));
    return made;
  }();
  if (!asked.database) {
    const analysis::AnalysisOptions options;
    asked.result = std::move(*analysis::Analyze(&asked.run, options, {"memory"}));
    asked.database = std::move(*query::Database::Open({}));
    asked.source = std::make_unique<query::Source>(asked.run, asked.result, options, &asked.database->stop());
    asked.database->SetSource(asked.source.get());
  }
  return asked;
}

class LastValue : public query::RowWriter {
 public:
  void Begin(const std::vector<std::string>&) override {}
  void Row(const std::vector<Cell>& cells) override { value = cells.back(); }
  void End() override {}
  Cell value;
};

void SetRows(benchmark::State& state) {
  state.counters["rows"] =
      benchmark::Counter(static_cast<double>(TheRun().source->event_count()) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void Query(benchmark::State& state, const char* sql) {
  Asked& asked = TheRun();
  for (auto _ : state) {
    LastValue writer;
    const auto summary = asked.database->Run(sql, writer);
    if (!summary) return state.SkipWithError(summary.error().message.c_str());
    benchmark::DoNotOptimize(writer.value);
  }
  SetRows(state);
}

void LoopSumDurations(benchmark::State& state) {
  const Asked& asked = TheRun();
  for (auto _ : state) {
    int64_t sum_ns = 0;
    for (const model::RankTrace& rank : asked.run.ranks) {
      for (const model::Track& track : rank.tracks) {
        for (const int64_t duration_ns : track.events.duration_ns) sum_ns += duration_ns;
      }
    }
    benchmark::DoNotOptimize(sum_ns);
  }
  SetRows(state);
}
BENCHMARK(LoopSumDurations)->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(Query, sum_durations, "SELECT sum(duration_ns) FROM events")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, count, "SELECT count(*) FROM events")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, sum_by_rank, "SELECT rank, sum(duration_ns) FROM events GROUP BY rank")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, sum_by_name, "SELECT name, sum(duration_ns) FROM events GROUP BY name")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, one_name, "SELECT sum(duration_ns) FROM events WHERE name = 'aten::mm'")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, one_name_undecided, "SELECT sum(duration_ns) FROM events WHERE +name = 'aten::mm'")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, longest, "SELECT name, duration_ns FROM events ORDER BY duration_ns DESC LIMIT 10")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, one_rank, "SELECT sum(duration_ns) FROM events WHERE rank = 3")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Query, a_millisecond,
                  "SELECT count(*) FROM events, (SELECT min(start_ns) + 1000000000 AS t FROM events WHERE rank = 0) "
                  "WHERE start_ns BETWEEN t AND t + 1000000")
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
