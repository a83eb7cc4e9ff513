#include "present/page/page_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/rank_context.h"
#include "analysis/testing/trace_builder.h"
#include "present/page/data_blocks.h"
#include "present/page/fit_page.h"
#include "present/page/lane_levels.h"
#include "present/page/page_template.h"
#include "present/page/testing/read_block.h"
#include "present/report/testing/sample_run.h"

namespace lockstep::page {
namespace {

using report::testing::MakeSample;
using report::testing::Sample;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using testing::Gunzip;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadBlock;

const analysis::AnalysisOptions kOptions;

rapidjson::Document MainOf(const PageBlocks& page) {
  const Result<Block> block = page.Make("main");
  rapidjson::Document document;
  if (block) document.Parse(Gunzip(block->gzip).c_str());
  return document;
}

ReadBlock BlockOf(const PageBlocks& page, std::string_view name) {
  const Result<Block> block = page.Make(name);
  return ReadBlock(block ? Gunzip(block->gzip) : "");
}

TEST(PageBlocksTest, TheSampleHasEveryBlock) {
  const Sample sample = MakeSample();
  const PageBlocks page({sample.run, sample.result, kOptions, true});
  EXPECT_THAT(page.names(), ElementsAre("main", "steps", "collectives", "tables", "sql-worker", "sqlite", "timeline",
                                        "names", "events-0", "events-1", "events-2", "events-3"));
  for (const std::string& name : page.names()) EXPECT_TRUE(page.Make(name).has_value()) << name;
}

TEST(PageBlocksTest, WithoutSqliteThePageSaysSo) {
  const Sample sample = MakeSample();
  const PageBlocks page({sample.run, sample.result, kOptions, true}, {.sql = false});
  EXPECT_THAT(page.names(), Not(Contains("sqlite")));
  EXPECT_THAT(page.reductions(), Contains(Field(&Reduction::what, "sql")));
}

TEST(PageBlocksTest, ABlockThatIsNotThereIsNotFound) {
  const Sample sample = MakeSample();
  const PageBlocks page({sample.run, sample.result, kOptions, true});
  for (const char* name : {"", "events-4", "events-", "events-1x", "events--1", "../main", "events-00"}) {
    const Result<Block> block = page.Make(name);
    ASSERT_FALSE(block.has_value()) << name;
    EXPECT_EQ(block.error().code, ErrorCode::kNotFound);
  }
}

TEST(PageBlocksTest, MainHoldsTheTables) {
  const Sample sample = MakeSample();
  const rapidjson::Document main = MainOf(PageBlocks({sample.run, sample.result, kOptions, true}));
  ASSERT_TRUE(main.IsObject());
  const auto& data = main["data"];
  EXPECT_EQ(data["job"]["rank_count"].GetInt(), 4);
  EXPECT_EQ(data["ranks"].Size(), 4u);
  EXPECT_EQ(data["ranks"][1]["step_count"].GetInt(), 2);
  EXPECT_EQ(data["breakdown"][2]["idle_ns"].GetInt64(), 89'000'000);
  EXPECT_EQ(data["kernels"][0]["count"].GetInt(), 400);
  EXPECT_EQ(data["kernels"][0]["by_rank"].Size(), 4u);
  EXPECT_EQ(data["waits"].Size(), 3u);
  EXPECT_EQ(data["waits"][0]["culprit_rank_index"].GetInt(), 2);
  EXPECT_EQ(data["waits"][0]["wait_ns"].GetInt64(), 60'000'000);
  EXPECT_EQ(data["bandwidth"][0]["count"].GetInt(), 4);
  EXPECT_EQ(data["step_matrix"]["step_numbers"][1].GetInt(), 6);
  EXPECT_STREQ(data["verdict"][0]["title"].GetString(), sample.result.findings[0].title.c_str());
  EXPECT_EQ(main["reductions"].Size(), 0u);
}

TEST(PageBlocksTest, AStepLastsFromItsFirstRankToItsLast) {
  Sample sample = MakeSample();
  const int64_t first_ns = *sample.run.ranks[0].first_ns;
  for (auto& row : sample.result.Edit<analysis::Breakdown>().steps) {
    if (*row.step_number != 6) continue;
    row.start_ns = first_ns + 1'000'000 * static_cast<int64_t>(row.rank_index + 1);
    row.span_ns = 5'000'000;
  }
  const int64_t begin_ns = sample.run.ranks[0].clock.ToRun(first_ns + 1'000'000);
  const int64_t end_ns = sample.run.ranks[3].clock.ToRun(first_ns + 9'000'000);
  const rapidjson::Document main = MainOf(PageBlocks({sample.run, sample.result, kOptions, true}));
  const auto& steps = main["data"]["step_matrix"];
  ASSERT_EQ(steps["start_ns"].Size(), steps["step_numbers"].Size());
  EXPECT_EQ(steps["end_ns"][1].GetInt64() - steps["start_ns"][1].GetInt64(), end_ns - begin_ns);
}

TEST(PageBlocksTest, StepsAreExactAndMissingCellsSaySo) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Breakdown>().steps.pop_back();  // rank 3 lacks step 6
  const ReadBlock steps = BlockOf(PageBlocks({sample.run, sample.result, kOptions, true}), "steps");
  EXPECT_THAT(steps.Column<uint32_t>("compute_ns"), ElementsAre(50'000'000, 50'000'000, 50'000'000, 50'000'000,
                                                                50'000'000, 50'000'000, 50'000'000, UINT32_MAX));
  EXPECT_EQ(steps.header()["unit_ns"]["compute_ns"].GetInt(), 1);
}

TEST(PageBlocksTest, TimesBeyondTheTypeTakeALargerUnit) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Breakdown>().steps[0].span_ns = 10'000'000'000;
  const ReadBlock steps = BlockOf(PageBlocks({sample.run, sample.result, kOptions, true}), "steps");
  const int64_t unit_ns = steps.header()["unit_ns"]["step_ns"].GetInt64();
  EXPECT_EQ(unit_ns, 3);
  EXPECT_NEAR(static_cast<double>(steps.Column<uint32_t>("step_ns")[0] * unit_ns), 1e10, 1.5);
}

TEST(PageBlocksTest, MembersOfCollectivesComeBack) {
  const Sample sample = MakeSample();
  const ReadBlock block = BlockOf(PageBlocks({sample.run, sample.result, kOptions, true}), "collectives");
  EXPECT_EQ(block.header()["count"].GetInt(), 4);
  EXPECT_STREQ(block.header()["names"][0].GetString(), "all_reduce");
  EXPECT_THAT(block.Column<uint32_t>("set"), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(block.Column<uint32_t>("set_rank"), ElementsAre(0, 1, 2, 3));
  const auto arrival = block.Column<uint32_t>("member_arrival");
  EXPECT_EQ(arrival[4 * 1 + 2], 15'000'000u);
  EXPECT_EQ(block.Column<uint32_t>("member_duration")[2], 5'000'000u);
  EXPECT_THAT(block.Column<uint8_t>("wait_rule"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(block.Column<double>("total_wait"), ElementsAre(45e6, 45e6, 45e6, 45e6));
  EXPECT_TRUE(std::isnan(block.Column<double>("step")[0]));
}

TEST(PageBlocksTest, TooManyCollectivesKeepTheWorstAndASpread) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Collectives>().instances.clear();
  for (int64_t i = 0; i < 100; ++i)
    sample.result.Edit<analysis::Collectives>().instances.push_back(
        report::testing::SampleCollective(i, i == 57 ? 9'000'000 : 1'000));
  PageLimits limits;
  limits.collective_instances = 10;
  const PageBlocks page({sample.run, sample.result, kOptions, true}, limits);
  const auto sequence = BlockOf(page, "collectives").Column<double>("sequence");
  EXPECT_EQ(sequence.size(), 10u);
  EXPECT_THAT(sequence, Contains(57));
  EXPECT_GT(sequence.back(), 80);
  ASSERT_EQ(page.reductions().size(), 1u);
  EXPECT_EQ(page.reductions()[0].what, "collective_instances");
  EXPECT_THAT(page.reductions()[0].message, HasSubstr("10 of 100"));
  EXPECT_EQ(MainOf(page)["data"]["collective_count"].GetInt(), 100);
}

/// One rank with nested operators, two streams and a Python frame.
analysis::testing::RunBuilder Job() {
  analysis::testing::RunBuilder job;
  job.Rank(0).Annotation(1, "ProfilerStep#1", 1000, 900).Op(1, "aten::linear", 1010, 100).Op(1, "aten::mm", 1020, 30);
  job.Rank(0).Kernel(7, "gemm", 1100, 50).Kernel(7, "gemm", 1160, 5'000'000'000).Memcpy(7, "Memcpy", 6'000'000'000, 7);
  job.Rank(0).Python(1, "train.py(3): main", 1000, 5);
  return job;
}

struct Events {
  std::vector<double> start;
  std::vector<double> duration;
};

Events Decode(const ReadBlock& block) {
  Events events;
  const auto gap = block.Column<uint32_t>("start");
  const auto length = block.Column<uint32_t>("duration");
  const auto long_gap = block.Column<double>("long_start");
  const auto long_length = block.Column<double>("long_duration");
  const double unit_ns = block.header()["unit_ns"].GetDouble();
  size_t next_gap = 0;
  size_t next_length = 0;
  size_t i = 0;
  for (const auto& track : block.header()["tracks"].GetArray()) {
    double now = 0;
    for (const size_t end = i + track["count"].GetUint(); i < end; ++i) {
      now += gap[i] == UINT32_MAX ? long_gap[next_gap++] : gap[i];
      const double units = length[i] == UINT32_MAX ? long_length[next_length++] : length[i];
      events.start.push_back(now * unit_ns);
      events.duration.push_back(units * unit_ns);
      if (track["sequential"].GetBool()) now += units;
    }
  }
  return events;
}

TEST(PageBlocksTest, EventsComeBackToTheNanosecond) {
  const model::Run run = Job().Build();
  const analysis::AnalysisResult result;
  const PageBlocks page({run, result, kOptions, false});
  const ReadBlock block = BlockOf(page, "events-0");
  const auto& tracks = block.header()["tracks"];
  ASSERT_EQ(tracks.Size(), 3u);
  EXPECT_STREQ(tracks[0]["lane"].GetString(), "operators");
  EXPECT_EQ(tracks[0]["level_count"].GetInt(), 3);
  EXPECT_FALSE(tracks[0]["sequential"].GetBool());
  EXPECT_TRUE(tracks[2]["sequential"].GetBool());
  const Events events = Decode(block);
  EXPECT_THAT(events.start, ElementsAre(0, 10, 20, 0, 100, 160, 5'999'999'000.0));
  EXPECT_THAT(events.duration, ElementsAre(900, 100, 30, 5, 50, 5'000'000'000.0, 7));
  EXPECT_THAT(block.Column<uint8_t>("level"), ElementsAre(0, 1, 2, 0, 0, 0, 0));
  EXPECT_THAT(block.Column<uint8_t>("class"), ElementsAre(255, 3, 3, 3, 0, 0, 2));
  const ReadBlock names = BlockOf(page, "names");
  const auto length = names.Column<uint32_t>("length");
  const auto name = block.Column<uint32_t>("name");
  EXPECT_EQ(length[name[1]], std::string_view("aten::linear").size());
  EXPECT_EQ(name[4], name[5]);
}

TEST(PageBlocksTest, RoundedTimesDoNotDrift) {
  analysis::testing::RunBuilder job;
  for (int64_t i = 0; i < 1000; ++i) job.Rank(0).Kernel(7, "gemm", i * 1'099, 1'051);
  const model::Run run = job.Build();
  const analysis::AnalysisResult result;
  PageLimits limits;
  limits.event_unit_ns = 100;
  const PageBlocks page({run, result, kOptions, false}, limits);
  const Events events = Decode(BlockOf(page, "events-0"));
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(events.start[i], static_cast<double>(i * 1'099 / 100 * 100));
  EXPECT_EQ(page.reductions()[0].what, "event_precision");
}

TEST(PageBlocksTest, WhatTheLimitsLeaveOutIsSaid) {
  const model::Run run = Job().Build();
  const analysis::AnalysisResult result;
  PageLimits limits;
  limits.python_events = false;
  limits.cpu_events = false;
  limits.shortest_event_ns = 10;
  const PageBlocks page({run, result, kOptions, false}, limits);
  std::vector<std::string> what;
  for (const Reduction& reduction : page.reductions()) what.push_back(reduction.what);
  EXPECT_THAT(what, ElementsAre("python_events", "cpu_events", "short_events"));
  EXPECT_EQ(BlockOf(page, "events-0").Column<uint32_t>("start").size(), 2u);
  limits.device_events = false;
  const PageBlocks none({run, result, kOptions, false}, limits);
  EXPECT_THAT(none.names(), Not(Contains("events-0")));
  EXPECT_FALSE(MainOf(none)["data"]["timeline"]["has_events"].GetBool());
}

TEST(PageBlocksTest, ARankKeepsItsLongestEvents) {
  const model::Run run = Job().Build();
  const analysis::AnalysisResult result;
  PageLimits limits;
  limits.events_per_rank = 3;
  const PageBlocks page({run, result, kOptions, false}, limits);
  EXPECT_THAT(Decode(BlockOf(page, "events-0")).duration, ElementsAre(900, 100, 5'000'000'000.0));
  EXPECT_EQ(page.reductions()[0].what, "events_per_rank");
}

TEST(PageBlocksTest, ARunWithoutEventsHasAPage) {
  model::Run run;
  const analysis::AnalysisResult result;
  const PageBlocks page({run, result, kOptions, false});
  EXPECT_THAT(page.names(), ElementsAre("main"));
  EXPECT_TRUE(MainOf(page)["data"]["timeline"].IsNull());
  std::ostringstream out;
  WriteAnalyzePage({run, result, kOptions, false}, kDefaultPageBytes, out);
  EXPECT_THAT(out.str(), HasSubstr("lockstep-main"));
}

TEST(PageBlocksTest, HostileNamesStayText) {
  Sample sample = MakeSample();
  sample.run.ranks[0].host = "</script><img src=x onerror=alert(1)>";
  sample.run.ranks[1].source = std::string("a\0b<!--", 7);
  sample.result.findings[0].title = "</title><script>\xE2\x80\xAE";
  std::ostringstream out;
  WriteAnalyzePage({sample.run, sample.result, kOptions, true}, kDefaultPageBytes, out);
  const std::string page = out.str();
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
  EXPECT_EQ(page.find('\0'), std::string::npos);
  EXPECT_THAT(page, Not(HasSubstr("\xE2\x80\xAE")));
}

TEST(FitPageTest, ASmallPageIsWithinItsSizeAndSaysWhatItLacks) {
  analysis::testing::RunBuilder job;
  for (int32_t rank = 0; rank < 4; ++rank) {
    for (int64_t i = 0; i < 5'000; ++i)
      job.Rank(rank).Kernel(7, "gemm", i * 3'000 + i * i % 700, 500 + i * i * 31 % 1'777).Op(1, "mm", i * 3'000, 900);
  }
  const model::Run run = job.Build();
  const analysis::AnalysisResult result;
  const PageInput input{run, result, kOptions, false};
  const auto size_within = [&](uint64_t page_bytes) {
    std::ostringstream out;
    WriteAnalyzePage(input, page_bytes, out);
    return static_cast<uint64_t>(out.str().size());
  };
  EXPECT_TRUE(FitPage(input, kDefaultPageBytes).reductions.empty());
  const uint64_t whole = size_within(kDefaultPageBytes);
  const uint64_t least = size_within(1);
  const uint64_t program = PageTemplate(PageKind::kAnalyze).size();  // In every page, and not what is left out.
  ASSERT_LT(least - program, (whole - program) * 3 / 4);
  uint64_t previous = whole;
  for (const uint64_t percent : {90, 60, 30, 5}) {
    const uint64_t limit = least + (whole - least) * percent / 100;
    const uint64_t size = size_within(limit);
    EXPECT_LE(size, limit) << percent;
    EXPECT_LE(size, previous) << percent;
    previous = size;
    EXPECT_FALSE(FitPage(input, limit).reductions.empty());
  }
}

TEST(ShortFloatTest, KeepsThreeDigitsOfAnyTime) {
  const auto decode = [](uint16_t bits) {
    const int exponent = bits >> 10;
    return exponent == 0 ? static_cast<double>(bits) : std::ldexp(1024 + (bits & 1023), exponent - 1);
  };
  for (int64_t value = 0; value < 2048; ++value) EXPECT_EQ(decode(ShortFloat(value)), static_cast<double>(value));
  uint16_t before = 0;
  for (double value = 2048; value < 9e18; value *= 1.0003) {
    const uint16_t bits = ShortFloat(static_cast<int64_t>(value));
    EXPECT_NEAR(decode(bits) / value, 1, 1.0 / 2048);
    EXPECT_GE(bits, before);
    EXPECT_NE(bits, UINT16_MAX);
    before = bits;
  }
  EXPECT_NE(ShortFloat(INT64_MAX), UINT16_MAX);
}

TEST(PageBlocksTest, SpansAreLinkedToThoseTheyCalledWhereBothLieOnTracks) {
  analysis::testing::RunBuilder job = Job();
  job.Rank(0).Annotation(1, "send", 1'000, 50);
  job.Rank(1).Annotation(3, "prefill", 1'200, 70).Annotation(4, "lost", 1'300, 5);
  model::Run run = job.Build();
  const auto span = [&](size_t rank, const char* name, int64_t start_ns, int64_t duration_ns, int64_t thread,
                        model::TraceContext context) {
    for (const model::Track& track : run.ranks[rank].tracks) {
      for (size_t row = 0; row < track.events.size(); ++row) {
        if (run.names[track.events.name[row]] != name) continue;
        run.ranks[rank].linked_spans.push_back(
            {start_ns, duration_ns, track.process_id, thread, track.events.name[row], context});
      }
    }
  };
  span(0, "send", 1'000, 50, 1, {.trace_high = 1, .trace_low = 2, .span_id = 10});
  span(1, "prefill", 1'200, 70, 3, {.trace_high = 1, .trace_low = 2, .span_id = 11, .parent_id = 10});
  span(1, "lost", 1'300, 6, 4, {.trace_high = 1, .trace_low = 2, .span_id = 12, .parent_id = 10});
  model::RequestRecord request;
  request.start_ns = 1'250;
  request.context = {.trace_high = 1, .trace_low = 2, .span_id = 13, .parent_id = 10};
  run.ranks[1].requests.push_back(request);
  const analysis::AnalysisResult result;
  const rapidjson::Document main = MainOf(PageBlocks({run, result, kOptions, false}));
  const auto& links = main["data"]["span_links"];
  ASSERT_EQ(links["rows"].Size(), 1u);
  const auto& row = links["rows"][0];
  EXPECT_EQ(row[0].GetInt(), 0);
  EXPECT_STREQ(links["names"][row[2].GetUint()].GetString(), "send");
  EXPECT_EQ(row[3].GetInt(), 1);
  EXPECT_EQ(row[4].GetInt64() - row[1].GetInt64(), 200);
  EXPECT_STREQ(links["names"][row[5].GetUint()].GetString(), "prefill");
}

model::CounterSeries Counter(const std::string& name, size_t count, double first) {
  model::CounterSeries series;
  series.name = name;
  series.unit = "%";
  for (size_t i = 0; i < count; ++i) {
    series.time_ns.push_back(1'000 + static_cast<int64_t>(i));
    series.value.push_back(first + static_cast<double>(i));
  }
  return series;
}

TEST(PageBlocksTest, ACounterHasItsSumsAndItsValuesOverTime) {
  analysis::testing::RunBuilder job = Job();
  job.Rank(1).Op(1, "aten::mm", 1'000, 30);
  model::Run run = job.Build();
  run.ranks[0].counters.push_back(Counter("empty", 0, 0));
  run.ranks[0].counters.push_back(Counter("loss", 3, 5));
  run.ranks[0].counters.push_back(Counter("SMs Active", 2, 40));
  run.ranks[1].counters.push_back(Counter("loss", 1, 9));
  run.ranks[0].counters[2].device = DeviceOrdinal{1};
  const auto analysed = analysis::Analyze(&run, {}, {"counters"});
  ASSERT_TRUE(analysed.has_value());
  const rapidjson::Document main = MainOf(PageBlocks({run, *analysed, kOptions, false}, {}));
  const auto& counters = main["data"]["counters"];
  ASSERT_EQ(counters.Size(), 3u);
  EXPECT_STREQ(counters[0]["name"].GetString(), "loss");
  EXPECT_TRUE(counters[0]["device"].IsNull());
  EXPECT_EQ(counters[0]["high"].Size(), 3u);
  EXPECT_EQ(counters[0]["high"][2].GetDouble(), 7);
  EXPECT_EQ(counters[0]["time_ns"][1].GetInt64() - counters[0]["time_ns"][0].GetInt64(), 1);
  EXPECT_EQ(counters[1]["device"].GetInt(), 1);
  EXPECT_EQ(counters[1]["mean"].GetDouble(), 40);
  EXPECT_EQ(counters[2]["rank_index"].GetInt(), 1);
  EXPECT_EQ(counters[2]["low"][0].GetDouble(), 9);
}

TEST(PageBlocksTest, OfManyCountersTheRanksFarthestApartStayAndOfLongOnesTheExtremes) {
  analysis::testing::RunBuilder job;
  for (int32_t rank = 0; rank < 10; ++rank) job.Rank(rank).Op(1, "aten::mm", 1'000, 30);
  model::Run run = job.Build();
  for (size_t i = 0; i < 10; ++i) {
    run.ranks[i].counters.push_back(Counter("loss", 1'000, static_cast<double>(i * 7 % 10)));
  }
  const auto analysed = analysis::Analyze(&run, {}, {"counters"});
  ASSERT_TRUE(analysed.has_value());
  PageLimits limits;
  limits.table_rows = 4;
  limits.counter_points = 80;
  const PageBlocks page({run, *analysed, kOptions, false}, limits);
  const rapidjson::Document main = MainOf(page);
  const auto& counters = main["data"]["counters"];
  ASSERT_EQ(counters.Size(), 4u);
  EXPECT_EQ(counters[0]["rank_index"].GetInt(), 0) << "0, 3, 4 and 7 begin at 0, 1, 8 and 9";
  EXPECT_EQ(counters[3]["rank_index"].GetInt(), 7);
  EXPECT_LE(counters[0]["time_ns"].Size(), 20u);
  EXPECT_EQ(counters[0]["low"][0].GetDouble(), 0);
  EXPECT_EQ(counters[0]["high"][counters[0]["high"].Size() - 1].GetDouble(), 999);
  std::vector<std::string> what;
  for (const Reduction& reduction : page.reductions()) what.push_back(reduction.what);
  EXPECT_THAT(what, ElementsAre("tables", "counters", "counter_series"));
}

TEST(LaneLevelsTest, NestedRangesGoDownAndOverlappingOnesAside) {
  LaneLevels levels;
  EXPECT_EQ(levels.Place(0, 100), 0);
  EXPECT_EQ(levels.Place(0, 50), 1);
  EXPECT_EQ(levels.Place(10, 20), 2);
  EXPECT_EQ(levels.Place(50, 60), 1);
  EXPECT_EQ(levels.Place(100, 200), 0);
  EXPECT_EQ(levels.count(), 3u);
  for (int64_t i = 0; i < 1000; ++i) levels.Place(100 + i, 5000);
  EXPECT_LE(levels.count(), 255u);
}

}  // namespace
}  // namespace lockstep::page
