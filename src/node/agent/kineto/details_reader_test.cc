#include "node/agent/kineto/details_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace lockstep::agent {
namespace {

TEST(DetailsReaderTest, LookUpThatHangsIsLeftAloneAndOthersGoOn) {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, uint64_t> seen;
  bool release = false;
  const auto look = [&](const DetailsReader::Job& job, bool briefly) -> std::optional<proc::ProcessDetails> {
    if (!briefly && job.uid == 5) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return release; });
    }
    return proc::ProcessDetails{.start_ticks = briefly ? uint64_t{1} : uint64_t{2}};
  };
  DetailsReader reader(
      look,
      [&](uint64_t serial, proc::ProcessDetails details, bool /*gone*/) {
        const std::lock_guard lock(mutex);
        seen.emplace(serial, details.start_ticks);
        changed.notify_all();
      },
      0);
  const auto wait_for = [&](uint64_t serial) {
    for (int i = 0; i < 2000; ++i) {
      reader.Tick(INT64_MAX);
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, std::chrono::milliseconds(10), [&] { return seen.contains(serial); })) return true;
    }
    return false;
  };
  reader.Request({.serial = 1, .pid = 77, .uid = 5});
  ASSERT_TRUE(wait_for(1));
  reader.Request({.serial = 2, .pid = 78, .uid = 6});
  reader.Request({.serial = 3, .pid = 79, .uid = 5});
  ASSERT_TRUE(wait_for(2));
  ASSERT_TRUE(wait_for(3));
  // A look-up that was merely slow counted as hanging until it came back.
  for (int i = 0; i < 2000 && reader.hanging_count() != 1; ++i) {
    reader.Tick(INT64_MAX);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(reader.hanging_count(), 1);
  EXPECT_EQ(seen[1], 1u) << "the hanging one gets the little that cannot hang";
  EXPECT_EQ(seen[3], 1u) << "and so do its user's others";
  const std::lock_guard lock(mutex);
  release = true;
  changed.notify_all();
}

}  // namespace
}  // namespace lockstep::agent
