#include "model/log_line/line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/text_scan.h"
#include "model/log_line/log_name.h"

namespace lockstep::logs {
namespace {

constexpr int64_t kTime_ns = 1'795'399'937'017'281'547;
const LineTime kTime = {kTime_ns, 26'510'797'868'009};

std::string Written(LineForm form, std::optional<int32_t> rank, Level level, std::string_view text) {
  std::string out;
  LineWriter(form, rank, "node0").Append(kTime, level, "err", text, &out);
  return out;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  LineScanner scanner(text);
  for (std::string_view line; scanner.Next(&line);) lines.emplace_back(line);
  return lines;
}

TEST(LineTest, TextIsWrittenAsTheDocumentHasIt) {
  EXPECT_EQ(Written(LineForm::kText, 3, Level::kError, "it broke"),
            "2026-11-23T02:12:17.017281547Z 26510.797868009 E rank3 node0 err: it broke\n");
  EXPECT_EQ(Written(LineForm::kText, std::nullopt, Level::kInfo, ""),
            "2026-11-23T02:12:17.017281547Z 26510.797868009 I rank- node0 err: \n");
}

TEST(LineTest, JsonIsWrittenAsTheDocumentHasIt) {
  EXPECT_EQ(Written(LineForm::kJson, 3, Level::kWarning, "a \"b\"\t\x01\xff"),
            "{\"time_ns\":1795399937017281547,\"mono_ns\":26510797868009,\"level\":\"warning\",\"rank\":3,\"host\":"
            "\"node0\",\"source\":\"err\",\"text\":\"a \\\"b\\\"\\t\\u0001\xef\xbf\xbd\"}\n");
}

TEST(LineTest, WhatIsWrittenIsReadBack) {
  for (const LineForm form : {LineForm::kText, LineForm::kJson}) {
    for (const std::optional<int32_t> rank : {std::optional<int32_t>(0), std::optional<int32_t>(16'000'000), {}}) {
      for (const char* text : {"", "plain", "[rank3]: x", "a\\b \"c\" {\"d\":1}", "täglich \xf0\x9f\x98\x80", ": : "}) {
        const std::string line = Lines(Written(form, rank, Level::kFatal, text)).at(0);
        std::string storage;
        const auto parsed = ParseLine(line, &storage);
        ASSERT_TRUE(parsed) << line;
        EXPECT_EQ(parsed->head.time_unix_ns, kTime.unix_ns);
        EXPECT_EQ(parsed->head.monotonic_ns, kTime.monotonic_ns);
        EXPECT_EQ(parsed->head.level, Level::kFatal);
        EXPECT_EQ(parsed->head.rank, rank);
        EXPECT_EQ(parsed->head.host, "node0");
        EXPECT_EQ(parsed->head.source, "err");
        EXPECT_EQ(parsed->text, text);
      }
    }
  }
}

TEST(LineTest, EveryDayOfFourCenturiesIsReadBack) {
  for (int64_t day = 0; day < 105'000; ++day) {
    std::string out;
    const LineTime time = {(day * 86'400 + day % 86'400) * 1'000'000'000 + day, day};
    LineWriter(LineForm::kText, 0, "h").Append(time, Level::kInfo, "out", "x", &out);
    std::string storage;
    const auto parsed = ParseLine(std::string_view(out).substr(0, out.size() - 1), &storage);
    ASSERT_TRUE(parsed) << out;
    ASSERT_EQ(parsed->head.time_unix_ns, time.unix_ns) << out;
  }
}

TEST(LineTest, AMessageOfSeveralLinesHasAHeadOnEachOrIsOneJsonLine) {
  const auto text = Lines(Written(LineForm::kText, 1, Level::kInfo, "a\r\nb\n\nc\n"));
  ASSERT_EQ(text.size(), 4u);
  for (const std::string& line : text) EXPECT_THAT(line, testing::StartsWith("2026-11-23T02:12:17.017281547Z "));
  EXPECT_THAT(text[1], testing::EndsWith(" err: b"));
  const auto json = Lines(Written(LineForm::kJson, 1, Level::kInfo, "a\nb\n"));
  ASSERT_EQ(json.size(), 1u);
  std::string storage;
  EXPECT_EQ(ParseLine(json[0], &storage)->text, "a\nb");
}

TEST(LineTest, AJsonLineMayHaveFurtherFieldsAndEscapes) {
  std::string storage;
  const auto parsed = ParseLine(
      R"({"time_ns":5,"mono_ns":null,"level":"CRITICAL","rank":null,"host":"h","source":"s","text":"\u00e4\ud83d\ude00\ud800","step":3})",
      &storage);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->head.level, Level::kFatal);
  EXPECT_EQ(parsed->head.monotonic_ns, std::nullopt);
  EXPECT_EQ(parsed->text, "ä\xf0\x9f\x98\x80\xef\xbf\xbd");
}

TEST(LineTest, EveryCutLineOfOursIsReadOrRefused) {
  for (const LineForm form : {LineForm::kText, LineForm::kJson}) {
    const std::string line = Lines(Written(form, 3, Level::kInfo, "hello \"you\"")).at(0);
    for (size_t size = 0; size < line.size(); ++size) {
      std::string storage;
      const auto parsed = ParseLine(std::string_view(line).substr(0, size), &storage);
      EXPECT_FALSE(parsed && form == LineForm::kJson) << size;
      EXPECT_TRUE(!parsed || std::string_view("hello \"you\"").starts_with(parsed->text)) << size;
    }
  }
}

TEST(LineTest, OtherLinesHaveNoHead) {
  std::string storage;
  for (const char* line :
       {"", "hello", "2026-11-23T02:12:17.017281547Z", "2026-13-23T02:12:17.017281547Z 1.000000000 I rank0 h out: x",
        "2026-11-23T02:12:17.017281547Z 1.0 I rank0 h out: x",
        "2026-11-23T02:12:17.017281547Z 1.000000000 X rank0 h out: x",
        "2026-11-23T02:12:17.017281547Z 1.000000000 I rank-5 h out: x", "{}", "{\"time_ns\":x}",
        "2026-11-23T02:12:17.017281547Z 9999999999999.000000000 I rank0 h out: x"}) {
    EXPECT_FALSE(ParseLine(line, &storage)) << line;
  }
}

TEST(LevelTest, IsReadFromWhatProgramsWrite) {
  const auto level = [](std::string_view text) { return ReadLevel(text); };
  EXPECT_EQ(level("[rank3]:[E1121 03:35:23.123456789 ProcessGroupNCCL.cpp:632] Watchdog"), Level::kError);
  EXPECT_EQ(level("W1121 03:35:23.1 x.cpp:1] y"), Level::kWarning);
  EXPECT_EQ(level("2026-11-23 02:00:00,123 - trainer - ERROR - no"), Level::kError);
  EXPECT_EQ(level("WARNING:root:low"), Level::kWarning);
  EXPECT_EQ(level("[INFO] ready"), Level::kInfo);
  EXPECT_EQ(level("Traceback (most recent call last):"), Level::kError);
  EXPECT_EQ(level("terminate called after throwing an instance"), Level::kFatal);
  EXPECT_EQ(level("no ERRORS here"), std::nullopt);
  EXPECT_EQ(level("step 3 loss 2.1"), std::nullopt);
}

TEST(LevelTest, ATracebackIsOneErrorToItsLastLine) {
  LevelReader reader;
  std::vector<Level> levels;
  for (const char* line : {"begin", "[rank1]: Traceback (most recent call last):", "[rank1]:   File \"a.py\", line 1",
                           "[rank1]:     x()", "[rank1]: ValueError: no", "goes on"}) {
    levels.push_back(reader.Next(line));
  }
  using L = Level;
  EXPECT_THAT(levels, testing::ElementsAre(L::kInfo, L::kError, L::kError, L::kError, L::kError, L::kInfo));
}

TEST(LogNameTest, SaysWhoseItIs) {
  LogName name{.rank = 3, .host = "node/0", .job = "47[1]", .start_unix_ns = kTime_ns, .pid = 812};
  EXPECT_EQ(name.ToText(), "rank3.node_0.job47_1_.20261123T021217Z.pid812.log");
  name.rank.reset();
  name.job.clear();
  name.form = LineForm::kJson;
  EXPECT_EQ(name.ToText(), "all.node_0.20261123T021217Z.pid812.jsonl");
}

TEST(LogNameTest, WhatItMakesIsKnownAgainAndWhatOthersMakeIsNot) {
  for (const char* name : {"rank3.node_0.job47_1_.20261123T021217Z.pid812.log", "all.n.20261123T021217Z.pid812.jsonl",
                           "rank3.a.b.20261123T021217Z.pid812-2.log"}) {
    EXPECT_TRUE(IsOwnLogName(name)) << name;
  }
  for (const char* name :
       {"", ".", "x.log", "rank3.log", "data", "rank3.20261123T021217Z.pid812.log",
        "rank.n.20261123T021217Z.pid812.log", "rank3.n.20261123T021217Z.pid812.txt",
        "rank3.n.20261123T021217Z.pid812-.log", "rank3.n.20261123T021217Z.pid.log",
        "rank3.n.20261123X021217Z.pid812.log", "rank3.n.2026.pid812.log", "myrank3.n.20261123T021217Z.pid8.log"}) {
    EXPECT_FALSE(IsOwnLogName(name)) << name;
  }
}

TEST(LogNameTest, RotatedNamesBelongToTheOneThatIsWritten) {
  const auto read = [](std::string_view name) {
    const RotatedName rotated = ReadRotatedName(name);
    return std::pair(std::string(rotated.stem), rotated.age);
  };
  EXPECT_EQ(read("x.log"), std::pair(std::string("x.log"), 0));
  EXPECT_EQ(read("x.log.1"), std::pair(std::string("x.log"), 1));
  EXPECT_EQ(read("x.jsonl.12.gz"), std::pair(std::string("x.jsonl"), 12));
  EXPECT_EQ(read("x.log.zst"), std::pair(std::string("x.log"), 0));
  EXPECT_EQ(read("train.log.0"), std::pair(std::string("train.log.0"), 0));
  EXPECT_EQ(read("slurm-4711.3"), std::pair(std::string("slurm-4711.3"), 0));
}

}  // namespace
}  // namespace lockstep::logs
