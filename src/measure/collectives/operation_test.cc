#include "measure/collectives/operation.h"

#include <gmock/gmock.h>

#include <vector>

#include "analysis/collective_size.h"
#include "measure/collectives/pattern.h"
#include "measure/collectives/plan.h"

namespace lockstep::collective_bench {
namespace {

using testing::ElementsAre;

TEST(OperationTest, SizesAreThoseOfNcclTests) {
  // all_reduce: one rank's buffer; all_gather: the chunks of all; shares are multiples of 16 bytes.
  EXPECT_EQ(CallOfSize(Operation::kAllReduce, DataType::kFloat32, 4, 1'000'000).count, 250'000u);
  EXPECT_EQ(CallOfSize(Operation::kAllReduce, DataType::kFloat32, 4, 1'000'010).count, 250'000u);
  const Call gather = CallOfSize(Operation::kAllGather, DataType::kFloat32, 4, 1024);
  EXPECT_EQ(gather.count, 64u);
  EXPECT_EQ(BytesOf(gather, 4), 1024);
  EXPECT_EQ(SendElements(gather, 4), 64u);
  EXPECT_EQ(ReceiveElements(gather, 4), 256u);
  const Call scatter = CallOfSize(Operation::kReduceScatter, DataType::kFloat64, 3, 1024);
  EXPECT_EQ(scatter.count, 42u) << "341 bytes a rank are 336 in multiples of 16";
  EXPECT_EQ(BytesOf(scatter, 3), 1008);
  EXPECT_EQ(CallOfSize(Operation::kAllToAll, DataType::kInt64, 16, 8).count, 1u) << "never nothing";
}

TEST(OperationTest, BusBandwidthIsThatOfNcclTests) {
  const auto factor = [](Operation operation, int size) {
    return analysis::BusBandwidthFactor(KindOf(operation), size);
  };
  EXPECT_DOUBLE_EQ(*factor(Operation::kAllReduce, 4), 2 * 3 / 4.0);
  for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter, Operation::kAllToAll}) {
    EXPECT_DOUBLE_EQ(*factor(operation, 4), 3 / 4.0) << OperationName(operation);
  }
  for (const Operation operation : {Operation::kBroadcast, Operation::kReduce, Operation::kSendReceive}) {
    EXPECT_DOUBLE_EQ(*factor(operation, 4), 1) << OperationName(operation);
  }
  EXPECT_FALSE(factor(Operation::kAllReduce, 1)) << "of one rank there is none";
}

/// What ranks get, worked out the slow way from what they send.
template <typename T>
std::vector<T> Slow(const Call& call, int rank, int size) {
  std::vector<std::vector<T>> sent;
  for (int r = 0; r < size; ++r) {
    std::vector<T>& one = sent.emplace_back(SendElements(call, size));
    // In two pieces, as large buffers are.
    const size_t half = one.size() / 2;
    FillSend(call, r, 0, std::as_writable_bytes(std::span(one).first(half)));
    FillSend(call, r, half, std::as_writable_bytes(std::span(one).subspan(half)));
  }
  const auto reduced = [&](size_t i) {
    T value = sent[0][i];
    for (int r = 1; r < size; ++r) {
      const T other = sent[static_cast<size_t>(r)][i];
      if (call.reduction == Reduction::kSum) value = static_cast<T>(value + other);
      if (call.reduction == Reduction::kMin) value = std::min(value, other);
      if (call.reduction == Reduction::kMax) value = std::max(value, other);
    }
    return value;
  };
  std::vector<T> got(ReceiveElements(call, size));
  const auto me = static_cast<size_t>(rank);
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t from = i / call.count;
    const size_t at = i % call.count;
    switch (call.operation) {
      case Operation::kAllReduce:
      case Operation::kReduce: got[i] = reduced(i); break;
      case Operation::kReduceScatter: got[i] = reduced(me * call.count + i); break;
      case Operation::kAllGather: got[i] = sent[from][at]; break;
      case Operation::kBroadcast: got[i] = sent[static_cast<size_t>(call.root)][i]; break;
      case Operation::kAllToAll: got[i] = sent[from][me * call.count + at]; break;
      case Operation::kSendReceive: got[i] = sent[static_cast<size_t>((rank + size - 1) % size)][i]; break;
    }
  }
  return got;
}

template <typename T>
void CheckType(DataType type) {
  for (const Operation operation : kOperations) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax}) {
      for (const int size : {1, 2, 5, 19}) {
        Call call = CallOfSize(operation, type, size, 1200);
        call.reduction = reduction;
        call.root = size - 1;
        for (const int rank : {0, size - 1}) {
          std::vector<T> got = Slow<T>(call, rank, size);
          const size_t part = got.size() / 3;
          const auto wrong = [&] {
            return CountWrong(call, rank, size, 0, std::as_bytes(std::span(got).first(part))) +
                   CountWrong(call, rank, size, part, std::as_bytes(std::span(got).subspan(part)));
          };
          EXPECT_EQ(wrong(), 0u) << OperationName(operation) << " " << DataTypeName(type) << " " << size;
          if (operation == Operation::kReduce && rank != call.root) continue;
          got.back() = static_cast<T>(got.back() + 1);
          EXPECT_EQ(wrong(), 1u) << OperationName(operation) << " " << DataTypeName(type) << " " << size;
        }
      }
    }
  }
}

TEST(PatternTest, ResultsCanBeToldBeforehandAndOneWrongElementIsSeen) {
  CheckType<uint8_t>(DataType::kUint8);
  CheckType<int32_t>(DataType::kInt32);
  CheckType<int64_t>(DataType::kInt64);
  CheckType<float>(DataType::kFloat32);
  CheckType<double>(DataType::kFloat64);
}

TEST(PlanTest, SizesAreWrittenInPowersOf1024) {
  EXPECT_EQ(*ParseBytes("8"), 8);
  EXPECT_EQ(*ParseBytes("64K"), 65536);
  EXPECT_EQ(*ParseBytes("1MiB"), 1 << 20);
  EXPECT_EQ(*ParseBytes("8g"), int64_t{8} << 30);
  for (const char* text : {"", "0", "-1", "K", "1.5M", "9999999T", "1X"}) EXPECT_FALSE(ParseBytes(text)) << text;
  EXPECT_EQ(BytesText(1 << 20), "1 MiB");
  EXPECT_EQ(BytesText(1025), "1025 B");
}

TEST(PlanTest, ASweepGoesByAFactor) {
  EXPECT_THAT(*Sweep(8, 100, 2), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(*Sweep(8, 8, 2), ElementsAre(8));
  EXPECT_FALSE(Sweep(9, 8, 2));
  EXPECT_FALSE(Sweep(8, 16, 1));
}

TEST(PlanTest, WordsBringItToOtherProcesses) {
  Plan plan;
  plan.operations = {Operation::kReduce, Operation::kAllToAll};
  plan.sizes_bytes = {8, int64_t{8} << 30};
  plan.type = DataType::kInt64;
  plan.reduction = Reduction::kMax;
  plan.root = 3;
  plan.iterations = 7;
  plan.warmup = 0;
  plan.check = false;
  plan.in_place = false;
  plan.pairs = true;
  const auto back = FromWords(ToWords(plan));
  ASSERT_TRUE(back);
  EXPECT_EQ(ToWords(*back), ToWords(plan));
  EXPECT_THAT(back->sizes_bytes, ElementsAre(8, int64_t{8} << 30));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"operations=all_reduce"},
                                             {"sizes=8"},
                                             {"operations=no", "sizes=8"},
                                             {"operations=reduce", "sizes=0"},
                                             {"operations=reduce", "sizes=8", "iterations=0"},
                                             {"operations=reduce", "sizes=8", "x=1"},
                                             {"--help"}}) {
    EXPECT_FALSE(FromWords(words));
  }
}

}  // namespace
}  // namespace lockstep::collective_bench
