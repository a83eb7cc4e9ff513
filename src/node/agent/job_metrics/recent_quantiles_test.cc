#include "node/agent/job_metrics/recent_quantiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/nanoseconds.h"

namespace lockstep::agent {
namespace {

std::vector<double> Values(const RecentQuantiles& quantiles, int64_t now_ns) {
  std::vector<double> values;
  for (const auto& quantile : quantiles.Collect(now_ns).summary.quantile) values.push_back(quantile.value);
  return values;
}

TEST(RecentQuantiles, AreWithinHalfAPercentOfTheValueAtTheirRankHoweverFewThereAre) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> durations(-1, 0.6);
  for (const size_t count : {1u, 2u, 20u, 85u, 247u, 100'000u}) {
    RecentQuantiles quantiles;
    std::vector<double> all;
    for (size_t i = 0; i < count; ++i) {
      all.push_back(durations(random));
      quantiles.Observe(all.back(), static_cast<int64_t>(i) * 40 * kSecondNs / static_cast<int64_t>(count));
      // It is looked at all the while.
      if (i % 1000 == 0) Values(quantiles, 40 * kSecondNs);
    }
    std::sort(all.begin(), all.end());
    const prometheus::ClientMetric metric = quantiles.Collect(40 * kSecondNs);
    ASSERT_EQ(metric.summary.quantile.size(), 4);
    for (const auto& [share, value] : metric.summary.quantile) {
      const double exact = all[static_cast<size_t>(std::ceil(share * static_cast<double>(count))) - 1];
      EXPECT_NEAR(value, exact, exact * 0.00501) << share << " of " << count;
    }
    EXPECT_EQ(metric.summary.sample_count, count);
  }
}

TEST(RecentQuantiles, ForgetWhatIsOlderThanAMinute) {
  RecentQuantiles quantiles;
  quantiles.Observe(5, 3 * kSecondNs);
  for (const double value : Values(quantiles, 59 * kSecondNs)) EXPECT_NEAR(value, 5, 0.03);
  quantiles.Observe(1, 58 * kSecondNs);
  for (const double value : Values(quantiles, 63 * kSecondNs)) EXPECT_NEAR(value, 1, 0.006);
  // The part's place is taken again.
  quantiles.Observe(2, 64 * kSecondNs);
  EXPECT_NEAR(Values(quantiles, 64 * kSecondNs).back(), 2, 0.011);
  for (const double value : Values(quantiles, 3600 * kSecondNs)) EXPECT_TRUE(std::isnan(value));
  const prometheus::ClientMetric metric = quantiles.Collect(3600 * kSecondNs);
  EXPECT_EQ(metric.summary.sample_count, 3);
  EXPECT_EQ(metric.summary.sample_sum, 8);
}

TEST(RecentQuantiles, CountWhatNoRequestTakes) {
  RecentQuantiles quantiles;
  for (const double value : Values(quantiles, 0)) EXPECT_TRUE(std::isnan(value));
  for (const double value : {0.0, -3.0, std::numeric_limits<double>::quiet_NaN()}) quantiles.Observe(value, 0);
  for (const double value : Values(quantiles, 0)) EXPECT_NEAR(value, 1e-6, 1e-8);
  for (int i = 0; i < 1000; ++i) quantiles.Observe(std::numeric_limits<double>::infinity(), 0);
  for (const double value : Values(quantiles, 0)) EXPECT_NEAR(value, 1e6, 1e4);
}

}  // namespace
}  // namespace lockstep::agent
