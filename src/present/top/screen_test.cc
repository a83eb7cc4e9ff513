#include "present/top/screen.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/utf8.h"
#include "present/report/utf8.h"

namespace lockstep::top {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

live::RankView RankOf(int number, int64_t own_ns, const std::string& host = "n1") {
  live::RankView rank;
  rank.rank = std::to_string(number);
  rank.host = host;
  rank.pid = std::to_string(1000 + number);
  rank.state = live::RankState::kRuns;
  rank.step_count = 10;
  rank.behind_steps = 0;
  rank.step_ns = 100'000'000;
  rank.own_ns = own_ns;
  rank.compute_ratio = static_cast<double>(own_ns) / 1e8;
  rank.communication_ratio = 1 - *rank.compute_ratio;
  rank.phase_ratio[static_cast<size_t>(model::Stage::kForward)] = rank.compute_ratio;
  rank.progress_age_ns = 50'000'000;
  return rank;
}

live::View ViewOf(int ranks, const std::string& job_id = "4711") {
  live::View view;
  view.window_ns = 10'000'000'000;
  view.nodes.resize(1);
  view.nodes[0].host = "n1";
  view.nodes[0].silent_ns = 0;
  live::JobView& job = view.jobs.emplace_back();
  job.job_id = job_id;
  job.world_size = static_cast<uint64_t>(ranks);
  for (int i = 0; i < ranks; ++i) job.ranks.push_back(RankOf(i, 10'000'000 + i * 100'000));
  return view;
}

std::string TextOf(Screen& screen, int width = 100, int height = 24) {
  std::string text;
  for (const ScreenLine& line : screen.Compose(width, height)) text += line.text + "\n";
  return text;
}

std::string SelectedLine(Screen& screen, int height = 24) {
  for (const ScreenLine& line : screen.Compose(100, height)) {
    if (line.is_selected) return line.text;
  }
  return "";
}

Screen::Wish Type(Screen& screen, std::string_view letters) {
  Screen::Wish wish = Screen::Wish::kNothing;
  for (const char letter : letters) wish = screen.Press({Key::kText, std::string(1, letter)});
  return wish;
}

class ScreenTest : public testing::Test {
 protected:
  Screen screen_{report::Style{.colour = false, .unicode = true}};
};

TEST_F(ScreenTest, FillsTheTerminalAndNoMore) {
  screen_.Show(ViewOf(300));
  for (const auto& [width, height] : {std::pair(100, 24), {80, 24}, {200, 60}, {40, 10}, {20, 4}, {1, 1}}) {
    const std::vector<ScreenLine> lines = screen_.Compose(width, height);
    EXPECT_EQ(lines.size(), static_cast<size_t>(height)) << width << "x" << height;
  }
  for (const ScreenLine& line : screen_.Compose(80, 24)) EXPECT_LE(report::DisplayWidth(line.text), 80) << line.text;
}

TEST_F(ScreenTest, TheWorstRankComesFirstAndIsTheOneUntilAnotherIsChosen) {
  live::View view = ViewOf(4);
  view.jobs[0].ranks[2].state = live::RankState::kSlow;
  screen_.Show(view);
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("slow"));
  view.jobs[0].ranks[2].state = live::RankState::kRuns;
  view.jobs[0].ranks[1].state = live::RankState::kStuck;
  screen_.Show(view);
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("stuck"));
  screen_.Press({Key::kDown});
  const std::string chosen = SelectedLine(screen_);
  EXPECT_THAT(chosen, HasSubstr("   3  n1    runs"));
  // It stays chosen when the order changes.
  view.jobs[0].ranks[0].state = live::RankState::kUnheard;
  screen_.Show(view);
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("   3  "));
}

TEST_F(ScreenTest, AllRanksCanBeReached) {
  screen_.Show(ViewOf(256));
  Type(screen_, "s");  // By number.
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("   0  n1"));
  screen_.Press({Key::kEnd});
  EXPECT_THAT(SelectedLine(screen_), HasSubstr(" 255  n1"));
  EXPECT_THAT(TextOf(screen_), Not(HasSubstr("   0  n1")));
  screen_.Press({Key::kHome});
  int moves = 0;
  for (; SelectedLine(screen_).find(" 255  n1") == std::string::npos && moves < 300; ++moves) {
    screen_.Press({Key::kDown});
  }
  EXPECT_EQ(moves, 255);
}

TEST_F(ScreenTest, SortsGoRound) {
  live::View view = ViewOf(3);
  view.jobs[0].ranks[1].communication_ratio = 0.99;
  view.jobs[0].ranks[2].progress_age_ns = 9'000'000'000;
  screen_.Show(view);
  std::vector<std::string> first;
  for (int i = 0; i < 6; ++i) {
    first.push_back(SelectedLine(screen_).substr(2, 4));
    Type(screen_, "s");
  }
  // Worst and own time: the one with most of its own; by number; communication; input: nobody has any; age.
  EXPECT_THAT(first, ElementsAre(HasSubstr("2"), HasSubstr("0"), HasSubstr("2"), HasSubstr("1"), HasSubstr("0"),
                                 HasSubstr("2")));
  EXPECT_THAT(TextOf(screen_), HasSubstr("sort: worst"));
}

TEST_F(ScreenTest, TheFilterLooksAtHostsStatesAndNumbers) {
  live::View view = ViewOf(12);
  view.jobs[0].ranks[7].host = "other";
  screen_.Show(view);
  Type(screen_, "/OTHE");
  EXPECT_THAT(TextOf(screen_), HasSubstr("/OTHE_"));
  EXPECT_THAT(TextOf(screen_), Not(HasSubstr("n1")));
  screen_.Press({Key::kEnter});
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("7  other"));
  EXPECT_THAT(TextOf(screen_), HasSubstr("filter: OTHE"));
  Type(screen_, "/");
  for (int i = 0; i < 6; ++i) screen_.Press({Key::kBackspace});
  Type(screen_, "1");
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("1  n1"));
  EXPECT_THAT(TextOf(screen_), Not(HasSubstr("11  n1")));
  screen_.Press({Key::kEscape});
  EXPECT_THAT(TextOf(screen_), HasSubstr("11  n1"));
  Type(screen_, "/nobody");
  EXPECT_THAT(TextOf(screen_), HasSubstr("no rank matches 'nobody'"));
  // Letters of a filter are not keys.
  EXPECT_EQ(Type(screen_, "q"), Screen::Wish::kNothing);
}

TEST_F(ScreenTest, TheRankPageShowsPhasesAndDashesForWhatIsNotMeasured) {
  screen_.Show(ViewOf(2));
  TextOf(screen_);
  screen_.Press({Key::kEnter});
  const std::string text = TextOf(screen_, 100, 40);
  EXPECT_THAT(text, HasSubstr("RANK 1 of job 4711"));
  EXPECT_THAT(text, HasSubstr("pid 1001"));
  EXPECT_THAT(text, HasSubstr("forward"));
  EXPECT_THAT(text, HasSubstr("PyTorch: - given out, - held"));
  EXPECT_THAT(text, HasSubstr("no device of it is measured"));
  screen_.Press({Key::kEscape});
  EXPECT_THAT(TextOf(screen_), HasSubstr("lockstep top"));
  screen_.Press({Key::kEnter});
  screen_.Show(ViewOf(1));
  EXPECT_THAT(TextOf(screen_), HasSubstr("This rank is gone"));
}

TEST_F(ScreenTest, StacksAreTakenOnlyAfterAYes) {
  screen_.Show(ViewOf(2));
  TextOf(screen_);
  EXPECT_EQ(Type(screen_, "d"), Screen::Wish::kNothing);
  EXPECT_THAT(TextOf(screen_), HasSubstr("Stacks of rank 1 (pid 1001 on n1)?"));
  EXPECT_EQ(Type(screen_, "n"), Screen::Wish::kNothing);
  EXPECT_THAT(TextOf(screen_), Not(HasSubstr("Stacks of rank")));
  Type(screen_, "d");
  EXPECT_EQ(screen_.Press({Key::kEnter}), Screen::Wish::kNothing);
  Type(screen_, "d");
  EXPECT_EQ(Type(screen_, "y"), Screen::Wish::kStacks);
  EXPECT_EQ(screen_.target().pid, "1001");
  EXPECT_EQ(screen_.target().job_id, "4711");
  EXPECT_THAT(TextOf(screen_), HasSubstr("looking ..."));
  screen_.ShowAnswer(Screen::Wish::kStacks, screen_.target(), {"main", "    evil\x1b[2J"});
  EXPECT_THAT(TextOf(screen_), HasSubstr("evil?[2J"));
}

TEST_F(ScreenTest, ACaptureIsOfTheRankOrOfItsJobAfterAnAnswer) {
  screen_.Show(ViewOf(2));
  TextOf(screen_);
  EXPECT_EQ(Type(screen_, "c"), Screen::Wish::kNothing);
  EXPECT_THAT(TextOf(screen_), HasSubstr("Trace rank 1 for a second? y: it, a: all ranks of job 4711, n"));
  EXPECT_EQ(Type(screen_, "n"), Screen::Wish::kNothing);
  Type(screen_, "d");
  EXPECT_EQ(Type(screen_, "a"), Screen::Wish::kNothing) << "stacks are one rank's";
  Type(screen_, "c");
  EXPECT_EQ(Type(screen_, "a"), Screen::Wish::kCaptureJob);
  Type(screen_, "c");
  EXPECT_EQ(Type(screen_, "y"), Screen::Wish::kCaptureRank);
  EXPECT_EQ(screen_.target().rank, "1");
  EXPECT_THAT(TextOf(screen_), HasSubstr("capturing ..."));
  screen_.ShowAnswer(Screen::Wish::kCaptureRank, screen_.target(), {"1 trace in x"});
  EXPECT_THAT(TextOf(screen_), HasSubstr("CAPTURE\n  1 trace in x"));
}

TEST_F(ScreenTest, PausedFiguresStandStill) {
  screen_.Show(ViewOf(2));
  Type(screen_, "p");
  screen_.Show(ViewOf(2, "other"));
  EXPECT_THAT(TextOf(screen_), HasSubstr("PAUSED"));
  EXPECT_THAT(TextOf(screen_), HasSubstr("job 4711"));
  Type(screen_, "p");
  screen_.Show(ViewOf(2, "other"));
  EXPECT_THAT(TextOf(screen_), HasSubstr("job other"));
}

TEST_F(ScreenTest, TheLargestJobIsShownFirstAndTabGoesOn) {
  live::View view = ViewOf(2, "small");
  view.jobs.push_back(ViewOf(5, "large").jobs[0]);
  screen_.Show(view);
  EXPECT_THAT(TextOf(screen_), HasSubstr("job large"));
  EXPECT_THAT(TextOf(screen_), HasSubstr("job 2 of 2"));
  Type(screen_, "\t");
  EXPECT_THAT(TextOf(screen_), HasSubstr("job small"));
}

TEST_F(ScreenTest, NodesThatDoNotAnswerAreNamedBelow) {
  live::View view = ViewOf(2);
  view.nodes.resize(2);
  view.nodes[1].host = "n2";
  view.nodes[1].error = Error{ErrorCode::kNotFound, "nobody listens"};
  view.nodes[1].silent_ns = 3'000'000'000;
  screen_.Show(view);
  EXPECT_THAT(TextOf(screen_), HasSubstr("1 of 2 nodes"));
  EXPECT_THAT(TextOf(screen_), HasSubstr("n2 has not answered for 3.00 s: nobody listens"));
  Type(screen_, "n");
  EXPECT_THAT(TextOf(screen_), HasSubstr("silent for 3.00 s"));
}

TEST_F(ScreenTest, NodesComeWorstFirstAndLeadToTheirRanks) {
  live::View view = ViewOf(6);
  view.nodes.resize(3);
  view.nodes[1].host = "n2";
  view.nodes[2].host = "n3";
  for (const size_t rank : {2, 3}) {
    view.jobs[0].ranks[rank].host = "n2";
    view.jobs[0].ranks[rank].node_idx = 1;
  }
  view.jobs[0].ranks[3].state = live::RankState::kStuck;
  screen_.Show(view);
  Type(screen_, "n");
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("n2  "));
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("3 stuck"));
  screen_.Press({Key::kDown});
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("n1  "));
  screen_.Press({Key::kEnd});
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("n3  "));  // It has no ranks.
  screen_.Press({Key::kHome});
  screen_.Press({Key::kEnter});
  const std::string text = TextOf(screen_);
  EXPECT_THAT(text, HasSubstr("filter: node n2"));
  EXPECT_THAT(text, Not(HasSubstr("n1  ")));
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("stuck"));
}

TEST_F(ScreenTest, ANodesRanksAreItsAloneWhateverItsName) {
  live::View view = ViewOf(3);
  view.nodes.resize(3);
  const char* hosts[] = {"n1", "n10", "2"};  // One is part of another, one is the number of a rank.
  for (size_t i = 0; i < 3; ++i) view.jobs[0].ranks[i].host = view.nodes[i].host = hosts[i];
  for (size_t i = 0; i < 3; ++i) view.jobs[0].ranks[i].node_idx = i;
  view.jobs[0].ranks[0].state = live::RankState::kStuck;
  screen_.Show(view);
  Type(screen_, "n");
  screen_.Press({Key::kEnter});
  EXPECT_THAT(TextOf(screen_), HasSubstr("stuck"));
  EXPECT_THAT(TextOf(screen_), Not(HasSubstr("n10")));
  screen_.Press({Key::kEscape});
  EXPECT_THAT(TextOf(screen_), HasSubstr("n10"));
  // Two of one name, as where a daemon is asked over a tunnel, are two; and a number is a name like others.
  view.jobs[0].ranks[0].state = live::RankState::kRuns;
  view.jobs[0].ranks[1].state = live::RankState::kStuck;
  for (size_t i = 1; i < 3; ++i) view.jobs[0].ranks[i].host = view.nodes[i].host = "2";
  screen_.Show(view);
  Type(screen_, "n");
  screen_.Press({Key::kHome});
  screen_.Press({Key::kEnter});
  EXPECT_THAT(TextOf(screen_), HasSubstr("filter: node 2"));
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("stuck"));
  screen_.Press({Key::kEnd});
  EXPECT_THAT(SelectedLine(screen_), HasSubstr("stuck"));  // It is the only one.
  EXPECT_THAT(TextOf(screen_), Not(HasSubstr("n1 ")));
}

live::ServingView ServingOf(const std::string& model, const std::string& engine) {
  live::ServingView serving;
  serving.host = "n1";
  serving.reading.model = model;
  serving.reading.engine = engine;
  serving.reading.running = 9;
  return serving;
}

/// The cells of the line that begins with `first`, one blank between them.
std::string RowOf(const std::string& text, const std::string& first) {
  const size_t begin = text.find("  " + first);
  if (begin == std::string::npos) return "";
  std::string row;
  for (const char c : text.substr(begin, text.find('\n', begin) - begin)) {
    if (c != ' ' || (!row.empty() && row.back() != ' ')) row += c;
  }
  return row;
}

TEST_F(ScreenTest, AnEngineHasItsQueueItsCacheAndTimesBetweenTokens) {
  live::View view = ViewOf(1);
  live::ServingView vllm = ServingOf("llama", "vllm");
  vllm.reading.waiting = 4;
  vllm.reading.kv_cache_usage_ratio = 0.83;
  vllm.reading.recent_inter_token_s = {{0.5, 0.021}, {0.95, 0.038}, {0.99, 0.074}};
  vllm.preemptions_per_s = 0.25;
  live::ServingView sglang = ServingOf("qwen", "sglang");
  sglang.reading.waiting = 0;
  view.jobs[0].serving = {vllm, sglang, ServingOf("ours", "liblockstep")};
  screen_.Show(view);
  const std::string text = TextOf(screen_, 120, 40);
  const std::string engines = text.substr(text.find("engine of"));
  EXPECT_EQ(RowOf(engines, "llama"), "llama n1 vllm 9 4 83 % 0.25 ~21.0 ms ~38.0 ms ~74.0 ms");
  EXPECT_EQ(RowOf(engines, "qwen"), "qwen n1 sglang 9 0 - - - - -");
  EXPECT_EQ(RowOf(engines, "ours"), "");  // Nothing of it was measured.
  EXPECT_EQ(RowOf(text, "ours"), "ours n1 9 - - - - - - - - -");
  view.jobs[0].serving = {ServingOf("ours", "liblockstep")};
  screen_.Show(view);
  EXPECT_THAT(TextOf(screen_, 120, 40), Not(HasSubstr("engine of")));
}

TEST_F(ScreenTest, InstancesOfAGpuAreBelowIt) {
  live::View view = ViewOf(2);
  live::GpuView gpu;
  gpu.reading.gpu = "2";
  gpu.reading.model = "H100";
  gpu.reading.memory_used_bytes = 3.0 * (1 << 30);
  gpu.reading.memory_total_bytes = 80.0 * (1 << 30);
  gpu.reading.temperature_celsius = 42;
  live::MigInstanceReading& first = gpu.reading.mig_instances["9"];
  first.profile = "1g.10gb";
  first.sm_active_ratio = 0.62;
  first.memory_used_bytes = 1 << 30;
  first.memory_total_bytes = 10.0 * (1 << 30);
  gpu.reading.mig_instances["10"].profile = "2g.20gb";
  view.nodes[0].gpus = {gpu};
  view.jobs[0].ranks[1].gpu = gpu;
  screen_.Show(view);
  TextOf(screen_);
  screen_.Press({Key::kEnter});
  EXPECT_THAT(TextOf(screen_, 120, 40),
              HasSubstr("MIG instance 9 (1g.10gb, -): multiprocessors busy 62 % · memory 1.00 GiB of 10.0 GiB"));
  screen_.Press({Key::kEscape});
  Type(screen_, "n");
  const std::string nodes = TextOf(screen_, 120, 40);
  EXPECT_EQ(RowOf(nodes, "n1    2  "), "n1 2 H100 - - 3.00 GiB 80.0 GiB 42 °C -");
  EXPECT_EQ(RowOf(nodes, "n1    2/9 "), "n1 2/9 MIG 1g.10gb - 62 % 1.00 GiB 10.0 GiB - -");
  EXPECT_EQ(RowOf(nodes, "n1    2/10"), "n1 2/10 MIG 2g.20gb - - - - - -");
  // Nodes go first where room is short.
  EXPECT_THAT(TextOf(screen_, 120, 4), Not(HasSubstr("MIG")));
  EXPECT_EQ(screen_.Compose(120, 7).size(), 7U);
}

TEST_F(ScreenTest, NamesFromOutsideAreMadePrintableOnEveryPage) {
  const std::string evil = "\x1b[31mx\n\x07\xff";
  live::View view = ViewOf(1, evil);
  live::RankView& rank = view.jobs[0].ranks[0];
  rank.rank = rank.host = rank.pid = rank.local_rank = rank.user = rank.device = evil;
  rank.waits_for_rank = evil;
  rank.reading.user_values[evil] = 1;
  rank.reading.groups[evil].enqueued = 1;
  rank.gpu = live::GpuView{};
  rank.gpu->reading.gpu = rank.gpu->reading.model = rank.gpu->reading.uuid = evil;
  live::MigInstanceReading& instance = rank.gpu->reading.mig_instances[evil];
  instance.profile = instance.uuid = evil;
  view.nodes[0].gpus = {*rank.gpu};
  view.jobs[0].alarms.push_back({"kind", live::AlarmSeverity::kCritical, evil, evil});
  view.jobs[0].serving.emplace_back();
  live::ServingView& serving = view.jobs[0].serving[0];
  serving.host = serving.reading.model = serving.reading.engine = evil;
  serving.reading.waiting = 1;
  view.nodes[0].host = view.nodes[0].version = evil;
  view.nodes[0].error = Error{ErrorCode::kIo, evil};
  view.nodes[0].collectors[evil].success = 0;
  screen_.Show(view);
  for (const char* keys : {"", "d", "n", "n", "/\x01"}) {
    Type(screen_, keys);
    for (const int height : {10, 60}) {
      const std::string text = TextOf(screen_, 120, height);
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << keys;
      EXPECT_EQ(text.find('\x07'), std::string::npos) << keys;
      EXPECT_EQ(ValidUtf8(text), text) << keys;
    }
  }
  screen_.Press({Key::kEscape});
  TextOf(screen_);
  screen_.Press({Key::kEnter});
  EXPECT_EQ(TextOf(screen_, 120, 60).find('\x1b'), std::string::npos);
}

TEST_F(ScreenTest, NothingIsThereAndNothingBreaks) {
  for (const char* keys : {"", "d", "s", "n", "h", "h", "p", "\t", "jk"}) {
    Type(screen_, keys);
    EXPECT_EQ(screen_.Compose(80, 24).size(), 24U);
  }
  EXPECT_EQ(Type(screen_, "q"), Screen::Wish::kQuit);
}

}  // namespace
}  // namespace lockstep::top
