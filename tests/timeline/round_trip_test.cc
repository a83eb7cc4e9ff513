// Runs made up at random, written as Perfetto traces and read back: every event, collective, allocator event, step and
// clock must be there again, on the aligned clock.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/testing/trace_builder.h"
#include "ingest/job/ingest_run.h"
#include "model/step.h"
#include "present/export/timeline/timeline.h"

namespace lockstep {
namespace {

using model::Lane;

constexpr int64_t kNow = 1'700'000'000'000'000'000;

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("lockstep_round_trip_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct Shape {
  int64_t origin_ns = kNow;
  bool drift = false;
  bool windows = false;
};

/// A run with everything that a trace may hold, odd cases included: events of no length, equal events, crossing ones,
/// names that are empty or hold odd bytes, missing totals.
model::Run RandomRun(uint32_t seed, const Shape& shape) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t limit) { return static_cast<int64_t>(random() % limit); };
  const std::vector<std::string> names = {"aten::add", "aten::mm",        "",     "quote\" and \\",
                                          "tab\there", "\xC3\xA4 umlaut", "gemm", "ncclDevKernel_AllReduce"};
  const auto any_name = [&] { return names[static_cast<size_t>(below(names.size()))]; };
  analysis::testing::RunBuilder job;
  const int rank_count = 1 + static_cast<int>(below(4));
  for (int window = 0; window < (shape.windows ? 2 : 1); ++window) {
    for (int32_t r = 0; r < rank_count; ++r) {
      analysis::testing::RankBuilder& rank = job.Rank(r, window);
      const int64_t origin_ns = shape.origin_ns + window * 1'000'000;
      rank.WorldSize(rank_count).Host(below(2) == 0 ? "" : "node" + std::to_string(r / 2));
      rank.Group({.name = "0", .description = "default_pg", .backend = "nccl", .size = rank_count, .ranks = {0, 1}});
      rank.Device({.ordinal = {r}, .name = "NVIDIA H100", .memory_bytes = int64_t{80} << 30});
      rank.OnDevice(r);
      for (int i = 0; i < 60; ++i) {
        const int64_t start_ns = origin_ns + below(2000);
        const int64_t duration_ns = below(3) == 0 ? 0 : below(300);
        const auto correlation = static_cast<uint32_t>(below(40));
        const int64_t thread = 1 + below(2);
        switch (below(8)) {
          case 0: rank.Op(thread, any_name(), start_ns, duration_ns); break;
          case 1: {
            // Ranges and operators that stand for a collective always have a record.
            const bool range = below(2) == 0;
            model::CollectiveRecord record;
            record.source =
                range ? model::CollectiveRecord::Source::kAnnotation : model::CollectiveRecord::Source::kParamComms;
            record.start_ns = start_ns;
            record.duration_ns = duration_ns;
            record.process_id = 100 + r;
            record.thread_id = thread;
            record.event_name = rank.Name(range ? "nccl:all_reduce" : "record_param_comms");
            if (below(2) == 0) record.dtype = rank.Name("Float");
            if (below(2) == 0) record.in_elements = below(1000);
            rank.Collective(record);
            if (range) {
              rank.Annotation(thread, "nccl:all_reduce", start_ns, duration_ns);
            } else {
              rank.Op(thread, "record_param_comms", start_ns, duration_ns);
            }
            break;
          }
          case 2: rank.Python(thread, any_name(), start_ns, duration_ns); break;
          case 3: rank.Runtime(thread, "cudaLaunchKernel", start_ns, duration_ns, correlation); break;
          case 4: rank.Driver(thread, "cuLaunchKernelEx", start_ns, duration_ns, correlation); break;
          case 5: rank.Memcpy(7, "Memcpy HtoD", start_ns, duration_ns, correlation); break;
          case 6: rank.Other(thread, model::Category::kSync, "Stream Sync", start_ns, duration_ns); break;
          default: {
            const std::string name = below(2) == 0 ? "gemm" : "ncclDevKernel_AllReduce";
            const int64_t stream = 7 + below(2);
            rank.Kernel(stream, name, start_ns, duration_ns, correlation);
            if (name == "gemm") break;
            model::CollectiveRecord record;
            record.start_ns = start_ns;
            record.duration_ns = duration_ns;
            record.process_id = r;
            record.thread_id = stream;
            record.correlation = correlation;
            record.event_name = rank.Name(name);
            record.collective_name = rank.Name(below(4) == 0 ? "" : "allreduce");
            record.dtype = rank.Name("BFloat16");
            record.group_name = rank.Name("0");
            record.group_ranks = rank.Name("[0, 1, 2, ...]");
            if (below(2) == 0) record.in_elements = below(1'000'000);
            if (below(2) == 0) record.group_size = rank_count;
            if (below(2) == 0) record.sequence = i;
            if (below(2) == 0) record.communicator_id = ~uint64_t{0} - static_cast<uint64_t>(i);
            if (below(4) == 0) record.source_rank = r;
            rank.Collective(record);
          }
        }
      }
      for (int step = 0; step < 3; ++step)
        rank.Annotation(1, "ProfilerStep#" + std::to_string(step), origin_ns + 700 * step, 650);
      for (int i = 0; i < 5; ++i)
        rank.Allocation(static_cast<int16_t>(below(2) == 0 ? -1 : r), origin_ns + below(2000), below(1000) - 500,
                        below(3) == 0 ? -1 : below(10'000), below(3) == 0 ? -1 : below(10'000));
    }
  }
  model::Run run = job.Build();
  for (model::RankTrace& trace : run.ranks) {
    trace.clock.offset_ns = below(100'000) - 50'000;
    trace.clock.reference_ns = shape.origin_ns;
    trace.clock.uncertainty_ns = below(1000);
    trace.clock.sample_count = 12;
    trace.clock.basis = model::ClockMap::Basis::kCollectives;
    if (shape.drift) trace.clock.drift_ppm = static_cast<double>(below(2'000'000) - 1'000'000) / 100.0;
    trace.backend = "nccl";
  }
  return run;
}

using Row = std::tuple<Lane, int64_t, int64_t, int64_t, int64_t, std::string, int, uint32_t>;

/// Every event of a rank; `clock` takes its times to the run's.
std::vector<Row> Rows(const model::Run& run, const model::RankTrace& trace, const model::ClockMap& clock) {
  std::vector<Row> rows;
  for (const model::Track& track : trace.tracks) {
    for (size_t i = 0; i < track.events.size(); ++i) {
      const int64_t start_ns = clock.ToRun(track.events.start_ns[i]);
      rows.emplace_back(track.lane, track.process_id, track.thread_id, start_ns,
                        clock.ToRun(track.events.end_ns(i)) - start_ns, std::string(run.names[track.events.name[i]]),
                        static_cast<int>(track.events.category[i]),
                        track.events.correlation.empty() ? 0 : track.events.correlation[i]);
    }
  }
  return rows;
}

/// The order of equal events is that of the file; where drift makes neighbours equal it may change.
std::vector<Row> Sorted(std::vector<Row> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

using Collective =
    std::tuple<int, int64_t, int64_t, int64_t, int64_t, uint32_t, std::vector<std::string>, std::optional<int64_t>,
               std::optional<int32_t>, std::optional<int64_t>, std::optional<uint64_t>, std::optional<int32_t>>;

std::vector<Collective> Collectives(const model::Run& run, const model::RankTrace& trace,
                                    const model::ClockMap& clock) {
  std::vector<Collective> rows;
  for (const model::CollectiveRecord& record : trace.collectives) {
    std::vector<std::string> texts;
    for (const NameId id : {record.event_name, record.collective_name, record.dtype, record.group_name,
                            record.group_description, record.group_ranks})
      texts.emplace_back(run.names[id]);
    const int64_t start_ns = clock.ToRun(record.start_ns);
    rows.emplace_back(static_cast<int>(record.source), start_ns,
                      clock.ToRun(record.start_ns + record.duration_ns) - start_ns, record.process_id, record.thread_id,
                      record.correlation, texts, record.in_elements, record.group_size, record.sequence,
                      record.communicator_id, record.source_rank);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

using Allocation = std::tuple<int64_t, int64_t, int64_t, int64_t, int>;

std::vector<Allocation> Allocations(const model::RankTrace& trace, const model::ClockMap& clock) {
  std::vector<Allocation> rows;
  const model::MemoryColumns& memory = trace.memory;
  for (size_t i = 0; i < memory.size(); ++i)
    rows.emplace_back(clock.ToRun(memory.time_ns[i]), memory.change_bytes[i], memory.allocated_bytes[i],
                      memory.reserved_bytes[i], memory.device[i]);
  std::sort(rows.begin(), rows.end());
  return rows;
}

void CheckSame(const model::Run& source, const model::Run& read, bool drift) {
  ASSERT_EQ(source.ranks.size(), read.ranks.size());
  for (size_t i = 0; i < source.ranks.size(); ++i) {
    const model::RankTrace& a = source.ranks[i];
    const model::RankTrace& b = read.ranks[i];
    SCOPED_TRACE("rank " + std::to_string(a.rank.value) + " window " + std::to_string(a.window));
    EXPECT_EQ(a.rank, b.rank);
    EXPECT_EQ(a.window, b.window);
    EXPECT_EQ(a.host, b.host);
    EXPECT_EQ(a.backend, b.backend);
    EXPECT_EQ(a.world_size, b.world_size);
    EXPECT_EQ(a.event_count, b.event_count);
    EXPECT_EQ(a.complete_event_count, b.complete_event_count);
    EXPECT_EQ(a.tracks.size(), b.tracks.size());
    EXPECT_TRUE(b.clock_is_aligned);
    EXPECT_EQ(b.clock.offset_ns, 0);
    EXPECT_EQ(b.clock.drift_ppm, 0.0);
    EXPECT_EQ(a.clock.uncertainty_ns, b.clock.uncertainty_ns);
    EXPECT_EQ(a.clock.basis, b.clock.basis);
    EXPECT_EQ(a.clock.sample_count, b.clock.sample_count);
    ASSERT_EQ(a.devices.size(), b.devices.size());
    EXPECT_EQ(a.devices[0].name, b.devices[0].name);
    EXPECT_EQ(a.devices[0].memory_bytes, b.devices[0].memory_bytes);
    ASSERT_EQ(a.groups.size(), b.groups.size());
    EXPECT_EQ(a.groups[0].ranks, b.groups[0].ranks);
    if (drift) {
      EXPECT_EQ(Sorted(Rows(source, a, a.clock)), Sorted(Rows(read, b, {})));
    } else {
      EXPECT_EQ(Rows(source, a, a.clock), Rows(read, b, {}));
    }
    EXPECT_EQ(Collectives(source, a, a.clock), Collectives(read, b, {}));
    EXPECT_EQ(Allocations(a, a.clock), Allocations(b, {}));
    const auto steps_a = model::FindSteps(a, source.names, "");
    const auto steps_b = model::FindSteps(b, read.names, "");
    ASSERT_EQ(steps_a.size(), steps_b.size());
    for (size_t s = 0; s < steps_a.size(); ++s) EXPECT_EQ(a.clock.ToRun(steps_a[s].start_ns), steps_b[s].start_ns);
  }
}

void CheckRoundTrip(const Shape& shape, const char* file_name, uint32_t trials) {
  const Folder folder;
  for (uint32_t seed = 1; seed <= trials; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const model::Run run = RandomRun(seed, shape);
    const std::string path = folder.File(file_name);
    const auto kind = timeline::KindOfOutput(path);
    ASSERT_TRUE(kind);
    const auto summary = timeline::WriteTimeline(run, analysis::Collectives(), path, *kind, {});
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->file_bytes, std::filesystem::file_size(path));
    const auto read = ingest::IngestRun({path}, {});
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_FALSE(read->ledger.Has(model::Severity::kError)) << read->ledger.entries().front().message;
    CheckSame(run, *read, shape.drift);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RoundTripTest, EveryEventComesBack) { CheckRoundTrip({}, "job.pftrace", 60); }

TEST(RoundTripTest, DriftIsTakenOutOfBothEndsOfAnEvent) { CheckRoundTrip({.drift = true}, "job.pftrace", 40); }

TEST(RoundTripTest, WindowsOfARankStayApart) { CheckRoundTrip({.windows = true}, "job.pftrace", 20); }

TEST(RoundTripTest, CompressedFilesAndArchivesHoldTheSame) {
  CheckRoundTrip({}, "job.pftrace.gz", 10);
  CheckRoundTrip({}, "job.tar", 10);
}

TEST(RoundTripTest, TimesBeforeTheEpochAreShiftedAndShiftedBack) {
  CheckRoundTrip({.origin_ns = -1'000'000}, "job.pftrace", 10);
}

TEST(RoundTripTest, TheSameRunGivesTheSameBytes) {
  const Folder folder;
  const model::Run run = RandomRun(5, {});
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    const std::string path = folder.File("job" + std::to_string(i) + ".pftrace");
    ASSERT_TRUE(timeline::WriteTimeline(run, analysis::Collectives(), path, {}, {}));
    std::ifstream file(path, std::ios::binary);
    texts[i].assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_FALSE(texts[0].empty());
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(RoundTripTest, AFailedWriteLeavesNothingBehind) {
  const Folder folder;
  const model::Run run = RandomRun(5, {});
  timeline::Options options;
  options.selection.ranks = {{90, 99}};
  const auto refused = timeline::WriteTimeline(run, analysis::Collectives(), folder.File("a.pftrace"), {}, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  const auto nowhere = timeline::WriteTimeline(run, analysis::Collectives(), folder.File("no/a.pftrace"), {}, {});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(folder.File("a")).parent_path()));
}

}  // namespace
}  // namespace lockstep
