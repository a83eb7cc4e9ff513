#include "base/exposition/exposition.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

namespace lockstep::exposition {
namespace {

struct Kept {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

std::vector<Kept> Read(std::string_view text, ExpositionCount* count = nullptr) {
  std::vector<Kept> kept;
  const ExpositionCount read = ReadExposition(text, [&](const MetricSample& sample) {
    Kept& one = kept.emplace_back();
    one.name = sample.name;
    for (const MetricLabel& label : sample.labels) one.labels[std::string(label.name)] = label.value;
    one.value = sample.value;
  });
  if (count != nullptr) *count = read;
  return kept;
}

TEST(ExpositionTest, ReadsNamesLabelsAndValues) {
  const auto samples = Read(
      "# HELP a_total What it is.\n# TYPE a_total counter\n"
      "a_total 3\n"
      "a_total{rank=\"0\",host=\"n1\"} 1.5e3\n"
      "a_total { rank = \"1\" , } 2 1700000000000\r\n");
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].value, 3);
  EXPECT_TRUE(samples[0].labels.empty());
  EXPECT_EQ(samples[1].value, 1500);
  EXPECT_THAT(samples[1].labels, testing::ElementsAre(testing::Pair("host", "n1"), testing::Pair("rank", "0")));
  EXPECT_EQ(samples[2].value, 2);
  EXPECT_EQ(samples[2].labels.at("rank"), "1");
}

TEST(ExpositionTest, EscapesInLabelsAreTakenAway) {
  const auto samples = Read(R"(a{name="a\\b\"c\nd\x",other="}{,="} 1)");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].labels.at("name"), "a\\b\"c\nd\\x");
  EXPECT_EQ(samples[0].labels.at("other"), "}{,=");
}

TEST(ExpositionTest, ReadsWhatIsNoOrdinaryNumber) {
  const auto samples = Read("a +Inf\nb -Inf\nc NaN\nd +4\n");
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[0].value, HUGE_VAL);
  EXPECT_EQ(samples[1].value, -HUGE_VAL);
  EXPECT_TRUE(std::isnan(samples[2].value));
  EXPECT_EQ(samples[3].value, 4);
}

TEST(ExpositionTest, LinesThatAreNoSamplesAreCounted) {
  ExpositionCount count;
  const auto samples = Read(
      "good 1\n1bad 1\nbad\nbad x\nbad{a=\"1\" 1\nbad{a=1} 1\nbad{a=\"1} 1\nbad 1 2 3\nbad{,} 1\n\x01 1\nbad{a=\"\\\"} "
      "1\n"
      "good 2\n",
      &count);
  EXPECT_EQ(samples.size(), 2U);
  EXPECT_EQ(count.sample_count, 2U);
  EXPECT_EQ(count.bad_line_count, 10U);
  EXPECT_FALSE(count.is_cut);
}

TEST(ExpositionTest, ALineWithoutEndAndOneWithTooMuchArePassedOver) {
  ExpositionCount count;
  std::string labels = "many{";
  for (size_t i = 0; i <= kMostLabels; ++i) labels += "l" + std::to_string(i) + "=\"\",";
  const std::string text = "long{a=\"" + std::string(kMostLineBytes, 'x') + "\"} 1\n" + labels + "} 1\ngood 1";
  const auto samples = Read(text, &count);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].name, "good");
  EXPECT_EQ(count.bad_line_count, 2U);
}

TEST(ExpositionTest, SamplesBeyondTheBoundAreNotRead) {
  std::string text;
  for (uint64_t i = 0; i <= kMostSamples; ++i) text += "a 1\n";
  ExpositionCount count;
  EXPECT_EQ(Read(text, &count).size(), kMostSamples);
  EXPECT_TRUE(count.is_cut);
}

}  // namespace
}  // namespace lockstep::exposition
