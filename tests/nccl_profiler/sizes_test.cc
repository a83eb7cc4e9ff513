// What the ring's reader and the analyses say of an operation's size is the same.
#include <gmock/gmock.h>

#include <initializer_list>
#include <optional>
#include <utility>

#include "analysis/collective_kind.h"
#include "analysis/collective_size.h"
#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/nccl_ring/ring_pulse.h"

namespace lockstep {
namespace {

TEST(NcclSizesTest, AreThoseOfTheAnalyses) {
  using analysis::CollectiveKind;
  for (const auto& [function, kind] :
       std::initializer_list<std::pair<const char*, CollectiveKind>>{{"AllReduce", CollectiveKind::kAllReduce},
                                                                     {"AllGather", CollectiveKind::kAllGather},
                                                                     {"ReduceScatter", CollectiveKind::kReduceScatter},
                                                                     {"AlltoAll", CollectiveKind::kAllToAll},
                                                                     {"Broadcast", CollectiveKind::kBroadcast},
                                                                     {"Reduce", CollectiveKind::kReduce},
                                                                     {"Gather", CollectiveKind::kGather},
                                                                     {"Scatter", CollectiveKind::kScatter},
                                                                     {"Send", CollectiveKind::kSend},
                                                                     {"Recv", CollectiveKind::kReceive},
                                                                     {"PutSignal", CollectiveKind::kOther}}) {
    for (const int32_t ranks : {1, 2, 7}) {
      EXPECT_EQ(ingest::BusFactor(function, ranks), analysis::BusBandwidthFactor(kind, ranks)) << function << ranks;
    }
    EXPECT_EQ(ingest::BusFactor(function, std::nullopt), std::nullopt);
    EXPECT_EQ(analysis::ClassifyCollective(ingest::TorchOperation(function)), kind) << function;
  }
  EXPECT_EQ(ingest::SizeFactor("AllGather", 7), 7);
  EXPECT_EQ(ingest::SizeFactor("AllGather", std::nullopt), std::nullopt);
  EXPECT_EQ(ingest::SizeFactor("AllReduce", std::nullopt), 1);
}

}  // namespace
}  // namespace lockstep
