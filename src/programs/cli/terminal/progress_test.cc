#include "programs/cli/terminal/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

namespace lockstep::cli {
namespace {

ingest::IngestProgress Half() {
  ingest::IngestProgress progress;
  progress.consumed_bytes = 50;
  progress.total_bytes = 100;
  progress.json_bytes = 2'000'000'000;
  progress.event_count = 6'000'000;
  progress.finished_file_count = 3;
  progress.file_count = 8;
  return progress;
}

TEST(ProgressTextTest, TellsFilesRatesAndWhatIsLeft) {
  EXPECT_EQ(ProgressText(Half(), 2.0), "reading  3/8 files  1.00 GB/s  3.0 M events/s  2.0 s left");
}

TEST(ProgressTextTest, UnknownTotalLeavesRemainingTimeOut) {
  ingest::IngestProgress progress = Half();
  progress.total_bytes = 0;
  EXPECT_EQ(ProgressText(progress, 2.0), "reading  3/8 files  1.00 GB/s  3.0 M events/s");
  EXPECT_EQ(ProgressText(progress, 0), "reading  3/8 files");
}

TEST(ProgressTest, FirstSecondIsSilent) {
  using Clock = std::chrono::steady_clock;
  std::ostringstream err;
  Clock::duration took;
  do {  // Once more where the machine let it wait for so long.
    err.str("");
    const auto begin = Clock::now();
    Progress progress(err, true, false);
    progress.Update(Half());
    progress.Finish();
    took = Clock::now() - begin;
  } while (took > std::chrono::milliseconds(900));
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace lockstep::cli
