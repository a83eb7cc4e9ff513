#include "base/command_name.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace lockstep {
namespace {

TEST(CommandNameTest, AProcessIsCalledWhatItSays) {
  char before[16] = {};
  ASSERT_EQ(::prctl(PR_GET_NAME, before), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, "a (name)"), 0);
  EXPECT_EQ(CommandName(::getpid()), "a (name)");
  ::prctl(PR_SET_NAME, before);
}

TEST(CommandNameTest, OneThatIsGoneHasNone) { EXPECT_EQ(CommandName(-1), ""); }

}  // namespace
}  // namespace lockstep
