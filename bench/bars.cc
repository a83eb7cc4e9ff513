// What the project promises of ingest, measured in pairs and printed beside what was promised.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/rank_context.h"
#include "baselines.h"
#include "bench_inputs.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/job/ingest_run.h"
#include "ingest/torch_trace/trace_reader.h"
#include "measure.h"

namespace lockstep::bench {
namespace {

struct Options {
  std::string data_folder = "bench-data";
  std::string program;      ///< The lockstep program; empty: no resident-memory rows.
  std::string real_folder;  ///< Real traces (*.json.gz); empty: none.
  double megabytes = 100;
  int rounds = 7;
};

template <typename T>
T Take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return std::move(*result);
}

ingest::TraceContent Read(const std::string& path) {
  auto source = Take(ingest::OpenFile(path, {}));
  return Take(ingest::ReadTrace(*source, path, {}));
}

model::Run Ingest(const std::string& folder, uint32_t threads) {
  ingest::IngestOptions options;
  options.thread_count = threads;
  return Take(ingest::IngestRun({folder}, options));
}

double Rate(uint64_t bytes, double seconds) { return static_cast<double>(bytes) / seconds / 1e6; }

void Row(const std::string& what, const std::string& value, const std::string& bar, bool met) {
  fmt::print("{:<46} {:>30}  {:<20} {}\n", what, value, bar, met ? "met" : "MISSED");
}

void Note(const std::string& what, const std::string& value) { fmt::print("{:<46} {:>30}\n", what, value); }

void PlainAgainstSimdjson(const BenchInputs& inputs, const Options& options) {
  const std::string& path = inputs.plain_files[0];
  const std::string json = ReadWholeFile(path);
  SimdjsonVisit visit(json);
  uint64_t events = 0;
  const auto read = [&] { events = Read(path).trace.event_count; };
  const Paired warm = RunPaired(
      options.rounds, Clock::kCpu, [&] { visit.Run(); }, read);
  const Paired pair = RunPaired(
      options.rounds, Clock::kCpu, [&] { VisitFile(path); }, read);
  Note("simdjson, every field, from the file", fmt::format("{:.0f} MB/s", Rate(json.size(), pair.first_seconds)));
  Note("simdjson, every field, in warm memory", fmt::format("{:.0f} MB/s", Rate(json.size(), warm.first_seconds)));
  Note("plain JSON, 1 thread", fmt::format("{:.0f} MB/s, {:.1f} M events/s", Rate(json.size(), pair.second_seconds),
                                           static_cast<double>(events) / pair.second_seconds / 1e6));
  Row("  of simdjson's visit, both from the file",
      fmt::format("{:.2f} x ({:.2f}-{:.2f})", pair.ratio, pair.low, pair.high), ">= 2.5 x", pair.ratio >= 2.5);
  Note("  of simdjson's visit in warm memory",
       fmt::format("{:.2f} x ({:.2f}-{:.2f})", warm.ratio, warm.low, warm.high));
}

void GzipAgainstIsal(const BenchInputs& inputs, const Options& options) {
  const std::string& path = inputs.gzip_files[0];
  const std::string bytes = ReadWholeFile(path);
  const uint64_t json_bytes = InflateAll(bytes);
  const Paired pair = RunPaired(
      options.rounds, Clock::kCpu, [&] { InflateAll(bytes); }, [&] { Read(path); });
  Note("isa-l inflate into a window, 1 thread", fmt::format("{:.0f} MB/s", Rate(json_bytes, pair.first_seconds)));
  Note("gzip JSON, 1 thread", fmt::format("{:.0f} MB/s", Rate(json_bytes, pair.second_seconds)));
  Row("  of isa-l's inflate", fmt::format("{:.2f} x ({:.2f}-{:.2f})", pair.ratio, pair.low, pair.high), ">= 0.50 x",
      pair.ratio >= 0.5);
}

/// On a machine with other work the wall clock says little; what two threads cost more than one is seen in CPU time.
double CpuRatio(const std::string& folder, int rounds) {
  return RunPaired(
             rounds, Clock::kCpu, [&] { Ingest(folder, 1); }, [&] { Ingest(folder, 2); })
      .ratio;
}

/// What two threads of this machine do more than one just now, with work that shares nothing; 1 on two idle processors.
double MachineRatio(int rounds) {
  const auto spin = [] {
    uint64_t value = 1;
    for (int i = 0; i < 200'000'000; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
    volatile uint64_t result = value;
    static_cast<void>(result);
  };
  const auto both = [&] {
    const std::jthread other(spin);
    spin();
  };
  return RunPaired(rounds, Clock::kWall, spin, both).ratio;
}

void TwoThreads(const BenchInputs& inputs, const Options& options) {
  const Paired pair = RunPaired(
      options.rounds, Clock::kWall, [&] { Ingest(inputs.gzip_folder, 1); }, [&] { Ingest(inputs.gzip_folder, 2); });
  Note("eight gzip ranks, 1 thread (wall)", fmt::format("{:.0f} MB/s", Rate(inputs.json_bytes, pair.first_seconds)));
  Note("eight gzip ranks, 2 threads (wall)", fmt::format("{:.0f} MB/s", Rate(inputs.json_bytes, pair.second_seconds)));
  Row("  of twice one thread", fmt::format("{:.2f} x ({:.2f}-{:.2f})", pair.ratio / 2, pair.low / 2, pair.high / 2),
      ">= 0.90 x", pair.ratio / 2 >= 0.9);
  Note("  a loop that shares nothing, of twice one", fmt::format("{:.2f} x", MachineRatio(options.rounds)));
  Note("  CPU time of one thread / of two", fmt::format("{:.2f}", CpuRatio(inputs.gzip_folder, options.rounds)));
  const Paired plain = RunPaired(
      options.rounds, Clock::kWall, [&] { Ingest(inputs.plain_folder, 1); }, [&] { Ingest(inputs.plain_folder, 2); });
  Note("eight plain ranks, 1 / 2 threads (wall)",
       fmt::format("{:.0f} / {:.0f} MB/s", Rate(inputs.json_bytes, plain.first_seconds),
                   Rate(inputs.json_bytes, plain.second_seconds)));
}

void Passes(const BenchInputs& inputs, const Options& options) {
  std::vector<double> shares;
  std::vector<double> ingest;
  std::vector<double> passes;
  analysis::AnalysisOptions analysis_options;
  analysis_options.thread_count = 1;
  std::vector<analysis::PassTiming> timings;
  for (int round = 0; round < options.rounds; ++round) {
    model::Run run;
    ingest.push_back(Time(Clock::kCpu, [&] { run = Ingest(inputs.plain_folder, 1); }));
    passes.push_back(Time(Clock::kCpu, [&] { timings = Take(analysis::Analyze(&run, analysis_options, {})).timings; }));
    shares.push_back(passes.back() / ingest.back());
  }
  Note("ingest of eight plain ranks, 1 thread (CPU)", fmt::format("{:.0f} ms", 1e3 * Median(ingest)));
  Note("all passes, 1 thread (CPU)", fmt::format("{:.0f} ms", 1e3 * Median(passes)));
  for (const analysis::PassTiming& timing : timings) {
    Note("    " + timing.name, fmt::format("{:.1f} ms", static_cast<double>(timing.cpu_ns) / 1e6));
  }
  Row("  passes of ingest", fmt::format("{:.0f} %", 100 * Median(shares)), "<= 25 %", Median(shares) <= 0.25);
}

void Resident(const BenchInputs& inputs, const Options& options) {
  if (options.program.empty()) return;
  const ChildRun base = RunChild({options.program, "version"});
  for (const auto& [name, folder] : {std::pair{"plain", inputs.plain_folder}, std::pair{"gzip", inputs.gzip_folder}}) {
    const ChildRun run = RunChild({options.program, "analyze", "--json", folder});
    if (run.exit_status != 0) {
      Note(fmt::format("analyze, {}", name), fmt::format("exit status {}", run.exit_status));
      continue;
    }
    const auto events = static_cast<double>(inputs.event_count);
    const double per_event = static_cast<double>(run.peak_bytes - std::min(base.peak_bytes, run.peak_bytes)) / events;
    Note(fmt::format("analyze --json, {}: wall / CPU", name),
         fmt::format("{:.2f} / {:.2f} s", run.wall_seconds, run.cpu_seconds));
    Note(fmt::format("  peak resident, {}", name),
         fmt::format("{:.1f} MiB, {:.1f} B/event raw", static_cast<double>(run.peak_bytes) / 1048576,
                     static_cast<double>(run.peak_bytes) / events));
    Row(fmt::format("  less the program's own {:.1f} MiB", static_cast<double>(base.peak_bytes) / 1048576),
        fmt::format("{:.1f} B/event", per_event), "<= 32 B/event", per_event <= 32);
    Note("  of events with a duration alone",
         fmt::format("{:.1f} B/event", per_event * events / static_cast<double>(inputs.complete_count)));
  }
}

void RealTraces(const Options& options) {
  if (options.real_folder.empty() || !std::filesystem::is_directory(options.real_folder)) {
    Note("real traces", "not here");
    return;
  }
  fmt::print("\n{:<46} {:>10} {:>9} {:>9} {:>8} {:>8}\n", "real traces, 1 thread", "MB", "plain", "gzip", "simdjson",
             "isa-l");
  const std::vector<std::string> names = {"hta_trace_diff/control.json.gz",
                                          "hta_trace_diff/test.json.gz",
                                          "hta_ddp_nccl_meta/rank0.json.gz",
                                          "hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
                                          "tracelens_b200_rank0of8/eager_trace.json.gz",
                                          "tracelens_single_gpu/h100_owlv2_large.json.gz"};
  for (const std::string& name : names) {
    const std::string path = options.real_folder + "/" + name;
    if (!std::filesystem::exists(path)) continue;
    const std::string bytes = ReadWholeFile(path);
    const uint64_t size = InflateAll(bytes);
    const std::string plain_path = options.data_folder + "/real.json";
    {
      auto source = Take(ingest::OpenFile(path, {}));
      std::string json(size, '\0');
      json.resize(Take(source->Read(json)));
      std::ofstream(plain_path, std::ios::binary) << json;
    }
    const Paired plain = RunPaired(
        options.rounds, Clock::kCpu, [&] { VisitFile(plain_path); }, [&] { Read(plain_path); });
    const Paired gzip = RunPaired(
        options.rounds, Clock::kCpu, [&] { InflateAll(bytes); }, [&] { Read(path); });
    fmt::print("{:<46} {:>10.1f} {:>9.0f} {:>9.0f} {:>7.2f}x {:>7.2f}x\n", name.substr(0, 46),
               static_cast<double>(size) / 1e6, Rate(size, plain.second_seconds), Rate(size, gzip.second_seconds),
               plain.ratio, gzip.ratio);
    std::filesystem::remove(plain_path);
  }
}

void Main(const Options& options) {
  std::filesystem::create_directories(options.data_folder);
  const BenchInputs inputs = PrepareInputs(options.data_folder, options.megabytes);
  fmt::print(
      "8 ranks, {:.1f} MB of JSON, {} events ({} with a duration); {} processors; medians of {} rounds, run in "
      "turn\n\n",
      static_cast<double>(inputs.json_bytes) / 1e6, inputs.event_count, inputs.complete_count,
      std::thread::hardware_concurrency(), options.rounds);
  Resident(inputs, options);  // First: a child's peak begins at what its parent holds.
  PlainAgainstSimdjson(inputs, options);
  GzipAgainstIsal(inputs, options);
  TwoThreads(inputs, options);
  Passes(inputs, options);
  RealTraces(options);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app("Measures ingest and analysis against their own limits on this machine.");
  app.add_option("--data", options.data_folder, "where inputs are made and kept");
  app.add_option("--mb", options.megabytes, "MB of JSON per rank");
  app.add_option("--rounds", options.rounds, "rounds of every pair")->check(CLI::Range(1, 1000));
  app.add_option("--lockstep", options.program, "the lockstep program, for resident memory");
  app.add_option("--real", options.real_folder, "folder of real traces");
  CLI11_PARSE(app, argc, argv);
  try {
    lockstep::bench::Main(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockstep_bars: {}\n", error.what());
    return 1;
  }
  return 0;
}
