#include "ingest/torch_trace/foreign_trace.h"

#include <gmock/gmock.h>

namespace lockstep::ingest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(ForeignTraceTest, OthersFormatsAreCalledByTheirNames) {
  EXPECT_THAT(ForeignByProcessName("Ascend Hardware"), HasSubstr("Ascend's profiler"));
  EXPECT_THAT(ForeignByPlaces({"CPU functions", "CUDA functions"}), HasSubstr("torch.autograd.profiler"));
  EXPECT_THAT(ForeignByPlaces({"[TP00] 1000", "[TP00] 0", "[TP01] 1001"}),
              HasSubstr("holds 2 ranks in one, merged by another program for viewers ([TP00], [TP01], ...)"));
}

TEST(ForeignTraceTest, WhatKinetoWritesIsNone) {
  EXPECT_THAT(ForeignByProcessName("python3"), IsEmpty());
  EXPECT_THAT(ForeignByPlaces({"Spans", "stream 7", "PyTorch Profiler", "Traces", ""}), IsEmpty());
  EXPECT_THAT(ForeignByPlaces({"[TP00] 1000", "[memory] 0", "[x]"}), IsEmpty());
}

}  // namespace
}  // namespace lockstep::ingest
