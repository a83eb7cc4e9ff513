#include "node/inspect/python_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <random>
#include <sstream>

#include "base/subprocess.h"
#include "node/inspect/testing/target_process.h"

namespace lockstep::inspect {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(PythonLinesTest, LinesAreThoseThatPythonItselfTells) {
  const auto output = RunCommand({"python3", "-c",
                                  "import ast, argparse, json.decoder, types, textwrap\n"
                                  "def codes(code):\n"
                                  "    yield code\n"
                                  "    for constant in code.co_consts:\n"
                                  "        if isinstance(constant, types.CodeType):\n"
                                  "            yield from codes(constant)\n"
                                  "for module in (ast, argparse, json.decoder, textwrap):\n"
                                  "    source = open(module.__file__).read()\n"
                                  "    for code in codes(compile(source, 'x', 'exec')):\n"
                                  "        print('C', code.co_firstlineno, code.co_linetable.hex())\n"
                                  "        for start, end, line in code.co_lines():\n"
                                  "            print('L', start // 2, -1 if line is None else line)\n"});
  ASSERT_TRUE(output) << output.error().ToString();
  ASSERT_EQ(output->exit_status, 0) << output->error;
  std::istringstream lines(output->output);
  std::string kind;
  int32_t first = 0;
  std::string table;
  size_t compared_count = 0;
  while (lines >> kind) {
    if (kind == "C") {
      std::string hex;
      lines >> first >> hex;
      table = FromHex(hex);
      continue;
    }
    uint64_t unit = 0;
    int32_t line = 0;
    lines >> unit >> line;
    ASSERT_EQ(LineOf(table, first, unit).value_or(-1), line) << "instruction " << unit << " of the code at " << first;
    ++compared_count;
  }
  EXPECT_GT(compared_count, 5000u);
}

TEST(PythonLinesTest, DamagedTablesAreNoHarm) {
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string table(random() % 40, '\0');
    for (char& c : table) c = static_cast<char>(random());
    LineOf(table, static_cast<int32_t>(random()), random() % 100);
  }
  EXPECT_FALSE(LineOf("", 1, 0));
}

TEST(PythonFramesTest, MemoryThatIsNoInterpreterIsRefused) {
  // A process of ours whose memory is looked at as if an interpreter lay there: random words, and pointers in a circle.
  static std::array<uint64_t, 8192> words;
  TargetProcess target([](SharedCounters* counters) {
    std::mt19937_64 random(4);
    for (uint64_t& word : words) {
      word = reinterpret_cast<uint64_t>(&words[random() % (words.size() / 2)]);
      if (random() % 8 == 0) word = random();
    }
    counters->ready = true;
    while (true) ::pause();
  });
  for (size_t start = 0; start < words.size() / 2; start += 64) {
    const auto address = reinterpret_cast<uint64_t>(&words[start]);
    const PythonSymbols symbols = {
        .runtime = address, .version = address, .code_type = words[start], .text_type = address};
    PythonLayout layout;
    layout.interpreters_head = 8;
    layout.threads_head = 16;
    layout.thread_next = 24;
    layout.frame_previous = 32;
    layout.thread_frame = 40;
    layout.frame_code = 48;
    const auto threads = ReadPythonThreads(target.pid(), symbols, layout);
    if (threads) {
      EXPECT_LE(threads->size(), 4096u);
    }
  }
  EXPECT_FALSE(ReadLayout(target.pid(), {}));
}

TEST(PythonFramesTest, ProcessWithoutPythonSaysSo) {
  TargetProcess target([](SharedCounters* counters) {
    counters->ready = true;
    while (true) ::pause();
  });
  const PythonStacks stacks = ReadPythonStacks(target.pid(), MonotonicNs() + 30'000'000'000);
  EXPECT_TRUE(stacks.threads.empty());
  EXPECT_THAT(stacks.reason, ::testing::HasSubstr("no CPython"));
}

}  // namespace
}  // namespace lockstep::inspect
