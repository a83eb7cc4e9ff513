#include "synthetic_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr int64_t kEpochNs = 1'700'000'000'000'000'000;
constexpr int64_t kKernelNs = 8'000'000;
constexpr int64_t kTransferNs = 4'000'000;
constexpr int64_t kGapNs = 20'000;

void Append(int64_t start_ns, int64_t duration_ns, NameId name, model::Category category, model::Track* track) {
  model::EventColumns& events = track->events;
  events.start_ns.push_back(start_ns);
  events.duration_ns.push_back(duration_ns);
  events.name.push_back(name);
  events.category.push_back(category);
  if (track->lane == model::Lane::kDevice) events.correlation.push_back(0);
}

model::Track MakeTrack(model::Lane lane, int64_t process_id, int64_t thread_id) {
  model::Track track;
  track.lane = lane;
  track.process_id = process_id;
  track.thread_id = thread_id;
  return track;
}

class Builder {
 public:
  explicit Builder(const SyntheticShape& shape) : shape_(shape), random_(shape.rank_count * 7919 + shape.step_count) {}

  model::Run Build() {
    Prepare();
    std::vector<int64_t> arrival_ns(shape_.rank_count);
    int64_t now_ns = kEpochNs;
    for (size_t step = 0; step < shape_.step_count; ++step) {
      for (size_t rank = 0; rank < shape_.rank_count; ++rank) arrival_ns[rank] = Compute(rank, step, now_ns);
      const int64_t last_ns = *std::max_element(arrival_ns.begin(), arrival_ns.end());
      const int64_t transfer_ns = Vary(kTransferNs);
      for (size_t rank = 0; rank < shape_.rank_count; ++rank) {
        Reduce(rank, step, now_ns, arrival_ns[rank], last_ns + transfer_ns + Below(2'000));
      }
      now_ns = last_ns + transfer_ns + 100'000;
    }
    for (model::RankTrace& trace : run_.ranks) Finish(&trace);
    return std::move(run_);
  }

 private:
  int64_t Below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }
  /// Within 4 % around the mean.
  int64_t Vary(int64_t mean_ns) { return mean_ns - mean_ns / 25 + Below(mean_ns * 2 / 25); }

  void Prepare() {
    for (size_t i = 0; i < 200; ++i) {
      kernels_.push_back(run_.names.Intern(fmt::format("synthetic_gemm_{}x128_tn_kernel<float, {}>", 64 + i, i % 7)));
    }
    for (size_t step = 0; step < shape_.step_count; ++step) {
      steps_.push_back(run_.names.Intern(fmt::format("ProfilerStep#{}", step)));
    }
    reduce_ = run_.names.Intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
    collective_ = run_.names.Intern("allreduce");
    dtype_ = run_.names.Intern("Float");
    group_ = run_.names.Intern("0");
    for (size_t rank = 0; rank < shape_.rank_count; ++rank) {
      model::RankTrace trace;
      trace.rank = {static_cast<int32_t>(rank)};
      trace.rank_source = model::RankSource::kDistributedInfo;
      trace.world_size = static_cast<int32_t>(shape_.rank_count);
      trace.host = fmt::format("node{:03}", rank / 8);
      trace.source = fmt::format("synthetic/rank{}.json", rank);
      trace.backend = "nccl";
      trace.devices.push_back({{static_cast<int32_t>(rank % 8)}, "Synthetic device", int64_t{80} << 30, 132});
      trace.base_time_known = true;
      trace.tracks.push_back(MakeTrack(model::Lane::kOperators, 1000, 1));
      trace.tracks.push_back(MakeTrack(model::Lane::kDevice, static_cast<int64_t>(rank % 8), 7));
      trace.tracks.push_back(MakeTrack(model::Lane::kDevice, static_cast<int64_t>(rank % 8), 20));
      run_.ranks.push_back(std::move(trace));
    }
  }

  /// The rank's kernels of a step; returns when it arrives at the collective.
  int64_t Compute(size_t rank, size_t step, int64_t now_ns) {
    model::Track& stream = run_.ranks[rank].tracks[1];
    const int64_t mean_ns = rank % 100 == 37 ? kKernelNs * 6 / 5 : kKernelNs;
    now_ns += Below(50'000);
    for (size_t k = 0; k < shape_.kernels_per_step; ++k) {
      const int64_t duration_ns = Vary(mean_ns);
      Append(now_ns, duration_ns, kernels_[(step * 3 + k * 17) % kernels_.size()], model::Category::kKernel, &stream);
      now_ns += duration_ns + Below(kGapNs);
    }
    return now_ns;
  }

  void Reduce(size_t rank, size_t step, int64_t step_start_ns, int64_t arrival_ns, int64_t end_ns) {
    model::RankTrace& trace = run_.ranks[rank];
    Append(step_start_ns, end_ns - step_start_ns, steps_[step], model::Category::kUserAnnotation, &trace.tracks[0]);
    Append(arrival_ns, end_ns - arrival_ns, reduce_, model::Category::kKernel, &trace.tracks[2]);
    model::CollectiveRecord record;
    record.source = model::CollectiveRecord::Source::kKernel;
    record.start_ns = arrival_ns;
    record.duration_ns = end_ns - arrival_ns;
    record.process_id = trace.tracks[2].process_id;
    record.thread_id = 20;
    record.event_name = reduce_;
    record.collective_name = collective_;
    record.dtype = dtype_;
    record.group_name = group_;
    record.in_elements = record.out_elements = 25'000'000;
    record.group_size = static_cast<int32_t>(shape_.rank_count);
    record.sequence = static_cast<int64_t>(step);
    trace.collectives.push_back(record);
  }

  static void Finish(model::RankTrace* trace) {
    for (const model::Track& track : trace->tracks) {
      const model::EventColumns& events = track.events;
      if (events.empty()) continue;
      trace->event_count += events.size();
      trace->first_ns = std::min(trace->first_ns.value_or(events.start_ns[0]), events.start_ns[0]);
      const int64_t last_ns = events.end_ns(events.size() - 1);
      trace->last_ns = std::max(trace->last_ns.value_or(last_ns), last_ns);
    }
    trace->complete_event_count = trace->event_count;
  }

  const SyntheticShape shape_;
  std::mt19937_64 random_;
  model::Run run_;
  std::vector<NameId> kernels_, steps_;
  NameId reduce_, collective_, dtype_, group_;
};

}  // namespace

model::Run MakeSyntheticRun(const SyntheticShape& shape) { return Builder(shape).Build(); }

}  // namespace lockstep::bench
