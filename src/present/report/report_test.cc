#include "present/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "analysis/analyze.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/kernels.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "present/report/testing/sample_run.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using ::testing::HasSubstr;
using testing::MakeSample;
using ::testing::Not;
using testing::Sample;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string Text(const Sample& sample, const TextOptions& options) {
  std::ostringstream out;
  WriteText(sample.run, sample.result, options, out);
  return out.str();
}

rapidjson::Document Json(const Sample& sample, bool partial = false) {
  std::ostringstream out;
  WriteJson(sample.run, sample.result, partial, out);
  rapidjson::Document document;
  const std::string text = out.str();
  document.Parse<rapidjson::kParseValidateEncodingFlag>(text.c_str());
  EXPECT_FALSE(document.HasParseError()) << text;
  return document;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(TextReportTest, FirstScreenNamesTheLateRankAndWhatToDo) {
  const std::string text = Text(MakeSample(), {});
  EXPECT_THAT(text, HasSubstr("Rank 2 holds up the others"));
  EXPECT_THAT(text, HasSubstr("augment_batch"));
  EXPECT_THAT(text, HasSubstr("WHERE THE TIME GOES"));
  EXPECT_THAT(text, HasSubstr("ends inside an event"));
  EXPECT_LE(Lines(text).size(), 40u);
}

TEST(TextReportTest, NoLineIsWiderThanAsked) {
  for (const int width : {40, 60, 80, 120}) {
    TextOptions options;
    options.width = width;
    options.sections = {"all"};
    for (const bool unicode : {true, false}) {
      options.unicode = unicode;
      for (const std::string& line : Lines(Text(MakeSample(), options))) EXPECT_LE(DisplayWidth(line), width) << line;
    }
  }
}

TEST(TextReportTest, HoldsNoEscapeOfAFileAndNoColourUnlessAsked) {
  TextOptions options;
  options.sections = {"all"};
  EXPECT_THAT(Text(MakeSample(), options), Not(HasSubstr("\x1b")));
  options.colour = true;
  EXPECT_THAT(Text(MakeSample(), options), HasSubstr("\x1b[1m"));
}

TEST(TextReportTest, AsciiHasNoByteAboveSevenBits) {
  TextOptions options;
  options.unicode = false;
  Sample sample = MakeSample();
  for (const char c : Text(sample, options)) EXPECT_GE(c, 0);
}

TEST(TextReportTest, WorstRankComesFirstAndTheBestLast) {
  Sample sample = MakeSample();
  TextOptions options;
  options.top = 3;
  const std::string text = Text(sample, options);
  const size_t table = text.find("RANKS");
  EXPECT_LT(text.find("▶     2", table), text.find("in between", table));
}

TEST(TextReportTest, RankTableStandsWithoutAnyMark) {
  Sample sample = MakeSample();
  sample.result.findings.clear();
  EXPECT_THAT(Text(sample, {}), HasSubstr("105 ms  50.0 ms"));
}

TEST(TextReportTest, RankWithoutDeviceEventsIsSaidSo) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Breakdown>().steps.clear();
  sample.result.Edit<analysis::Breakdown>().ranks[1] = {};
  sample.result.Edit<analysis::Breakdown>().ranks[1].rank_index = 1;
  EXPECT_THAT(Text(sample, {}), HasSubstr("no events"));
}

TEST(TextReportTest, SectionOfAPassThatDidNotRunIsSaidSo) {
  Sample sample = MakeSample();
  for (const analysis::PassInfo& pass : analysis::Passes()) {
    if (pass.name != "breakdown") sample.result.Drop(pass.name);
  }
  TextOptions options;
  options.sections = {"kernels"};
  EXPECT_THAT(Text(sample, options), HasSubstr("not computed"));
}

TEST(TextReportTest, EmptyResultIsPrinted) {
  Sample sample;
  sample.run.ranks.push_back(testing::SampleTrace(0, 1));
  sample.result = *analysis::Analyze(&sample.run, {}, {});
  TextOptions options;
  options.sections = {"all"};
  EXPECT_THAT(Text(sample, options), HasSubstr("1 rank"));
}

TEST(JsonReportTest, EveryTableOfTheSchemaIsThere) {
  const rapidjson::Document document = Json(MakeSample(), true);
  EXPECT_STREQ(document["schema"].GetString(), "lockstep.analyze/1");
  EXPECT_TRUE(document["partial"].GetBool());
  for (const char* key : {"ranks", "breakdown", "steps", "idle", "kernels", "operators", "collectives", "stragglers",
                          "memory", "launch", "findings"}) {
    EXPECT_TRUE(document["data"][key].IsArray()) << key;
  }
  EXPECT_EQ(document["data"]["breakdown"][2]["exposed_communication_ns"].GetInt64(), 20'000'000);
  EXPECT_EQ(document["ledger"][0]["byte_offset"].GetUint64(), 4'560'000u);
}

TEST(JsonReportTest, ArrivalsAndWaitsRunParallelToRanksAndUnknownWaitsAreNull) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Collectives>().instances[0].complete = false;
  for (auto& member : sample.result.Edit<analysis::Collectives>().instances[0].members) member.wait_ns.reset();
  const rapidjson::Document document = Json(sample);
  const auto& collective = document["data"]["collectives"][0];
  ASSERT_EQ(collective["ranks"].Size(), collective["arrival_ns"].Size());
  ASSERT_EQ(collective["ranks"].Size(), collective["wait_ns"].Size());
  EXPECT_TRUE(collective["wait_ns"][0].IsNull());
}

TEST(JsonReportTest, InvalidUtf8IsReplacedAndNonFiniteNumbersAreNull) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Kernels>().rows[0].stddev_ns = std::numeric_limits<double>::quiet_NaN();
  sample.result.Edit<analysis::Kernels>().rows[0].mean_ns = std::numeric_limits<double>::infinity();
  const rapidjson::Document document = Json(sample);
  EXPECT_TRUE(document["data"]["kernels"][0]["stddev_ns"].IsNull());
  EXPECT_TRUE(document["data"]["kernels"][0]["mean_ns"].IsNull());
  EXPECT_STREQ(document["data"]["kernels"][3]["name"].GetString(), "bad\xEF\xBF\xBDname\x1b[31m, \"quoted\"");
}

TEST(JsonReportTest, TableOfAPassThatDidNotRunIsNull) {
  Sample sample = MakeSample();
  for (const analysis::PassInfo& pass : analysis::Passes()) {
    if (pass.name != "breakdown") sample.result.Drop(pass.name);
  }
  const rapidjson::Document document = Json(sample);
  EXPECT_TRUE(document["data"]["kernels"].IsNull());
  EXPECT_TRUE(document["data"]["imbalance"].IsNull());
  EXPECT_TRUE(document["data"]["breakdown"].IsArray());
}

TEST(JsonReportTest, DurationsWithoutABasisAreNull) {
  Sample sample = MakeSample();
  sample.result.Edit<analysis::Breakdown>().ranks[1].basis = analysis::Basis::kNone;
  const rapidjson::Document document = Json(sample);
  EXPECT_TRUE(document["data"]["breakdown"][1]["idle_ns"].IsNull());
  EXPECT_TRUE(document["data"]["breakdown"][1]["communication_overlap_ratio"].IsNull());
}

class CsvReportTest : public ::testing::Test {
 protected:
  CsvReportTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep_csv_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CsvReportTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(CsvReportTest, WritesATablePerFileWithAHeader) {
  const Sample sample = MakeSample();
  ASSERT_TRUE(WriteCsv(sample.run, sample.result, (folder_ / "new" / "folder").string()));
  const std::string breakdown = ReadFile(folder_ / "new" / "folder" / "breakdown.csv");
  EXPECT_THAT(breakdown, ::testing::StartsWith("rank,window,basis,start_ns,span_ns,"));
  EXPECT_THAT(ReadFile(folder_ / "new" / "folder" / "collectives.csv"), HasSubstr("all_reduce"));
}

TEST_F(CsvReportTest, CommasAndQuotesAreQuoted) {
  const Sample sample = MakeSample();
  ASSERT_TRUE(WriteCsv(sample.run, sample.result, folder_.string()));
  EXPECT_THAT(ReadFile(folder_ / "kernels.csv"), HasSubstr("\"bad\xEF\xBF\xBDname\x1b[31m, \"\"quoted\"\"\""));
}

TEST_F(CsvReportTest, FolderThatCannotBeMadeIsAnError) {
  std::ofstream(folder_ / "file") << "x";
  const Sample sample = MakeSample();
  const Status status = WriteCsv(sample.run, sample.result, (folder_ / "file" / "below").string());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace lockstep::report
