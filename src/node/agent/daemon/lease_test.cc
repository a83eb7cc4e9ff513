#include "node/agent/daemon/lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/nanoseconds.h"

namespace lockstep::agent {
namespace {

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() : holder_(::mkstemp(path_.data())) {}
  ~LeaseTest() override { ::unlink(path_.c_str()); }

  std::string path_ = testing::TempDir() + "lease_XXXXXX";
  UniqueFd holder_;
};

TEST_F(LeaseTest, IsNotOverWhileSomebodyHoldsIt) {
  ASSERT_EQ(::flock(holder_.get(), LOCK_SH), 0);
  auto lease = Lease::Open(path_);
  ASSERT_TRUE(lease);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(lease->IsOver(i * kSecondNs));
}

TEST_F(LeaseTest, IsOverTwoSecondsAfterTheLastHasLetGo) {
  ASSERT_EQ(::flock(holder_.get(), LOCK_SH), 0);
  auto lease = Lease::Open(path_);
  EXPECT_FALSE(lease->IsOver(0));
  ASSERT_EQ(::flock(holder_.get(), LOCK_UN), 0);
  EXPECT_FALSE(lease->IsOver(1 * kSecondNs));
  EXPECT_FALSE(lease->IsOver(2 * kSecondNs));
  ASSERT_EQ(::flock(holder_.get(), LOCK_SH | LOCK_NB), 0);  // Another one comes in between.
  EXPECT_FALSE(lease->IsOver(3 * kSecondNs));
  ASSERT_EQ(::flock(holder_.get(), LOCK_UN), 0);
  EXPECT_FALSE(lease->IsOver(4 * kSecondNs));
  EXPECT_FALSE(lease->IsOver(5 * kSecondNs));
  EXPECT_TRUE(lease->IsOver(6 * kSecondNs));
  EXPECT_NE(::flock(holder_.get(), LOCK_SH | LOCK_NB), 0);  // From here on nobody can rely on this daemon.
}

TEST_F(LeaseTest, AFileThatIsNotThereIsAnError) {
  const auto lease = Lease::Open(path_ + "x");
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace lockstep::agent
