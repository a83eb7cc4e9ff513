#include "measure/runner/bench_program.h"

#include <gtest/gtest.h>

namespace lockstep::bench_program {
namespace {

TEST(BenchProgramTest, WordsBringThemselvesToOtherProcesses) {
  Words words;
  words.plan.sizes_bytes = {8, 1024};
  words.backend = BackendKind::kNccl;
  words.nccl_library = "/opt/a folder/libnccl.so.2";
  words.timeout = std::chrono::seconds(7);
  words.start_count = 8;
  words.json = true;
  words.csv_path = "-x.csv";
  words.page_path = "a page.html";
  words.beside_path = "--json";
  const auto back = FromArguments(ToArguments(words));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(ToArguments(*back), ToArguments(words));
  EXPECT_EQ(back->nccl_library, words.nccl_library);
  EXPECT_EQ(back->timeout.count(), 7);
  EXPECT_EQ(back->page_path, words.page_path);
  EXPECT_EQ(back->beside_path, words.beside_path);
}

TEST(BenchProgramTest, WhatIsNotKnownIsRefused) {
  const std::vector<std::string> plan = collective_bench::ToWords({.sizes_bytes = {8}});
  ASSERT_TRUE(FromArguments(plan));
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--backend", "gloo"},
                                                                                    {"--timeout", "0"},
                                                                                    {"--timeout", "1e9"},
                                                                                    {"--start", "100000"},
                                                                                    {"--start"},
                                                                                    {"--x", "1"}}) {
    std::vector<std::string> arguments = more;
    arguments.insert(arguments.begin(), plan.begin(), plan.end());
    EXPECT_FALSE(FromArguments(arguments)) << more[0];
  }
}

}  // namespace
}  // namespace lockstep::bench_program
