#include "programs/cli/watch/job_profiler.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/temporary_folder.h"

namespace lockstep::cli {
namespace {

TEST(JobProfilerTest, WhoeverStopsWatchingTakesTheMetricsFileAlong) {
  const TemporaryFolder folder("job_profiler");
  ASSERT_TRUE(folder.made());
  ContinuousRequest request;
  request.every_ns = 1'000'000;
  request.timeout_ns = 1'000'000'000;
  request.folder = folder.File("profile");
  request.budget_bytes = uint64_t{1} << 20;
  request.metrics_file = folder.File("lockstep.prom");
  RunInput input;
  std::ostringstream out;
  Console console{out, out};
  WatchEvents events(out, true);
  {
    control::CaptureSelector selector;
    selector.job_id = "7";
    auto profiler = JobProfiler::Create(request, input, {}, selector, console, events);
    ASSERT_TRUE(profiler) << profiler.error().ToString();
    // Of no node: each capture fails at once, and one may be under way at the end.
    for (int look = 0; look < 20 && out.str().find("failed") == std::string::npos; ++look) {
      (*profiler)->Look(profile_history::JobState::kMoving);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(std::filesystem::exists(request.metrics_file));
  }
  EXPECT_FALSE(std::filesystem::exists(request.metrics_file));
}

}  // namespace
}  // namespace lockstep::cli
