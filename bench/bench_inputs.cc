#include "bench_inputs.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "generator/generate.h"

namespace lockstep::bench {
namespace {

constexpr int32_t kRanks = 8;

tracegen::TraceSpec SpecFor(const std::string& folder, double megabytes, int gzip_level) {
  tracegen::TraceSpec spec;
  spec.folder = folder;
  spec.rank_count = kRanks;
  spec.layer_count = 200;
  spec.target_megabytes = megabytes;
  spec.seed = 21;
  spec.gzip_level = gzip_level;
  spec.stragglers.push_back({3, 20'000'000, tracegen::SlowBy::kKernel, {}});
  spec.thread_count = std::thread::hardware_concurrency();
  return spec;
}

/// "bytes events complete-events" of a finished set; written last, so that an interrupted set is made again.
std::string StampPath(const std::string& folder) { return folder + ".stamp"; }

/// Runs `work` in a process of its own, so that its memory does not stay with this one.
void InChild(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) throw std::runtime_error("cannot make the inputs");
}

void MakeUnlessThere(const tracegen::TraceSpec& spec) {
  if (std::filesystem::exists(StampPath(spec.folder))) return;
  std::fprintf(stderr, "making %s ...\n", spec.folder.c_str());
  InChild([&] {
    const tracegen::Generated made = tracegen::Generate(spec);
    uint64_t complete_count = 0;
    for (const tracegen::RankTruth& rank : made.ranks) complete_count += rank.written.complete_count;
    std::ofstream(StampPath(spec.folder))
        << made.json_bytes << ' ' << made.event_count << ' ' << complete_count << '\n';
  });
}

}  // namespace

BenchInputs PrepareInputs(const std::string& folder, double megabytes) {
  BenchInputs inputs;
  inputs.plain_folder = fmt::format("{}/f{:.0f}", folder, megabytes);
  inputs.gzip_folder = inputs.plain_folder + "z";
  MakeUnlessThere(SpecFor(inputs.plain_folder, megabytes, 0));
  MakeUnlessThere(SpecFor(inputs.gzip_folder, megabytes, 6));
  std::ifstream(StampPath(inputs.plain_folder)) >> inputs.json_bytes >> inputs.event_count >> inputs.complete_count;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    inputs.plain_files.push_back(fmt::format("{}/rank{}.json", inputs.plain_folder, rank));
    inputs.gzip_files.push_back(fmt::format("{}/rank{}.json.gz", inputs.gzip_folder, rank));
  }
  return inputs;
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string bytes(std::filesystem::file_size(path), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace lockstep::bench
