#include "programs/python/loaded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/checkout.h"
#include "programs/python/table_specs.h"

namespace lockstep::python {
namespace {

using ::testing::HasSubstr;

// Assigned: GCC 12 warns of a designated initialiser's other members.
LoadOptions OnlyPass(const std::string& pass) {
  LoadOptions options;
  options.passes = {pass};
  return options;
}

std::shared_ptr<LoadedRun> Recorded(LoadOptions options = {}) {
  auto run = LoadedRun::Load({(Checkout() / "examples/recorded").string()}, std::move(options));
  EXPECT_TRUE(run) << run.error().ToString();
  return *run;
}

TEST(LoadedRunTest, EveryTableIsMadeWithTheColumnsThatAreDeclared) {
  const auto run = Recorded();
  for (const TableSpec& spec : TableSpecs()) {
    const auto table = run->GetTable(spec.name);
    ASSERT_TRUE(table) << table.error().ToString();
    ASSERT_EQ((*table)->columns.size(), spec.columns.size()) << spec.name;
    for (size_t i = 0; i < spec.columns.size(); ++i) {
      EXPECT_EQ((*table)->columns[i].name, spec.columns[i].name);
      EXPECT_EQ((*table)->columns[i].values->length, (*table)->row_count) << spec.name << "." << spec.columns[i].name;
    }
  }
}

TEST(LoadedRunTest, ATableIsMadeOnce) {
  const auto run = Recorded();
  EXPECT_EQ(*run->GetTable("steps"), *run->GetTable("steps"));
}

TEST(LoadedRunTest, UnknownTablesPassesRanksAndTracksAreErrors) {
  const auto run = Recorded();
  EXPECT_EQ(run->GetTable("step").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run->TrackEvents(0, 0, 1000).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run->JoinedEvents(0, 0, {1000}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run->MemoryEvents(0, 7).error().code, ErrorCode::kInvalidArgument);
  const auto rank = run->TrackEvents(4, 0, 0);
  EXPECT_THAT(rank.error().ToString(), HasSubstr("0, 1, 2, 3"));
  EXPECT_EQ(rank.error().rank, 4);
  EXPECT_EQ(LoadedRun::Load({"nowhere"}, OnlyPass("kernel")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(LoadedRun::Load({"nowhere"}, {}).error().code, ErrorCode::kNotFound);
}

TEST(LoadedRunTest, TablesOfPassesThatWereLeftOutAreRefused) {
  const auto run = Recorded(OnlyPass("kernels"));
  EXPECT_TRUE(run->GetTable("kernels"));
  EXPECT_TRUE(run->GetTable("ledger"));
  EXPECT_EQ(run->GetTable("queues").error().code, ErrorCode::kFailedPrecondition);
}

TEST(LoadedRunTest, EventsAreNotCopiedAndOutliveTheRun) {
  auto run = Recorded();
  const model::Track& track = run->traces()[1].tracks[0];
  const auto events = *run->TrackEvents(1, 0, 0);
  EXPECT_EQ(events->Find("start_ns")->values->data, track.events.start_ns.data());
  EXPECT_EQ(events->Find("name")->values->data, static_cast<const void*>(track.events.name.data()));
  const std::string name(run->NameText(track.events.name[0]));
  const std::weak_ptr<LoadedRun> watch = run;
  run.reset();
  EXPECT_FALSE(watch.expired());
  const Array& names = *events->Find("name")->values;
  EXPECT_EQ(names.dictionary->Text(static_cast<size_t>(names.Value<int32_t>(0))), name);
}

TEST(LoadedRunTest, JoinedEventsHaveTheSameColumnsForEveryTrack) {
  const auto run = Recorded();
  for (const std::vector<size_t>& tracks : {std::vector<size_t>{}, {0}, {0, 1, 2, 3}}) {
    const auto chunks = *run->JoinedEvents(0, 0, tracks);
    ASSERT_FALSE(chunks.empty());
    for (const auto& chunk : chunks) {
      ASSERT_EQ(chunk->columns.size(), 6u);
      for (const Field& field : chunk->columns) EXPECT_EQ(field.values->length, chunk->row_count) << field.name;
    }
  }
}

TEST(LoadedRunTest, ThreadsThatAskAtOnceGetOneAnswer) {
  const auto run = Recorded();
  std::atomic<const Table*> first = nullptr;
  std::atomic<int> different = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Table* table = run->GetTable("stragglers")->get();
        const Table* expected = nullptr;
        if (!first.compare_exchange_strong(expected, table) && expected != table) ++different;
        if (run->Partial()) ++different;
      });
    }
  }
  EXPECT_EQ(different, 0);
}

TEST(LoadedRunTest, ACancelledLoadSaysSo) {
  const std::atomic<bool> cancelled = true;
  LoadOptions options;
  options.ingest.cancelled = &cancelled;
  const auto run = LoadedRun::Load({(Checkout() / "examples/recorded").string()}, std::move(options));
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace lockstep::python
