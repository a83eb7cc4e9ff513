#include "node/control/client/trace_names.h"

#include <gtest/gtest.h>

namespace lockstep::control {
namespace {

TEST(TraceFileNameTest, SaysJobHostRankPidAndWindow) {
  Process process;
  process.pid = 4711;
  process.rank = 3;
  process.job_id = "123";
  CaptureWindow window;
  const std::string name = WindowName(window, 1795309583'412'000'000);
  EXPECT_EQ(name, "20261122T010623Z-500ms");
  EXPECT_EQ(TraceFileName(process, "n1", name), "123-n1-rank3-pid4711-20261122T010623Z-500ms");
  process.rank.reset();
  process.job_id.clear();
  EXPECT_EQ(TraceFileName(process, "n1", name), "n1-pid4711-20261122T010623Z-500ms");
}

TEST(TraceFileNameTest, IterationsAreNamed) {
  CaptureWindow window;
  window.mode = CaptureWindow::Mode::kIterations;
  window.iterations = 5;
  EXPECT_EQ(WindowName(window, 0), "19700101T000000Z-5iterations");
}

TEST(SafeNamePartTest, LeavesNothingThatLeadsElsewhere) {
  EXPECT_EQ(SafeNamePart("../../etc/passwd"), "_._.._etc_passwd");
  EXPECT_EQ(SafeNamePart("a b\n;$(x)\xff"), "a_b____x__");
  EXPECT_EQ(SafeNamePart(""), "x");
  EXPECT_EQ(SafeNamePart(std::string(500, 'a')).size(), 48u);
}

}  // namespace
}  // namespace lockstep::control
