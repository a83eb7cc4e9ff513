#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "present/report/hang/hang_report.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using hang::Diagnosis;
using testing::HasSubstr;
using testing::Not;

Diagnosis Skipped() {
  Diagnosis diagnosis;
  diagnosis.world_size = 4;
  hang::Verdict& verdict = diagnosis.verdict;
  verdict.kind = hang::VerdictKind::kSkippedCollective;
  verdict.confidence = 0.95;
  verdict.culprit_ranks = {2};
  verdict.victim_ranks = {0, 1, 3};
  verdict.group = "0";
  verdict.sequence = 4;
  verdict.operation = "all_reduce";
  verdict.explanation = "Rank 2 skipped all_reduce #4, which 3 ranks called.";
  verdict.sites = {{{2},
                    "culprit",
                    "called barrier",
                    "save",
                    "/job/train.py",
                    82,
                    {{"save", "/job/train.py", 82}, {"main", "/job/train.py", 9}}},
                   {{0, 1, 3},
                    "victim",
                    "called all_reduce",
                    "clip",
                    "/job/train.py",
                    74,
                    {{"clip", "/job/train.py", 74}, {"main", "/job/train.py", 9}}}};
  verdict.advice = {"Look at the branch."};
  hang::GroupState& group = diagnosis.groups.emplace_back();
  group.name = "0";
  group.description = "default_pg";
  group.members = {0, 1, 2, 3};
  for (int32_t r = 0; r < 4; ++r) {
    hang::RankInGroup in;
    in.rank = r;
    in.last_enqueued = r == 2 ? 3 : 4;
    in.last_completed = 3;
    group.ranks.push_back(in);
    hang::RankState state;
    state.rank = r;
    state.role = r == 2 ? hang::RankRole::kCulprit : hang::RankRole::kVictim;
    state.doing = r == 2 ? "in save" : "waits in all_reduce #4";
    state.has_record = true;
    diagnosis.ranks.push_back(state);
  }
  diagnosis.evidence = {{"flight_recorder", {2}, "/d/trace_2", "Rank 2 never issued #4.", false},
                        {"python_stack", {2}, "/d/stacks_2.txt", "Rank 2 is in save.", true}};
  diagnosis.missing = {{1, "", "log", "none was given", "add it"}, {3, "", "log", "none was given", "add it"}};
  return diagnosis;
}

std::string Text(const Diagnosis& diagnosis, HangTextOptions options = {}) {
  std::ostringstream out;
  WriteHangText(diagnosis, options, out);
  return out.str();
}

TEST(HangTextTest, TheVerdictIsFirstThenWhoAndTheCode) {
  const std::string text = Text(Skipped());
  EXPECT_EQ(text.find("▶ skipped collective: rank 2, 95 % sure\n"), 0U) << text;
  EXPECT_THAT(text, HasSubstr("Rank 2 skipped all_reduce #4"));
  EXPECT_THAT(text, HasSubstr("victim   0, 1, 3"));
  EXPECT_THAT(text, HasSubstr("rank 2 (culprit) called barrier at /job/train.py:82 in save"));
}

TEST(HangTextTest, TheFirstDifferingFrameOfBothSidesIsMarked) {
  const std::string text = Text(Skipped(), {.unicode = false});
  EXPECT_THAT(text, HasSubstr("    train.py:9 main "));
  EXPECT_THAT(text, HasSubstr("  > train.py:82 save "));
  EXPECT_THAT(text, HasSubstr("| train.py:74 clip\n"));
}

TEST(HangTextTest, GroupsAreCondensedToWhoStandsWhere) {
  EXPECT_THAT(Text(Skipped()), HasSubstr("0 default_pg  0-3      4: 0, 1, 3; 3: 2  3"));
}

TEST(HangTextTest, EvidenceHasItsSourceAndWhatContradictsStandsApart) {
  const std::string text = Text(Skipped());
  EXPECT_THAT(text, HasSubstr("Rank 2 never issued #4. (flight recorder, trace_2)"));
  EXPECT_GT(text.find("Rank 2 is in save."), text.find("SPEAKS AGAINST IT"));
}

TEST(HangTextTest, WhatIsMissingAlikeIsOneLine) {
  EXPECT_THAT(Text(Skipped()), HasSubstr("log of ranks 1, 3: none was given; add it"));
}

TEST(HangTextTest, BelowHalfSureNoCulpritIsStatedAsSuch) {
  Diagnosis diagnosis = Skipped();
  diagnosis.verdict.confidence = 0.4;
  EXPECT_THAT(Text(diagnosis), HasSubstr("perhaps rank 2, 40 % sure"));
}

TEST(HangTextTest, ColourIsThereOnlyWhenAskedFor) {
  EXPECT_THAT(Text(Skipped()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Text(Skipped(), {.colour = true}), HasSubstr("\x1b[1"));
}

TEST(HangTextTest, NoLineIsWiderThanAsked) {
  for (const int columns : {40, 60, 80, 120}) {
    std::istringstream lines(Text(Skipped(), {.columns = columns, .all = true}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), columns) << line;
  }
}

TEST(HangTextTest, AThousandRanksFitOnAScreen) {
  Diagnosis diagnosis = Skipped();
  diagnosis.ranks.clear();
  diagnosis.verdict.victim_ranks.clear();
  for (int32_t r = 0; r < 1024; ++r) {
    hang::RankState state;
    state.rank = r;
    state.role = r == 2 ? hang::RankRole::kCulprit : hang::RankRole::kVictim;
    state.doing = r == 2 ? "in save" : "waits";
    diagnosis.ranks.push_back(state);
    if (r != 2) diagnosis.missing.push_back({r, "", "log", "none was given", "add it"});
  }
  const std::string text = Text(diagnosis);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
  EXPECT_THAT(text, HasSubstr("0, 1, 3-1023"));
}

TEST(HangTextTest, HostileNamesAreMadePrintable) {
  Diagnosis diagnosis = Skipped();
  diagnosis.verdict.explanation = "a\x1b[31mb\nc\xff";
  diagnosis.ranks[0].doing = "x\r\x07";
  diagnosis.groups[0].description = "\x1b]0;t\x07";
  diagnosis.verdict.sites[0].stack[0].function = "f\x1b[2J";
  const std::string text = Text(diagnosis);
  for (const char* bad : {"\x1b", "\r", "\x07", "\xff"}) EXPECT_THAT(text, Not(HasSubstr(bad)));
}

TEST(HangTextTest, AnEmptyDiagnosisIsUndecidable) { EXPECT_EQ(Text({}).find("▶ undecidable, 0 % sure\n"), 0U); }

TEST(HangJsonTest, ARankOfWhichNothingIsKnownMakesItPartial) {
  Diagnosis diagnosis = Skipped();
  EXPECT_FALSE(IsPartial(diagnosis));
  diagnosis.problems = {{.file = "a", .rank = {}, .message = "m", .skipped = true, .is_note = true}};
  EXPECT_FALSE(IsPartial(diagnosis));
  diagnosis.ranks[1].has_record = false;
  EXPECT_TRUE(IsPartial(diagnosis));
  EXPECT_EQ(HangLedger(diagnosis).entries().size(), 2U);
}

}  // namespace
}  // namespace lockstep::report
