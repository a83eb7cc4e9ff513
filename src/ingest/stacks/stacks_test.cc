#include "ingest/stacks/stacks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/testing/checkout.h"

namespace lockstep::ingest {
namespace {

using evidence::ThreadStack;

std::vector<ThreadStack> Read(std::string_view text) {
  auto threads = ReadStacks(text);
  EXPECT_TRUE(threads) << threads.error().ToString();
  return threads ? *std::move(threads) : std::vector<ThreadStack>();
}

std::string Place(const evidence::StackFrame& frame) {
  return frame.function + " " + frame.file + ":" + std::to_string(frame.line);
}

constexpr const char* kFaulthandler = R"(Current thread 0x00007fd51753b6c0 [dumper] (most recent call first):
  File "/home/user/train.py", line 17 in dump
  File "/usr/lib/python3.14/threading.py", line 1045 in _bootstrap

Thread 0x00007fd53e51a200 [python3] (most recent call first):
  File "/home/user/train.py", line 52 in next_batch
  File "/home/user/train.py", line 98 in <module>
)";

TEST(StacksTest, FaulthandlerGivesThreadsNamesAndTheMainOne) {
  EXPECT_EQ(SniffStacks(kFaulthandler), StackFormat::kFaulthandler);
  const auto threads = Read(kFaulthandler);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].name, "dumper");
  EXPECT_FALSE(threads[0].is_main);
  EXPECT_TRUE(threads[1].is_main);
  ASSERT_EQ(threads[1].python.size(), 2U);
  EXPECT_EQ(Place(threads[1].python[0]), "next_batch /home/user/train.py:52");
  EXPECT_EQ(threads[1].source, "faulthandler");
}

TEST(StacksTest, OfSeveralFaulthandlerDumpsTheLastCounts) {
  const std::string text = std::string("Timeout (0:00:05)!\n") + kFaulthandler +
                           "Timeout (0:00:05)!\nThread 0x00007fd53e51a200 (most recent call first):\n"
                           "  File \"/home/user/train.py\", line 60 in forward\n"
                           "  File \"/home/user/train.py\", line 98 in <module>\n";
  const auto threads = Read(text);
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].name, "0x00007fd53e51a200");
  EXPECT_EQ(threads[0].python[0].line, 60);
}

TEST(StacksTest, FaulthandlersOfAFatalErrorHaveTheStackOfC) {
  const auto threads = Read(
      "Fatal Python error: Aborted\n\nCurrent thread 0x00007f12 [python3] (most recent call first):\n"
      "  File \"t.py\", line 3 in <module>\n\n"
      "Current thread's C stack trace (most recent call first):\n"
      "  Binary file \"/lib/libc.so.6\", at abort+0x12 [0x7f1122]\n"
      "  Binary file \"python3\" [0x55]\n"
      "\nExtension modules: numpy (total: 1)\n");
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].python.size(), 1U);
  ASSERT_EQ(threads[0].native.size(), 2U);
  EXPECT_EQ(Place(threads[0].native[0]), "abort /lib/libc.so.6:0");
}

TEST(StacksTest, PySpyTextHasIdsTheGilAndBothKindsOfFrame) {
  constexpr const char* kText = R"(Process 4711: python -u train.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 4711 (active+gil): "MainThread"
    __poll (libc.so.6)
    next_batch (train.py:52)
        Arguments:
            step: 3
    <module> (train.py:98)
Thread 0x7F12AB (idle): "pin "memory""
    wait (threading.py:320)

Process 4800: python worker
Thread 4800 (idle): "MainThread"
    poll (worker.py:1)
)";
  EXPECT_EQ(SniffStacks(kText), StackFormat::kPySpyText);
  const auto threads = Read(kText);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].is_main);
  EXPECT_TRUE(threads[0].holds_gil);
  EXPECT_EQ(threads[0].tid, 4711);
  ASSERT_EQ(threads[0].python.size(), 2U);
  EXPECT_EQ(Place(threads[0].python[0]), "next_batch train.py:52");
  ASSERT_EQ(threads[0].native.size(), 1U);
  EXPECT_EQ(Place(threads[0].native[0]), "__poll libc.so.6:0");
  EXPECT_EQ(threads[1].name, "pin \"memory\"");
  EXPECT_EQ(threads[1].tid, 0);
}

TEST(StacksTest, PySpyJsonIsReadTheSame) {
  constexpr const char* kText = R"([{"pid":4711,"thread_id":140,"thread_name":"MainThread","os_thread_id":4711,
    "active":true,"owns_gil":true,"frames":[{"name":"next_batch","filename":"/x/train.py","module":null,
    "short_filename":"train.py","line":52,"locals":null}],"process_info":null},
    {"pid":4711,"thread_id":141,"thread_name":null,"os_thread_id":null,"active":false,"owns_gil":false,"frames":[]}])";
  EXPECT_EQ(SniffStacks(kText), StackFormat::kPySpyJson);
  const auto threads = Read(kText);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].is_main);
  EXPECT_EQ(Place(threads[0].python[0]), "next_batch /x/train.py:52");
}

TEST(StacksTest, EuStackHasModulesAndSources) {
  constexpr const char* kText = R"(PID 4711 - process
TID 4711:
#0  0x00007f1e9a5b0e8f     __poll - /usr/lib/libc.so.6
#1  0x00007f1e9a5b0e90 - 1 gloo::Pair::wait(std::chrono::duration<long>)
    /src/gloo/pair.cc:547:3
#2  0x00007f1e9a5b0e91
TID 4712:
#0  0x00007f1e9a5b0e8f     futex
)";
  EXPECT_EQ(SniffStacks(kText), StackFormat::kEuStack);
  const auto threads = Read(kText);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_TRUE(threads[0].is_main);
  EXPECT_FALSE(threads[1].is_main);
  ASSERT_EQ(threads[0].native.size(), 3U);
  EXPECT_EQ(Place(threads[0].native[0]), "__poll /usr/lib/libc.so.6:0");
  EXPECT_EQ(Place(threads[0].native[1]), "gloo::Pair::wait(std::chrono::duration<long>) /src/gloo/pair.cc:547");
}

TEST(StacksTest, GdbHasNamesLibrariesSourcesAndPythonFrames) {
  constexpr const char* kText = R"([New LWP 4712]
0x00007f12 in ?? ()

Thread 2 (Thread 0x7f5 (LWP 4712) "pt_autograd_0"):
#0  0x00007f12 in __futex_wait (a=1, b=...) at ./nptl/futex.c:57
#1  (anonymous namespace)::run<int> (x=2) at a.cc:9

Thread 1 (Thread 0x7f4 (LWP 4711) "python3"):
#0  0x00007f12 in poll () from /lib/libc.so.6
#1  0x000055 in _PyEval_EvalFrameDefault (f=Frame 0x7f9, for file /x/train.py, line 52, in next_batch (step=3)) at ceval.c:1
)";
  EXPECT_EQ(SniffStacks(kText), StackFormat::kGdb);
  const auto threads = Read(kText);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].name, "pt_autograd_0");
  EXPECT_EQ(Place(threads[0].native[0]), "__futex_wait ./nptl/futex.c:57");
  EXPECT_EQ(Place(threads[0].native[1]), "(anonymous namespace)::run<int> a.cc:9");
  EXPECT_TRUE(threads[1].is_main);
  EXPECT_EQ(threads[1].tid, 4711);
  EXPECT_EQ(Place(threads[1].native[0]), "poll /lib/libc.so.6:0");
  EXPECT_EQ(Place(threads[1].python.at(0)), "next_batch /x/train.py:52");
}

TEST(StacksTest, OtherTextIsNoStack) {
  for (const char* text :
       {"", "\n\n", "[1,2]", "Thread safety first (most recent call first):\n", "Traceback\n", "\xff\xfe"}) {
    EXPECT_EQ(SniffStacks(text), StackFormat::kNone) << text;
    EXPECT_EQ(ReadStacks(text).error().code, ErrorCode::kUnsupported);
  }
}

TEST(StacksTest, CutAnywhereEveryFormatIsReadOrRefused) {
  const std::string text = kFaulthandler;
  for (size_t length = 0; length < text.size(); ++length) (void)ReadStacks(std::string_view(text).substr(0, length));
}

TEST(StacksTest, SharedStacksHaveAMainThreadInTheScript) {
  const std::filesystem::path root = SharedData();
  if (!std::filesystem::exists(root / "flight_recorder")) GTEST_SKIP() << "the shared data are absent";
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "flight_recorder")) {
    if (!entry.path().filename().string().starts_with("stacks_")) continue;
    std::stringstream bytes;
    bytes << std::ifstream(entry.path()).rdbuf();
    int main_count = 0;
    for (const ThreadStack& thread : Read(bytes.str())) {
      if (!thread.is_main) continue;
      ++main_count;
      // An excepthook is called from C, with nothing outside it.
      const std::string& outermost = thread.python.back().function;
      EXPECT_TRUE(outermost == "<module>" || outermost == "_distributed_excepthook") << entry.path();
    }
    EXPECT_EQ(main_count, 1) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 20);
}

}  // namespace
}  // namespace lockstep::ingest
