#include "generator/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "generator/job_clock.h"
#include "generator/job_simulator.h"

namespace lockstep::tracegen {
namespace {

std::string FileName(const TraceSpec& spec, int32_t rank) {
  const std::string end = spec.gzip_level > 0 ? ".json.gz" : (spec.zstd_level > 0 ? ".json.zst" : ".json");
  if (spec.naming == "worker") return fmt::format("worker{}.1711964646.pt.trace{}", rank, end);
  if (spec.naming == "torch")
    return fmt::format("{}_{}.{}.pt.trace{}", HostName(spec, rank), ProcessId(rank), 1711964646000 + rank, end);
  if (spec.naming == "of") return fmt::format("trace-{}-of-{}{}", rank, spec.rank_count, end);
  if (spec.naming == "dash") return fmt::format("rank-{}.Nov_21.{}.pt.trace{}", rank, ProcessId(rank), end);
  if (spec.naming == "plain") return fmt::format("{}{}", static_cast<char>('a' + rank % 26), end);
  return fmt::format("rank{}{}", rank, end);
}

std::unique_ptr<ByteSink> OpenSink(const TraceSpec& spec, const std::string& path) {
  if (spec.gzip_level > 0) return OpenGzipSink(path, spec.gzip_level);
  if (spec.zstd_level > 0) return OpenZstdSink(path, spec.zstd_level);
  return OpenPlainSink(path);
}

bool IsMissing(const TraceSpec& spec, int32_t rank) {
  return std::find(spec.missing_ranks.begin(), spec.missing_ranks.end(), rank) != spec.missing_ranks.end();
}

/// Places a rank on its clock, writes its file, measures what it holds, and frees its events.
RankTruth FinishRank(const TraceSpec& spec, const JobLog& job, int32_t rank, RankLog* log) {
  RankTruth truth;
  PlaceOnClock(spec, rank, job, log);
  if (!IsMissing(spec, rank)) {
    uint64_t limit = UINT64_MAX;
    for (const PlantedCut& cut : spec.cuts) {
      if (cut.rank != rank) continue;
      const WrittenCounts whole = WriteRank(spec, job, *log, rank, UINT64_MAX, OpenCountingSink().get());
      limit = static_cast<uint64_t>(static_cast<double>(whole.json_bytes) * cut.ratio);
    }
    truth.file = FileName(spec, rank);
    truth.written = WriteRank(spec, job, *log, rank, limit, OpenSink(spec, spec.folder + "/" + truth.file).get());
    truth.device = MeasureDevice(log->device, truth.written.device_rows);
    truth.idle = MeasureIdle(log->device, truth.written.device_rows);
  }
  *log = RankLog();
  return truth;
}

}  // namespace

int32_t StepsForTarget(const TraceSpec& spec) {
  TraceSpec sample = spec;
  sample.rank_count = 1;
  sample.tensor_parallel = 1;
  uint64_t bytes[2];
  for (int32_t steps = 1; steps <= 2; ++steps) {
    JobLog job = SimulateJob(sample, steps);
    PlaceOnClock(sample, 0, job, &job.ranks[0]);
    bytes[steps - 1] = WriteRank(sample, job, job.ranks[0], 0, UINT64_MAX, OpenCountingSink().get()).json_bytes;
  }
  const double more =
      (spec.target_megabytes * 1e6 - static_cast<double>(bytes[0])) / static_cast<double>(bytes[1] - bytes[0]);
  return 1 + std::max(0, static_cast<int32_t>(std::lround(more)));
}

Generated Generate(const TraceSpec& spec) {
  Generated generated;
  generated.step_count = spec.target_megabytes > 0 ? StepsForTarget(spec) : spec.step_count;
  std::filesystem::create_directories(spec.folder);
  JobLog job = SimulateJob(spec, generated.step_count);
  generated.ranks.resize(job.ranks.size());
  std::atomic<int32_t> next_rank = 0;
  std::mutex mutex;
  std::string failure;
  const auto work = [&] {
    for (int32_t rank = next_rank++; rank < spec.rank_count; rank = next_rank++) {
      try {
        const auto index = static_cast<size_t>(rank);
        generated.ranks[index] = FinishRank(spec, job, rank, &job.ranks[index]);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        failure = error.what();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint32_t i = 1; i < spec.thread_count; ++i) threads.emplace_back(work);
    work();
  }
  if (!failure.empty()) throw std::runtime_error(failure);
  for (const RankTruth& rank : generated.ranks) {
    if (rank.file.empty()) continue;
    generated.paths.push_back(spec.folder + "/" + rank.file);
    generated.json_bytes += rank.written.json_bytes;
    generated.event_count += rank.written.event_count;
  }
  generated.truth_path = spec.folder + ".truth.json";
  const std::unique_ptr<ByteSink> truth = OpenPlainSink(generated.truth_path);
  truth->Write(TruthJson(spec, job, generated.step_count, generated.ranks));
  truth->Finish();
  return generated;
}

}  // namespace lockstep::tracegen
