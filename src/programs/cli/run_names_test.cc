#include "programs/cli/run_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using testing::Pair;

TEST(RunNamesTest, WhatBothPathsShareIsLeftOut) {
  EXPECT_THAT(RunNames("/runs/before/traces", "/runs/after/traces/"), Pair("before", "after"));
  EXPECT_THAT(RunNames("/data/control.json.gz", "/data/test.json.gz"), Pair("control.json.gz", "test.json.gz"));
  EXPECT_THAT(RunNames("runs/1/a", "runs/2/b"), Pair("1/a", "2/b"));
}

TEST(RunNamesTest, NeitherIsEmpty) {
  EXPECT_THAT(RunNames("/runs/a", "/runs/a"), Pair("a", "a"));
  EXPECT_THAT(RunNames("/runs/a", "/runs/a/b"), Pair("a", "a/b"));
}

}  // namespace
}  // namespace lockstep::cli
