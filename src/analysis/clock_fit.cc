#include "analysis/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/median.h"

namespace lockstep::analysis {
namespace {

constexpr int64_t kMinimumUncertaintyNs = 1'000;
constexpr int64_t kMinimumDriftSpanNs = 2'000'000'000;
constexpr double kMinimumDriftEffectNs = 2'000;
constexpr double kMaximumDriftPpm = 500;
constexpr size_t kBlockCount = 64;
constexpr size_t kMinimumBlocks = 5;
constexpr double kNormalScale = 1.4826;  // median absolute deviation -> standard deviation

double Median(std::vector<double> values) { return lockstep::Median(&values); }

/// Bounds of the shortest run of sorted values [begin, end) that holds half of them.
void KeepShortestHalf(const std::vector<double>& sorted, size_t* begin, size_t* end) {
  const size_t half = (*end - *begin) / 2 + 1;
  size_t best = *begin;
  for (size_t i = *begin; i + half <= *end; ++i) {
    if (sorted[i + half - 1] - sorted[i] < sorted[best + half - 1] - sorted[best]) best = i;
  }
  *begin = best;
  *end = best + half;
}

/// Centre of the densest part. Small samples are too few to have one: their median.
double DenseCentre(std::vector<double> values) {
  static constexpr size_t kFewest = 12;
  std::sort(values.begin(), values.end());
  size_t begin = 0;
  size_t end = values.size();
  for (int round = 0; round < 2 && end - begin >= kFewest; ++round) KeepShortestHalf(values, &begin, &end);
  return Median(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                    values.begin() + static_cast<std::ptrdiff_t>(end)));
}

struct Block {
  double time = 0;
  double difference = 0;
};

/// Samples thinned to blocks of neighbours in time, each a dense centre: a cheap way to average noise out of slopes.
std::vector<Block> MakeBlocks(const std::vector<Block>& points) {
  const size_t per_block = std::max<size_t>(1, (points.size() + kBlockCount - 1) / kBlockCount);
  std::vector<Block> blocks;
  for (size_t i = 0; i < points.size(); i += per_block) {
    const size_t end = std::min(points.size(), i + per_block);
    std::vector<double> times;
    std::vector<double> differences;
    for (size_t k = i; k < end; ++k) {
      times.push_back(points[k].time);
      differences.push_back(points[k].difference);
    }
    blocks.push_back({Median(times), DenseCentre(differences)});
  }
  return blocks;
}

/// Slope in ns per ns, or 0 when the points do not show one beyond doubt.
double SignificantSlope(const std::vector<Block>& points) {
  const double span = points.back().time - points.front().time;
  if (span < static_cast<double>(kMinimumDriftSpanNs)) return 0;
  const std::vector<Block> blocks = MakeBlocks(points);
  if (blocks.size() < kMinimumBlocks) return 0;
  std::vector<double> slopes;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t k = i + 1; k < blocks.size(); ++k) {
      const double elapsed = blocks[k].time - blocks[i].time;
      if (elapsed > 0) slopes.push_back((blocks[k].difference - blocks[i].difference) / elapsed);
    }
  }
  if (slopes.empty()) return 0;
  const double slope = Median(slopes);
  double mean_time = 0;
  for (const Block& block : blocks) mean_time += block.time / static_cast<double>(blocks.size());
  std::vector<double> residuals;
  double time_spread = 0;
  for (const Block& block : blocks) {
    residuals.push_back(block.difference - slope * block.time);
    time_spread += (block.time - mean_time) * (block.time - mean_time);
  }
  const double centre = Median(residuals);
  for (double& residual : residuals) residual = std::abs(residual - centre);
  const double slope_error = kNormalScale * Median(residuals) / std::sqrt(time_spread);
  if (std::abs(slope) < 3 * slope_error || std::abs(slope) * span < kMinimumDriftEffectNs) return 0;
  return std::abs(slope) * 1e6 > kMaximumDriftPpm ? 0 : slope;
}

}  // namespace

ClockFit FitClock(std::vector<ClockSample> samples) {
  ClockFit fit;
  fit.sample_count = static_cast<uint32_t>(samples.size());
  if (samples.empty()) return fit;
  std::sort(samples.begin(), samples.end(), [](const ClockSample& a, const ClockSample& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.difference_ns < b.difference_ns;
  });
  const int64_t first_ns = samples.front().time_ns;
  fit.span_ns = samples.back().time_ns - first_ns;
  fit.reference_ns = first_ns + fit.span_ns / 2;

  // Doubles hold differences from an anchor exactly; absolute nanoseconds they do not.
  const int64_t anchor_ns = samples[samples.size() / 2].difference_ns;
  std::vector<Block> points;
  points.reserve(samples.size());
  for (const ClockSample& sample : samples) {
    points.push_back({static_cast<double>(sample.time_ns - fit.reference_ns),
                      static_cast<double>(sample.difference_ns - anchor_ns)});
  }
  const double slope = SignificantSlope(points);
  fit.drift_ppm = slope * 1e6;
  std::vector<double> residuals;
  residuals.reserve(points.size());
  for (const Block& point : points) residuals.push_back(point.difference - slope * point.time);
  const double offset = DenseCentre(residuals);
  fit.offset_ns = anchor_ns + static_cast<int64_t>(std::llround(offset));
  for (double& residual : residuals) residual = std::abs(residual - offset);
  fit.uncertainty_ns = kMinimumUncertaintyNs + static_cast<int64_t>(std::llround(kNormalScale * Median(residuals)));
  return fit;
}

}  // namespace lockstep::analysis
