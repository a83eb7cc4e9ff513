#include "analysis/parallelism/ddp.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// Buckets of one backward pass of one rank and group, in order of issue.
using BucketCalls = std::vector<const TrafficCall*>;

struct BucketSums {
  uint64_t count = 0;
  std::optional<int64_t> bytes;
  int64_t duration_ns = 0;
  double issue_ratio = 0;
  uint64_t device_count = 0;
  int64_t overlapped_ns = 0;
  int64_t exposed_ns = 0;
};

bool MayHoldGradients(const ProcessGroupRow& group) {
  return group.kind == GroupKind::kData || (group.kind == GroupKind::kWorld && group.is_world);
}

int64_t Overlap(const TrafficCall& call, const Interval& other) {
  return std::max<int64_t>(0, std::min(call.end_ns(), other.end_ns) - std::max(call.start_ns, other.start_ns));
}

void AddBucket(const TrafficCall& call, const BackwardPhase& phase, BucketSums* sums) {
  ++sums->count;
  if (!sums->bytes) sums->bytes = call.bytes;
  sums->duration_ns += call.duration_ns;
  sums->exposed_ns += call.exposed_ns;
  const int64_t length_ns = std::max<int64_t>(phase.host.end_ns - phase.host.start_ns, 1);
  const double at = static_cast<double>(*call.issue_ns - phase.host.start_ns) / static_cast<double>(length_ns);
  sums->issue_ratio += std::clamp(at, 0.0, 1.0);
  if (!phase.device) return;
  ++sums->device_count;
  sums->overlapped_ns += Overlap(call, *phase.device);
}

class DdpFinisher {
 public:
  void AddRank(const RankTraffic& traffic, const std::vector<size_t>& rows,
               const std::vector<ProcessGroupRow>& groups) {
    std::map<std::pair<uint32_t, uint32_t>, BucketCalls> passes;  // (group row, phase)
    for (const TrafficCall& call : traffic.calls) {
      const size_t row = rows[call.group];
      if (row == SIZE_MAX || !call.in_backward() || !call.issue_ns) continue;
      if (call.kind != CollectiveKind::kAllReduce || !MayHoldGradients(groups[row])) continue;
      passes[{groups[row].number, call.phase}].push_back(&call);
    }
    for (const auto& [key, pass] : passes) AddPass(traffic, key.first, traffic.phases[key.second], pass);
    for (auto& [group, row] : open_) {
      row.buckets_per_pass /= static_cast<double>(row.pass_count);
      if (row.bytes_per_pass) *row.bytes_per_pass /= static_cast<int64_t>(row.pass_count);
      result_.ranks.push_back(row);
    }
    open_.clear();
  }

  Ddp Finish() {
    for (const auto& [key, sums] : buckets_) {
      const auto count = static_cast<int64_t>(sums.count);
      DdpBucketRow row;
      row.group = key.first;
      row.bucket = key.second;
      row.call_count = sums.count;
      row.bytes = sums.bytes;
      row.mean_duration_ns = sums.duration_ns / count;
      row.issue_ratio = sums.issue_ratio / static_cast<double>(sums.count);
      if (sums.device_count > 0) row.mean_overlapped_ns = sums.overlapped_ns / static_cast<int64_t>(sums.device_count);
      row.mean_exposed_ns = sums.exposed_ns / count;
      result_.buckets.push_back(row);
    }
    return std::move(result_);
  }

 private:
  void AddPass(const RankTraffic& traffic, uint32_t group, const BackwardPhase& phase, const BucketCalls& pass) {
    DdpRow& row = open_[group];
    row.rank_index = traffic.rank_index;
    row.group = group;
    ++row.pass_count;
    row.buckets_per_pass += static_cast<double>(pass.size());
    int64_t last_end_ns = INT64_MIN;
    for (size_t i = 0; i < pass.size(); ++i) {
      const TrafficCall& call = *pass[i];
      row.communication_ns += call.duration_ns;
      row.exposed_ns += call.exposed_ns;
      int64_t bytes = 0;
      if (call.bytes && !__builtin_add_overflow(row.bytes_per_pass.value_or(0), *call.bytes, &bytes)) {
        row.bytes_per_pass = bytes;
      }
      last_end_ns = std::max(last_end_ns, call.end_ns());
      AddBucket(call, phase, &buckets_[{group, static_cast<uint32_t>(i)}]);
    }
    if (phase.device) {
      row.tail_ns = row.tail_ns.value_or(0) + std::max<int64_t>(last_end_ns - phase.device->end_ns, 0);
    }
  }

  Ddp result_;
  std::map<uint32_t, DdpRow> open_;  // of one rank, by group
  std::map<std::pair<uint32_t, uint32_t>, BucketSums> buckets_;
};

}  // namespace

Ddp FinishDdp(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
              const std::vector<ProcessGroupRow>& groups) {
  const auto rows = RowsOfTraffic(run, by_rank_index, groups);
  DdpFinisher finisher;
  for (size_t i = 0; i < by_rank_index.size(); ++i) finisher.AddRank(by_rank_index[i], rows[i], groups);
  return finisher.Finish();
}

namespace {

std::vector<RowColumn<DdpRow>> DdpColumns() {
  using Row = DdpRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      Field<&Row::pass_count>("pass_count", "count", "Backward passes that sent gradients."),
      Field<&Row::buckets_per_pass>("buckets_per_pass", "count", "Mean number of all_reduces issued in one of them."),
      Field<&Row::bytes_per_pass>("bytes_per_pass", "bytes", "Mean of their sizes' sum.", "not recorded"),
      Field<&Row::communication_ns>("communication_ns", "ns", "Sum of their durations; waiting is in it."),
      Field<&Row::exposed_ns>("exposed_ns", "ns", "Part of that in which the rank computes nothing."),
      Field<&Row::tail_ns>("tail_ns", "ns",
                           "Sum over passes: end of the device's backward pass to the end of the last bucket.",
                           "no kernel of a backward pass is known"),
  };
}

std::vector<RowColumn<DdpBucketRow>> BucketColumns() {
  using Row = DdpBucketRow;
  return {
      GroupColumn<Row>(),
      Field<&Row::bucket>("bucket", "", "Place in the backward pass, from 0, in order of issue."),
      Field<&Row::call_count>("call_count", "count", "Calls, all ranks and passes."),
      Field<&Row::bytes>("bytes", "bytes", "Size, of the first of these calls.", "not recorded"),
      Field<&Row::mean_duration_ns>("mean_duration_ns", "ns", "Mean duration; waiting is in it."),
      Field<&Row::issue_ratio>("issue_ratio", "0..1",
                               "Where in the backward pass the CPU issued it: 0 at its begin, 1 at its end."),
      Field<&Row::mean_overlapped_ns>("mean_overlapped_ns", "ns", "Mean part inside the device's backward pass.",
                                      "no kernel of a backward pass is known"),
      Field<&Row::mean_exposed_ns>("mean_exposed_ns", "ns", "Mean part in which the rank computes nothing."),
  };
}

}  // namespace

Pass DdpPass() {
  return RunPass<Ddp>(
      {.question = "Are gradient buckets sent while the backward pass runs?",
       .needs = {"traffic", "groups"},
       .tables = {DeclareTable("ddp", "ddp", "Gradients of a data group on one rank", &Ddp::ranks, DdpColumns()),
                  DeclareTable("ddp_buckets", "ddp_buckets", "A gradient bucket, by its place in the backward pass",
                               &Ddp::buckets, BucketColumns())}},
      [](PassContext& context) {
        return FinishDdp(context.run(), context.Get<Traffic>().ranks, context.Get<ProcessGroups>().rows);
      });
}

}  // namespace lockstep::analysis
