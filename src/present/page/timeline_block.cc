#include <fmt/format.h>

#include <algorithm>

#include "analysis/timeline_levels.h"
#include "present/page/column_block.h"
#include "present/page/data_blocks.h"
#include "present/page/parallel.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

constexpr size_t kFewestBuckets = 256;
constexpr size_t kMostBuckets = 65'536;
constexpr int64_t kShortestBucketNs = 1'000;

/// Busy time as a share of the bucket in 1/255; what is there at all is at least 1.
uint8_t Share(int64_t busy_ns, int64_t bucket_ns) {
  if (busy_ns <= 0) return 0;
  const double share = 255.0 * static_cast<double>(busy_ns) / static_cast<double>(bucket_ns);
  return static_cast<uint8_t>(std::clamp(share + 0.5, 1.0, 255.0));
}

}  // namespace

TimelinePlan PlanTimeline(const PageModel& model, std::vector<Reduction>* reductions) {
  TimelinePlan plan;
  if (model.span_ns <= 0) return plan;
  const size_t rank_bytes = model.run().ranks.size() * analysis::kTimelineClassCount;
  for (size_t count = kFewestBuckets; count <= kMostBuckets; count *= kLevelFactor) {
    const bool first = plan.bucket_counts.empty();
    if (!first && model.span_ns / static_cast<int64_t>(count) < kShortestBucketNs) break;
    if (!first && count * rank_bytes > model.limits.timeline_bytes) {
      if (model.limits.timeline_bytes < PageLimits().timeline_bytes) {
        reductions->push_back({"timeline", fmt::format("overview: {} stretches of time and no finer ones",
                                                       report::FormatCount(plan.bucket_counts.back()))});
      }
      break;
    }
    plan.bucket_counts.push_back(count);
  }
  plan.finest_bucket_ns = model.span_ns / static_cast<int64_t>(plan.bucket_counts.back()) + 1;
  return plan;
}

std::string TimelineBytes(const PageModel& model, const TimelinePlan& plan) {
  const size_t rank_count = model.run().ranks.size();
  const size_t finest = plan.bucket_counts.back();
  std::vector<std::vector<uint8_t>> levels;
  for (const size_t count : plan.bucket_counts) {
    levels.emplace_back(rank_count * count * analysis::kTimelineClassCount);
  }
  ForEachIndex(rank_count, model.input.options.thread_count, [&](size_t rank) {
    analysis::TimelineBusy busy =
        ComputeTimeline(model.shared, rank, {model.rank_origin_ns[rank], plan.finest_bucket_ns, finest});
    int64_t bucket_ns = plan.finest_bucket_ns;
    for (size_t level = levels.size(); level-- > 0;) {
      uint8_t* shares = levels[level].data() + rank * busy.size();
      for (size_t i = 0; i < busy.size(); ++i) shares[i] = Share(busy[i], bucket_ns);
      if (level == 0) break;
      busy = analysis::CoarsenTimeline(busy, kLevelFactor);
      bucket_ns *= static_cast<int64_t>(kLevelFactor);
    }
  });
  ColumnBlock block;
  block.header().Key("rank_count").Uint(rank_count).Key("levels").StartArray();
  for (const size_t count : plan.bucket_counts) {
    block.header().StartObject().Key("bucket_count").Uint(count).Key("bucket_ns");
    block.header().Int(plan.finest_bucket_ns * static_cast<int64_t>(finest / count)).EndObject();
  }
  block.header().EndArray();
  for (size_t level = 0; level < levels.size(); ++level) {
    block.Add("level-" + std::to_string(level), levels[level]);
    levels[level] = {};
  }
  return block.Finish();
}

}  // namespace lockstep::page
