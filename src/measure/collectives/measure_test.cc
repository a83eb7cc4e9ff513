#include "measure/collectives/measure.h"

#include <gmock/gmock.h>

#include <barrier>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/collectives/pattern.h"

namespace lockstep::collective_bench {
namespace {

using testing::ElementsAre;

/// One process alone.
class LoneCommunicator final : public Communicator {
 public:
  size_t process() const override { return 0; }
  size_t process_count() const override { return 1; }
  void Broadcast(std::string* /*bytes*/) override {}
  std::vector<std::string> Gather(std::string bytes) override { return {std::move(bytes)}; }
  Traffic traffic() const override { return {}; }
};

/// What two threads share that are ranks.
struct Shared {
  std::barrier<> together{2};
  std::string words[2];
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(Shared* shared, size_t process) : shared_(*shared), process_(process) {}
  size_t process() const override { return process_; }
  size_t process_count() const override { return 2; }
  void Broadcast(std::string* bytes) override {
    shared_.words[process_] = *bytes;
    shared_.together.arrive_and_wait();
    if (process_ != 0) *bytes = shared_.words[0];
    shared_.together.arrive_and_wait();
  }
  std::vector<std::string> Gather(std::string bytes) override {
    shared_.words[process_] = std::move(bytes);
    shared_.together.arrive_and_wait();
    std::vector<std::string> all;
    if (process_ == 0) all = {shared_.words[0], shared_.words[1]};
    shared_.together.arrive_and_wait();
    return all;
  }
  Traffic traffic() const override { return {}; }

 private:
  Shared& shared_;
  const size_t process_;
};

/// Collectives of one rank, which are copies; some of them wrong on demand.
class FakeBackend final : public Backend {
 public:
  FakeBackend() : communicator_(std::make_unique<LoneCommunicator>()) {}
  explicit FakeBackend(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  std::string name() const override { return "fake"; }
  Communicator& communicator() override { return *communicator_; }
  bool Has(Operation operation, bool in_place) const override { return operation != Operation::kBroadcast || in_place; }
  size_t max_count(const Call& /*call*/) const override { return 1000; }
  Result<void*> Allocate(size_t bytes) override {
    if (bytes > memory_bytes) return Error{.code = ErrorCode::kLimitExceeded, .message = "full"};
    ++held;
    return std::malloc(bytes);
  }
  void Free(void* memory) override {
    --held;
    std::free(memory);
  }
  Status CopyIn(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Status CopyOut(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  size_t InPlaceSendOffset(const Call& /*call*/) const override { return 0; }
  size_t InPlaceReceiveOffset(const Call& /*call*/) const override { return 0; }
  Status Run(const Call& call, const void* send, void* receive) override {
    ++runs[call.operation];
    if (!call.in_place) std::memcpy(receive, send, call.count * BytesOf(call.type));
    if (call.operation == wrong && call.count > 3) static_cast<float*>(receive)[3] += 1;
    return {};
  }
  Status Wait() override { return {}; }
  Status Barrier() override { return {}; }
  Status Transfer(int /*from*/, int /*to*/, void* /*memory*/, size_t /*bytes*/) override { return {}; }

  std::optional<Operation> wrong;
  size_t memory_bytes = SIZE_MAX;
  int held = 0;
  std::map<Operation, int> runs;

 private:
  std::unique_ptr<Communicator> communicator_;
};

Plan PlanOf(std::vector<Operation> operations, std::vector<int64_t> sizes) {
  Plan plan;
  plan.operations = std::move(operations);
  plan.sizes_bytes = std::move(sizes);
  plan.iterations = 4;
  plan.warmup = 2;
  return plan;
}

TEST(MeasureTest, EverySizeIsCheckedWarmedUpAndTimedBothWays) {
  FakeBackend backend;
  std::vector<int64_t> told;
  const auto results = Measure(&backend, PlanOf({Operation::kAllReduce, Operation::kBroadcast}, {64, 1024}),
                               [&](const Row& row) { told.push_back(row.bytes); });
  ASSERT_TRUE(results);
  EXPECT_THAT(told, ElementsAre(64, 1024, 64, 1024));
  EXPECT_EQ(backend.runs[Operation::kAllReduce], 2 * 2 * (1 + 2 + 4));
  EXPECT_EQ(backend.held, 0);
  const Row& row = results->rows[1];
  EXPECT_EQ(row.out_of_place->wrong_count, 0u);
  EXPECT_GT(row.in_place->mean_ns, 0);
  EXPECT_NEAR(*row.out_of_place->algbw_bytes_per_s, 1024 / row.out_of_place->mean_ns * 1e9, 1);
  EXPECT_FALSE(row.out_of_place->busbw_bytes_per_s) << "one rank";
  EXPECT_FALSE(results->rows[2].out_of_place) << "broadcast has one buffer here";
  EXPECT_EQ(results->ranks.size(), 1u);
}

TEST(MeasureTest, WrongElementsAreCountedByRank) {
  FakeBackend backend;
  backend.wrong = Operation::kReduceScatter;
  const auto results = Measure(&backend, PlanOf({Operation::kAllReduce, Operation::kReduceScatter}, {64}), nullptr);
  ASSERT_TRUE(results);
  EXPECT_EQ(results->rows[0].out_of_place->wrong_count, 0u);
  EXPECT_EQ(results->rows[1].out_of_place->wrong_count, 1u);
  EXPECT_THAT(results->rows[1].in_place->wrong_ranks, ElementsAre(0));
}

TEST(MeasureTest, WhatCannotBeMeasuredSaysWhy) {
  FakeBackend backend;
  backend.memory_bytes = 100;
  const auto results = Measure(&backend, PlanOf({Operation::kAllReduce}, {64, 1024, 1 << 20}), nullptr);
  ASSERT_TRUE(results);
  EXPECT_EQ(results->rows[0].skipped, "");
  EXPECT_THAT(results->rows[1].skipped, testing::HasSubstr("memory"));
  EXPECT_THAT(results->rows[2].skipped, testing::HasSubstr("1000 elements"));
  EXPECT_EQ(backend.held, 0);
}

TEST(MeasureTest, ARankWithoutMemoryForPairsSaysSoAndTheOthersDoNotWaitForIt) {
  Shared shared;
  const auto run = [&](size_t process, size_t memory_bytes) -> std::optional<Error> {
    FakeBackend backend(std::make_unique<ThreadCommunicator>(&shared, process));
    backend.memory_bytes = memory_bytes;
    Plan plan = PlanOf({Operation::kAllReduce}, {64});
    plan.check = false;
    plan.pairs = true;
    const auto results = Measure(&backend, plan, nullptr);
    return results ? std::nullopt : std::optional(results.error());
  };
  auto first = std::async(std::launch::async, run, 0, SIZE_MAX);
  const auto poor = run(1, 1000);
  const auto rich = first.get();
  ASSERT_TRUE(poor && rich);
  EXPECT_EQ(poor->rank, 1);
  EXPECT_EQ(poor->message, "full");
  EXPECT_EQ(rich->code, ErrorCode::kLimitExceeded);
}

TEST(MeasureTest, ARootOutsideIsRefused) {
  FakeBackend backend;
  Plan plan = PlanOf({Operation::kReduce}, {64});
  plan.root = 1;
  EXPECT_FALSE(Measure(&backend, plan, nullptr));
}

TEST(MeasureTest, UncheckedIsNotZeroWrong) {
  FakeBackend backend;
  Plan plan = PlanOf({Operation::kAllReduce}, {64});
  plan.check = false;
  plan.in_place = false;
  const auto results = Measure(&backend, plan, nullptr);
  ASSERT_TRUE(results);
  EXPECT_FALSE(results->rows[0].out_of_place->wrong_count);
  EXPECT_FALSE(results->rows[0].in_place);
}

Pair PairOf(int a, int b, bool same_host, double rate, double back) {
  Pair pair;
  pair.a = a;
  pair.b = b;
  pair.same_host = same_host;
  pair.bytes_per_s = rate;
  pair.back_bytes_per_s = back;
  return pair;
}

TEST(MeasureTest, ALinkIsSlowAmongItsLike) {
  std::vector<Pair> pairs = {PairOf(0, 1, true, 100, 100), PairOf(0, 2, false, 10, 10), PairOf(0, 3, false, 10, 4),
                             PairOf(1, 2, false, 11, 9),   PairOf(1, 3, false, 10, 6),  PairOf(2, 3, true, 20, 20)};
  MarkSlowPairs(&pairs);
  std::vector<int> slow;
  for (const Pair& pair : pairs) {
    if (pair.is_slow) slow.push_back(pair.a * 10 + pair.b);
  }
  EXPECT_THAT(slow, ElementsAre(3)) << "in one direction; of two links within hosts nobody knows the usual";
}

}  // namespace
}  // namespace lockstep::collective_bench
