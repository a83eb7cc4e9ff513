#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "inside/log_write/line_cutter.h"
#include "inside/log_write/log_sink.h"
#include "inside/log_write/output_capture.h"
#include "inside/log_write/rotating_file.h"

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

TEST_F(WriteTest, WhereNoNewFileIsToBeHadEachOldOneIsKept) {
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 4, .file_count = 3});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("1aa\n2bb\n3cc\n"));
  // A sanitizer looks at an object that it has not seen through a descriptor of its own: errors are seen once before.
  EXPECT_FALSE(RotatingFile::Create({.path = Path("x.log/below")}));
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd lowest(::dup(STDIN_FILENO));
  rlimit none_more = before;
  none_more.rlim_cur = static_cast<rlim_t>(lowest.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_more), 0);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(file->Write("4dd\n"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(Content("x.log.2"), "1aa\n");
  EXPECT_EQ(Content("x.log.1"), "2bb\n");
  EXPECT_EQ(Content("x.log"), "3cc\n");
  ASSERT_TRUE(file->Write("4dd\n"));
  EXPECT_EQ(Content("x.log.2"), "2bb\n");
  EXPECT_EQ(Content("x.log"), "4dd\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3);
}

TEST_F(WriteTest, AFileThatWasTakenAwayIsBegunAnewAndMovesNone) {
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 4, .file_count = 3});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("1aa\n2bb\n"));
  fs::remove(Path("x.log"));
  ASSERT_TRUE(file->Write("3cc\n"));
  EXPECT_EQ(Content("x.log.1"), "1aa\n");
  EXPECT_EQ(Content("x.log"), "3cc\n");
}

TEST_F(WriteTest, CompressedOnesMoveOnToo) {
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 4, .file_count = 3});
  std::ofstream(Path("x.log.1.gz")) << "gz";
  ASSERT_TRUE(file->Write("aaa\nbbb\n"));
  EXPECT_EQ(Content("x.log.2.gz"), "gz");
  EXPECT_EQ(Content("x.log.1"), "aaa\n");
}

/// Lines of 64 bytes that are no two alike.
std::string Lines(int first, int count) {
  std::string lines;
  for (int i = first; i < first + count; ++i)
    lines += fmt::format("{:<63}\n", fmt::format("line {} {}", i, int64_t{i} * 7919));
  return lines;
}

std::string Gunzipped(const fs::path& path) {
  std::string text;
  const gzFile file = ::gzopen(path.c_str(), "rb");
  std::vector<char> block(1 << 16);
  for (int count; file != nullptr && (count = ::gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0;) {
    text.append(block.data(), static_cast<size_t>(count));
  }
  if (file != nullptr) ::gzclose(file);
  return text;
}

/// Writes nothing and again until it is so. It takes as long as others have the processor: two minutes at most.
template <typename Condition>
bool Await(RotatingFile* file, const Condition& condition) {
  for (int i = 0; i < 100'000 && !condition(); ++i) {
    EXPECT_TRUE(file->Write(""));
    ::usleep(1'000);
  }
  return condition();
}

TEST_F(WriteTest, RotatedFilesAreCompressedMeanwhile) {
  constexpr int kLinesPerFile = 2'000;
  auto file = RotatingFile::Create(
      {.path = Path("x.log"), .max_bytes = 64 * kLinesPerFile, .file_count = 4, .compresses = true});
  ASSERT_TRUE(file);
  for (int part = 0; part < 6; ++part) {
    ASSERT_TRUE(file->Write(Lines(part * kLinesPerFile, kLinesPerFile)));
  }
  struct stat before = {};
  ASSERT_TRUE(Await(&*file, [&] {
    for (const char* age : {".1", ".2", ".3"}) {
      struct stat plain = {};
      if (::stat(Path(std::string("x.log") + age).c_str(), &plain) == 0) before = plain;
      if (!fs::exists(Path(std::string("x.log") + age + ".gz")) || fs::exists(Path(std::string("x.log") + age)))
        return false;
    }
    return true;
  }));
  for (int age = 1; age <= 3; ++age) {
    EXPECT_EQ(Gunzipped(Path(fmt::format("x.log.{}.gz", age))), Lines((5 - age) * kLinesPerFile, kLinesPerFile));
  }
  EXPECT_EQ(Content("x.log"), Lines(5 * kLinesPerFile, kLinesPerFile));
  EXPECT_LT(fs::file_size(Path("x.log.1.gz")), 64 * kLinesPerFile / 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 4) << "nothing else is left";
  struct stat after = {};
  ASSERT_EQ(::stat(Path("x.log.1.gz").c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 0777, before.st_mode & 0777);
}

TEST_F(WriteTest, FilesThatGoWhileTheyAreCompressedLeaveNothing) {
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 64'000, .file_count = 2, .compresses = true});
  ASSERT_TRUE(file);
  for (int part = 0; part < 300; ++part) ASSERT_TRUE(file->Write(Lines(part * 1'000, 1'000)));
  ASSERT_TRUE(Await(&*file, [&] { return fs::exists(Path("x.log.1.gz")) && !fs::exists(Path("x.log.1")); }));
  EXPECT_EQ(Gunzipped(Path("x.log.1.gz")), Lines(298'000, 1'000));
  EXPECT_EQ(Content("x.log"), Lines(299'000, 1'000));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(WriteTest, TheEndIsNotWaitedFor) {
  const std::string lines = Lines(0, 1'000'000);
  {
    auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = lines.size(), .compresses = true});
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write(lines));
    ASSERT_TRUE(file->Write("next\n"));
  }
  EXPECT_FALSE(fs::exists(Path("x.log.gz.tmp")));
  const bool is_plain = fs::exists(Path("x.log.1"));
  EXPECT_NE(is_plain, fs::exists(Path("x.log.1.gz")));
  EXPECT_TRUE((is_plain ? Content("x.log.1") : Gunzipped(Path("x.log.1.gz"))) == lines);
}

TEST_F(WriteTest, AForkedChildCompressesNothingAndLeavesTheParentsAlone) {
  const std::string lines = Lines(0, 200'000);
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = lines.size(), .compresses = true});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write(lines));
  ASSERT_TRUE(file->Write("next\n"));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    { const RotatingFile own = std::move(*file); }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(Await(&*file, [&] { return fs::exists(Path("x.log.1.gz")) && !fs::exists(Path("x.log.1")); }));
  EXPECT_TRUE(Gunzipped(Path("x.log.1.gz")) == lines);
}

TEST_F(WriteTest, WhereNothingCanBeCompressedItStaysPlain) {
  fs::create_directories(folder_ / "x.log.gz.tmp" / "in the way");
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 8, .file_count = 3, .compresses = true});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("1aa\n2bb\n3cc\n4dd\n5ee\n"));
  EXPECT_EQ(Content("x.log.2"), "1aa\n2bb\n");
  EXPECT_EQ(Content("x.log.1"), "3cc\n4dd\n");
  EXPECT_EQ(Content("x.log"), "5ee\n");
}

TEST_F(WriteTest, WhatAKilledProcessLeftBehindGoesAfterAnHour) {
  const std::string killed = "rank3.node0.20261123T021503Z.pid812.log.gz.tmp";
  const std::string young = "all.node0.job47.20261123T021503Z.pid813-2.jsonl.gz.tmp";
  const std::string others = "data.gz.tmp";
  for (const std::string& name : {killed, young, others}) {
    std::ofstream(folder_ / name) << "half";
    if (name != young) fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  auto file = RotatingFile::Create({.path = Path("x.log"), .max_bytes = 8, .compresses = true});
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("1aa\n2bb\n3cc\n"));
  ASSERT_TRUE(Await(&*file, [&] { return fs::exists(Path("x.log.1.gz")); }));
  EXPECT_FALSE(fs::exists(Path(killed)));
  EXPECT_TRUE(fs::exists(Path(young))) << "somebody may be at it";
  EXPECT_TRUE(fs::exists(Path(others))) << "it is not ours";
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
