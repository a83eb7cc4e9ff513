// How fast flight-recorder dumps are read, beside what the machine can do with the same bytes, and what the whole of
// `lockstep hang` takes for a large job.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "ingest/flight_recorder/flight_recorder.h"
#include "measure.h"
#include "stuck_job.h"

namespace lockstep::bench {
namespace {

struct Options {
  std::string data_folder = "bench-data";
  std::string program;  ///< The lockstep program; empty: reading only.
  int ranks = 1024;
  int records = 2000;
  int rounds = 7;
};

uint64_t ReadAll(const std::vector<std::string>& dumps) {
  uint64_t entries = 0;
  for (const std::string& dump : dumps) {
    const auto record = ingest::ReadFlightRecord(dump);
    if (!record) throw std::runtime_error(record.error().ToString());
    entries += record->entries.size();
  }
  return entries;
}

// Every byte looked at, as by the fastest scanner there is, and every byte copied.
uint64_t Scan(const std::vector<std::string>& dumps) {
  uint64_t found = 0;
  for (const std::string& dump : dumps)
    found += static_cast<uint64_t>(std::count(dump.begin(), dump.end(), char(0x7f)));
  return found;
}
uint64_t Copy(const std::vector<std::string>& dumps, std::string& to) {
  for (const std::string& dump : dumps) {
    to.resize(std::max(to.size(), dump.size()));
    std::memcpy(to.data(), dump.data(), dump.size());
  }
  return static_cast<uint64_t>(to[0]);
}

void Reading(const std::string& what, const StuckJob& job, bool json, int rounds) {
  std::vector<std::string> dumps;
  uint64_t byte_count = 0;
  for (int32_t rank = 0; rank < job.rank_count; ++rank) {
    const auto dump = DumpOf(job, rank);
    dumps.push_back(json ? JsonOf(dump) : PickleOf(dump));
    byte_count += dumps.back().size();
  }
  uint64_t entries = 0, kept = 0;
  std::string copy;
  const auto read = [&] { entries = ReadAll(dumps); };
  const Paired scan = RunPaired(rounds, Clock::kCpu, read, [&] { kept += Scan(dumps); });
  const Paired copied = RunPaired(rounds, Clock::kCpu, read, [&] { kept += Copy(dumps, copy); });
  const auto rate = [&](double seconds) { return static_cast<double>(byte_count) / seconds / 1e6; };
  fmt::print(
      "{:<24} {:>6.0f} MB/s {:>8.1f} M entries/s {:>5} B an entry   memchr {:>6.0f} MB/s, memcpy {:>6.0f} MB/s\n", what,
      rate(copied.first_seconds), static_cast<double>(entries) / copied.first_seconds / 1e6, byte_count / entries,
      rate(scan.second_seconds), rate(copied.second_seconds));
  if (kept == UINT64_MAX) std::puts("");  // So that nothing is optimised away.
}

void WholeCommand(const Options& options) {
  const StuckJob job{.rank_count = options.ranks, .record_count = options.records};
  const std::string folder = fmt::format("{}/stuck_{}x{}", options.data_folder, options.ranks, options.records);
  const uint64_t byte_count = WriteDumps(job, folder, /*json=*/false);
  const ChildRun empty = RunChild({options.program, "version"});
  std::vector<double> wall, cpu;
  uint64_t peak_bytes = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const ChildRun run = RunChild({options.program, "hang", folder, "--json"});
    if (run.exit_status != 0 && run.exit_status != 3) {
      throw std::runtime_error(fmt::format("lockstep hang ended with status {}", run.exit_status));
    }
    wall.push_back(run.wall_seconds);
    cpu.push_back(run.cpu_seconds);
    peak_bytes = std::max(peak_bytes, run.peak_bytes);
  }
  fmt::print(
      "lockstep hang --json, {} ranks x {} records, {:.0f} MB: {:.2f} s of wall time (best {:.2f}), {:.2f} s of "
      "processor time, "
      "{:.0f} MiB resident at most ({:.0f} MiB of it before it reads)\n",
      options.ranks, options.records, static_cast<double>(byte_count) / 1e6, Median(wall),
      *std::min_element(wall.begin(), wall.end()), Median(cpu), static_cast<double>(peak_bytes) / (1 << 20),
      static_cast<double>(empty.peak_bytes) / (1 << 20));
}

int Run(const Options& options) {
  // One thread, in memory.
  const StuckJob sample{.rank_count = 64, .record_count = options.records, .culprit = 13};
  StuckJob bare = sample;
  bare.stacks = false;
  Reading("pickle with stacks", sample, /*json=*/false, options.rounds);
  Reading("pickle", bare, /*json=*/false, options.rounds);
  Reading("JSON", bare, /*json=*/true, options.rounds);
  if (!options.program.empty()) WholeCommand(options);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app("Measures the reading of flight-recorder dumps and lockstep hang.");
  app.add_option("--data", options.data_folder, "where the dumps are made");
  app.add_option("--lockstep", options.program, "the lockstep program; without it only reading is measured");
  app.add_option("--ranks", options.ranks, "ranks of the large job, a multiple of 8");
  app.add_option("--records", options.records, "records of each rank");
  app.add_option("--rounds", options.rounds);
  CLI11_PARSE(app, argc, argv);
  try {
    return lockstep::bench::Run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep_hang_bars: %s\n", error.what());
    return 1;
  }
}
