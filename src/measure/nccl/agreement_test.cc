#include "measure/nccl/agreement.h"

#include <gtest/gtest.h>

#include "base/thread_communicator.h"

namespace lockstep::nccl_bench {
namespace {

Error Said(std::string message) { return {.code = ErrorCode::kNotFound, .message = std::move(message)}; }

TEST(AgreementTest, AllKnowWhatOneFoundWrong) {
  RunOnThreads(4, [](Communicator& communicator) {
    const Status all = Agree(&communicator, communicator.process() == 2 ? Status(Said("no library")) : Status());
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(all.error().message, "rank 2: no library");
    EXPECT_FALSE(all.error().rank) << "it is everybody's";
  });
}

TEST(AgreementTest, WhatSeveralSayIsSaidOnce) {
  RunOnThreads(6, [](Communicator& communicator) {
    const size_t process = communicator.process();
    const Status all = Agree(&communicator, process == 0   ? Status()
                                            : process == 4 ? Status(Said("another"))
                                                           : Status(Said("no library")));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().message, "ranks 1-3, 5: no library (1 more failed otherwise)");
  });
}

TEST(AgreementTest, AllWell) {
  RunOnThreads(3, [](Communicator& communicator) { EXPECT_TRUE(Agree(&communicator, Status())); });
}

}  // namespace
}  // namespace lockstep::nccl_bench
