#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "logs/write/line_cutter.h"
#include "logs/write/log_sink.h"
#include "logs/write/output_capture.h"
#include "logs/write/rotating_file.h"

namespace lockstep::logs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class WriteTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep-logs-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Content(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  LogSink Sink(const std::string& name, std::vector<std::string>* told = nullptr) const {
    auto file = RotatingFile::Create({.path = Path(name)});
    EXPECT_TRUE(file);
    return LogSink(std::move(*file), LineWriter(LineForm::kText, 3, "h"), [told](const std::string& text) {
      if (told != nullptr) told->push_back(text);
    });
  }

  fs::path folder_;
};

TEST_F(WriteTest, AFullFileBecomesTheNextOlderAndTheOldestGoes) {
  auto file = RotatingFile::Create({.path = Path("a/x.log"), .max_bytes = 8, .file_count = 3});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("1aa\n2bb\n3cc\n"));
  ASSERT_TRUE(file->Write("4dd\n"));
  EXPECT_EQ(Content("a/x.log.1"), "1aa\n2bb\n");
  EXPECT_EQ(Content("a/x.log"), "3cc\n4dd\n");
  ASSERT_TRUE(file->Write("5ee\n6ff\n7gg\n"));
  EXPECT_EQ(Content("a/x.log.2"), "3cc\n4dd\n");
  EXPECT_EQ(Content("a/x.log.1"), "5ee\n6ff\n");
  EXPECT_EQ(Content("a/x.log"), "7gg\n");
  EXPECT_FALSE(fs::exists(folder_ / "a/x.log.3"));
}

TEST_F(WriteTest, ALineThatIsLongerThanAFileHasOneToItself) {
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 8, .file_count = 3});
  ASSERT_TRUE(file->Write("short\nthis one is longer\nend\n"));
  EXPECT_EQ(Content("x.log.2"), "short\n");
  EXPECT_EQ(Content("x.log.1"), "this one is longer\n");
  EXPECT_EQ(Content("x.log"), "end\n");
}

TEST_F(WriteTest, CompressedOnesMoveOnToo) {
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 4, .file_count = 3});
  std::ofstream(Path("x.log.1.gz")) << "gz";
  ASSERT_TRUE(file->Write("aaa\nbbb\n"));
  EXPECT_EQ(Content("x.log.2.gz"), "gz");
  EXPECT_EQ(Content("x.log.1"), "aaa\n");
}

TEST_F(WriteTest, ANameThatIsTakenGetsANumber) {
  auto first = RotatingFile::Create({.path = Path("x.log")});
  auto second = RotatingFile::Create({.path = Path("x.log")});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path(), Path("x-2.log"));
}

TEST_F(WriteTest, WhatDoesNotFitOnTheDiskIsTakenBackAndCounted) {
  // A limit of the file's size stands for a full disk: the kernel writes what fits, and then refuses.
  std::vector<std::string> told;
  LogSink sink = Sink("x.log", &told);
  sink.Append(LineTime::Now(), Level::kInfo, "out", "first");
  sink.Flush(LineTime::Now());
  const std::string before = Content("x.log");
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {before.size() + 10, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 3; ++i) sink.Append(LineTime::Now(), Level::kInfo, "out", "lost");
  LineTime now = LineTime::Now();
  sink.Flush(now);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_EQ(Content("x.log"), before) << "half a line";
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], testing::HasSubstr("lines are lost"));
  now.monotonic_ns += 2'000'000'000;
  sink.Append(now, Level::kInfo, "out", "again");
  sink.Flush(now);
  EXPECT_THAT(Content("x.log"), testing::AllOf(testing::HasSubstr(" W rank3 h lockstep: 3 lines were lost here: "),
                                               testing::EndsWith(" out: again\n")));
  EXPECT_EQ(told.size(), 1u);
}

class LineCutterTest : public testing::Test {
 protected:
  void Add(std::string_view bytes, int64_t now_ns = 0) { cutter_.Add(bytes, now_ns, take_); }
  LineCutter cutter_;
  std::vector<std::string> lines_;
  LineCutter::Take take_ = [this](std::string_view line) { lines_.emplace_back(line); };
};

TEST_F(LineCutterTest, CutsWhereverBytesCome) {
  for (const char c : std::string("one\n\ntwo\r\nthree")) Add(std::string_view(&c, 1));
  cutter_.Flush(take_);
  cutter_.Flush(take_);
  EXPECT_THAT(lines_, ElementsAre("one", "", "two", "three"));
}

TEST_F(LineCutterTest, OfAProgressBarTheLastStateIsKept) {
  Add("\r 10%\r 20%");
  Add("\r100%\nnext\n");
  EXPECT_THAT(lines_, ElementsAre("100%", "next"));
}

TEST_F(LineCutterTest, ALineThatDoesNotEndIsTakenOnceItStands) {
  Add("prompt> ", 0);
  cutter_.Tick(500'000'000, take_);
  EXPECT_TRUE(lines_.empty());
  cutter_.Tick(1'000'000'000, take_);
  Add("\nnext\n", 2'000'000'000);
  EXPECT_THAT(lines_, ElementsAre("prompt> ", "next"));
}

TEST_F(LineCutterTest, AnEndlessLineIsCut) {
  Add(std::string(200'000, 'x'));
  Add("\n");
  size_t total = 0;
  for (const std::string& line : lines_) {
    EXPECT_LE(line.size(), size_t{65'536});
    total += line.size();
  }
  EXPECT_EQ(total, 200'000u);
}

TEST_F(WriteTest, WhatACommandWritesIsInTheLogAndPassedOn) {
  int console[2] = {};
  ASSERT_EQ(::pipe(console), 0);
  auto capture = OutputCapture::Start(Sink("x.log"), {.output = console[1], .error = -1});
  ASSERT_TRUE(capture);
  ASSERT_EQ(::write((*capture)->output_fd(), "to out\n", 7), 7);
  ASSERT_EQ(::write((*capture)->error_fd(), "ERROR to err", 12), 12);
  (*capture)->Finish();
  ::close(console[1]);
  char passed[64] = {};
  EXPECT_EQ(::read(console[0], passed, sizeof passed), 7);
  EXPECT_STREQ(passed, "to out\n");
  ::close(console[0]);
  EXPECT_THAT(Content("x.log"), testing::AllOf(testing::HasSubstr(" I rank3 h out: to out\n"),
                                               testing::HasSubstr(" E rank3 h err: ERROR to err\n")));
}

TEST_F(WriteTest, WhoWritesOnAfterTheCommandIsServedOn) {
  auto capture = OutputCapture::Start(Sink("x.log"), {});
  ASSERT_TRUE(capture);
  // A process that the command left behind: it writes when it is told to.
  int go[2] = {};
  ASSERT_EQ(::pipe(go), 0);
  const pid_t left = ::fork();
  if (left == 0) {
    char byte = 0;
    ::close(go[1]);
    [[maybe_unused]] ssize_t done = ::read(go[0], &byte, 1);
    done = ::write((*capture)->output_fd(), "late\n", 5);
    ::_exit(done == 5 ? 0 : 1);
  }
  ::close(go[0]);
  (*capture)->Finish();
  EXPECT_EQ(::write(go[1], "x", 1), 1);
  int status = -1;
  ::waitpid(left, &status, 0);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 1'000 && Content("x.log").empty(); ++i) ::usleep(10'000);
  EXPECT_THAT(Content("x.log"), testing::EndsWith(" out: late\n"));
}

}  // namespace
}  // namespace lockstep::logs
