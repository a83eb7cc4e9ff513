// Writes the report page of a large made-up job, and says how long each part took: its figures in a browser are
// measured from this page. `lockstep_page_sample --ranks 1000 --steps 2000 --kernels 3 -o page.html` has 10 million
// events.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

#include "analysis/analyze.h"
#include "analysis/rank_context.h"
#include "present/page/fit_page.h"
#include "synthetic_run.h"

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double PeakMib() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::bench::SyntheticShape shape;
  std::string path;
  uint64_t page_bytes = lockstep::page::kDefaultPageBytes;
  CLI::App app{"Writes the report page of a large made-up job."};
  app.add_option("--ranks", shape.rank_count, "ranks");
  app.add_option("--steps", shape.step_count, "steps");
  app.add_option("--kernels", shape.kernels_per_step, "kernels of a rank's step");
  app.add_option("--page-size", page_bytes, "bytes the page may take")->transform(CLI::AsSizeValue(false));
  app.add_option("-o,--output", path, "file to write")->required();
  CLI11_PARSE(app, argc, argv);

  auto start = Clock::now();
  lockstep::model::Run run = lockstep::bench::MakeSyntheticRun(shape);
  uint64_t events = 0;
  for (const auto& trace : run.ranks) events += trace.event_count;
  std::cout << fmt::format("made      {:7.2f} s  {} events\n", SecondsSince(start), events);

  start = Clock::now();
  const lockstep::analysis::AnalysisOptions options;
  const auto result = lockstep::analysis::Analyze(&run, options, {});
  if (!result) {
    std::cerr << result.error().ToString() << '\n';
    return 1;
  }
  std::cout << fmt::format("analysed  {:7.2f} s  {:.0f} MiB at most so far\n", SecondsSince(start), PeakMib());

  start = Clock::now();
  const lockstep::page::PageInput input{run, *result, options, false};
  const lockstep::page::FittedPage page = lockstep::page::FitPage(input, page_bytes);
  uint64_t raw_bytes = 0;
  uint64_t event_raw_bytes = 0;
  uint64_t event_page_bytes = 0;
  for (const auto& block : page.blocks) {
    raw_bytes += block.raw_bytes;
    const bool is_events = block.name.starts_with("events-");
    event_raw_bytes += is_events ? block.raw_bytes : 0;
    event_page_bytes += is_events ? EmbeddedBytes(block) : 0;
    if (!is_events) {
      std::cout << fmt::format("  {:<12} {:10.1f} kB raw  {:10.1f} kB in the page\n", block.name,
                               static_cast<double>(block.raw_bytes) / 1e3,
                               static_cast<double>(EmbeddedBytes(block)) / 1e3);
    }
  }
  std::cout << fmt::format("  {:<12} {:10.1f} kB raw  {:10.1f} kB in the page\n", "events-*",
                           static_cast<double>(event_raw_bytes) / 1e3, static_cast<double>(event_page_bytes) / 1e3);
  for (const auto& reduction : page.reductions) std::cout << "  left out: " << reduction.message << '\n';
  const double seconds = SecondsSince(start);
  std::cout << fmt::format("packed    {:7.2f} s  {:.0f} MB/s\n", seconds,
                           static_cast<double>(raw_bytes) / seconds / 1e6);

  start = Clock::now();
  std::ofstream out(path, std::ios::binary);
  lockstep::page::ComposePage(page.frame, page.blocks, out);
  out.flush();
  std::cout << fmt::format("written   {:7.2f} s  {:.1f} MB, {:.0f} MiB at most\n", SecondsSince(start),
                           static_cast<double>(out.tellp()) / 1e6, PeakMib());
  return out.good() ? 0 : 1;
}
