#include "ingest/flight_recorder/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/flight_recorder/dump_for_test.h"
#include "ingest/flight_recorder/record_for_test.h"

namespace lockstep::ingest {
namespace {

using evidence::EntryState;
using evidence::FlightEntry;
using evidence::FlightGroup;
using evidence::FlightRecord;
using evidence::kNotRecorded;
using evidence::Tristate;
using test::Dump;
using test::DumpOperation;
using test::PickleWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FlightRecord Read(const std::string& bytes) {
  auto record = ReadFlightRecord(bytes);
  EXPECT_TRUE(record.has_value()) << record.error().ToString();
  return record ? std::move(*record) : FlightRecord{};
}

// A dump with a bit of everything.
Dump SmallDump() {
  Dump dump;
  dump.groups = {{"0", "default_pg", "[0, 1, 2]"}, {"7", "DATA", "[1, 5]"}, {"9", "IDLE", "[]"}};
  dump.progress = {{0, {3, -1, 2}}, {4, {1, 1, 1}}, {6, {2, -1, -1}}};
  dump.frames = {
      {"all_reduce", "/opt/torch/c10d.py", 3906}, {"step", "/job/train.py", 58}, {"<module>", "/job/train.py", 91}};
  for (int64_t i = 0; i < 4; ++i) {
    DumpOperation operation;
    operation.frames = {0, 1, 2};
    operation.record_id = 70000 + i;
    operation.collective_seq_id = operation.op_id = 1 + i;
    dump.operations.push_back(operation);
  }
  dump.operations[1].frames = {0, 2};
  dump.operations[1].duration_ms = 1.5;
  dump.operations[1].state = "completed";
  dump.operations[1].retired = true;
  dump.operations[1].started_ns = 1795230700358370300;
  dump.operations[1].completed_ns = 1795230700359870300;
  dump.operations[2].pg_id = 4;
  dump.operations[2].group = {"7", "DATA"};
  dump.operations[2].name = "nccl:send 0->1";
  dump.operations[2].is_p2p = true;
  dump.operations[2].p2p_seq_id = 12;
  dump.operations[2].state = "started";
  dump.operations[3].input_sizes = {};
  dump.operations[3].output_sizes = {{}, {3, 1LL << 40}, {300, 70000}};
  dump.operations[3].input_dtypes = {};
  dump.operations[3].output_dtypes = {"Float", "Half", "Half"};
  return dump;
}

TEST(FlightRecorderTest, PickleSaysWhatWasWritten) {
  const FlightRecord record = Read(PickleOf(SmallDump()));
  EXPECT_EQ(record.version, "2.10");
  EXPECT_FALSE(record.truncated);
  EXPECT_THAT(record.notes, IsEmpty());
  ASSERT_EQ(record.entries.size(), 4u);
  EXPECT_EQ(
      test::TextOf(record, record.entries[1]),
      "70001 in 0 0 default_pg: nccl:all_reduce 2 0 2, created 1795230700358370288 started 1795230700358370300 "
      "completed 1795230700359870300 took 1500000 of 600000000000, [1024,] Float -> [1024,] Float, thread python3 "
      "140278848537088, state 3 retired 1 p2p false");
  EXPECT_EQ(
      test::TextOf(record, record.entries[2]),
      "70002 in 4 7 DATA: nccl:send 0->1 3 12 3, created 1795230700358370288 started unknown completed unknown took "
      "unknown of 600000000000, [1024,] Float -> [1024,] Float, thread python3 140278848537088, state 2 retired 0 "
      "p2p true");
  EXPECT_EQ(test::TextOf(record.size_lists[record.entries[3].output_sizes]), "[][3,1099511627776,][300,70000,]");
  EXPECT_EQ(record.texts[record.entries[3].output_dtypes], "Float,Half,Half");
  EXPECT_EQ(test::StackOf(record, record.entries[0]),
            "all_reduce /opt/torch/c10d.py:3906;step /job/train.py:58;<module> /job/train.py:91;");
  EXPECT_EQ(record.entries[0].stack, record.entries[2].stack);
  EXPECT_NE(record.entries[0].stack, record.entries[1].stack);
}

TEST(FlightRecorderTest, GroupsAreJoinedByNameAndByLocalId) {
  const FlightRecord record = Read(PickleOf(SmallDump()));
  std::vector<std::string> groups;
  for (const FlightGroup& group : record.groups) groups.push_back(test::TextOf(group));
  EXPECT_THAT(groups, ElementsAre("group 0 name=0 description=default_pg ranks=0,1,2, 3 -1 2",
                                  "group 4 name=7 description=DATA ranks=1,5, 1 1 1",
                                  "group 6 name= description= ranks= 2 -1 -1",
                                  "group unknown name=9 description=IDLE ranks= unknown unknown unknown"));
}

TEST(FlightRecorderTest, JsonSaysTheSameAsPickle) {
  const Dump dump = SmallDump();
  const FlightRecord pickle = Read(PickleOf(dump)), json = Read(JsonOf(dump));
  EXPECT_EQ(test::TextOf(pickle), test::TextOf(json));
  EXPECT_THAT(json.notes, IsEmpty());
  EXPECT_EQ(json.stacks.size(), 1u);
}

TEST(FlightRecorderTest, UnknownTimesAreUnknownInBothFormats) {
  Dump dump;
  dump.operations.emplace_back().time_created_ns = 0;
  dump.operations.back().thread_id = "0";
  for (const std::string& bytes : {PickleOf(dump), JsonOf(dump)}) {
    const FlightRecord record = Read(bytes);
    ASSERT_EQ(record.entries.size(), 1u);
    const FlightEntry& entry = record.entries[0];
    EXPECT_EQ(entry.created_unix_ns, kNotRecorded);
    EXPECT_EQ(entry.started_unix_ns, kNotRecorded);
    EXPECT_EQ(entry.completed_unix_ns, kNotRecorded);
    EXPECT_EQ(entry.duration_ns, kNotRecorded);
    EXPECT_EQ(entry.thread_id, kNotRecorded);
  }
}

// All but what had ended: the two formats were written one after the other.
std::string StartedOf(FlightRecord record) {
  for (FlightGroup& group : record.groups) group.last_completed = kNotRecorded;
  for (FlightEntry& entry : record.entries) entry.retired = Tristate::kUnknown;
  return test::TextOf(record);
}

TEST(FlightRecorderTest, SharedDumpsAreReadWhole) {
  const auto dumps = test::SharedDumps();
  if (dumps.empty()) GTEST_SKIP() << "the shared data are absent";
  size_t pairs = 0;
  for (const auto& path : dumps) {
    SCOPED_TRACE(path.string());
    const std::string bytes = test::Bytes(path);
    EXPECT_EQ(SniffFlightRecord(std::string_view(bytes).substr(0, 4096)),
              path.extension() == ".json" ? FlightFormat::kJson : FlightFormat::kPickle);
    const FlightRecord record = Read(bytes);
    EXPECT_FALSE(record.truncated);
    EXPECT_THAT(record.notes, IsEmpty());
    EXPECT_FALSE(record.groups.empty());
    EXPECT_TRUE(RankOfDumpName(path.filename().string()).has_value());
    const std::string json = test::Bytes(path.string() + ".json");
    if (json.empty()) continue;
    ++pairs;
    EXPECT_EQ(StartedOf(Read(json)), StartedOf(record));
  }
  EXPECT_GT(pairs, 10u);
}

TEST(FlightRecorderTest, BareListOfOldVersionsHasTimesInMicroseconds) {
  PickleWriter out;
  out.List().Dict().Text("seq_id").Int(4).Text("pg_id").Int(0).Text("profiling_name").Text("nccl:all_reduce");
  out.Text("time_created_us").Int(1700000000000001).Text("state").Text("started").Text("retired").Bool(false);
  out.Text("input_sizes").List().List().Int(3).EndList().EndList();
  const FlightRecord record = Read(out.EndDict().EndList().Take());
  EXPECT_EQ(record.version, "");
  ASSERT_EQ(record.entries.size(), 1u);
  const FlightEntry& entry = record.entries[0];
  EXPECT_EQ(entry.collective_sequence, 4);
  EXPECT_EQ(entry.created_unix_ns, 1700000000000001000);
  EXPECT_EQ(entry.state, EntryState::kStarted);
  EXPECT_EQ(entry.retired, Tristate::kNo);
  EXPECT_EQ(entry.record_id, kNotRecorded);
  EXPECT_EQ(record.groups[entry.group].local_id, 0);
}

TEST(FlightRecorderTest, LibraryVersionHasTwoNames) {
  for (const char* key : {"nccl_version", "comm_lib_version"}) {
    PickleWriter out;
    EXPECT_EQ((&static_cast<const FlightRecord&>(Read(out.Dict().Text(key).Text("2.27.3").EndDict().Take())))
                  ->library_version,
              "2.27.3");
  }
}

TEST(FlightRecorderTest, AnotherMajorVersionIsReadWithANote) {
  Dump dump = SmallDump();
  dump.version = "3.0";
  const FlightRecord record = Read(PickleOf(dump));
  EXPECT_EQ(record.entries.size(), 4u);
  EXPECT_THAT(record.notes, ElementsAre("version \"3.0\" is not known; read as 2.x"));
  for (const char* known : {"1.0", "2.2", "2.4", "2.7", "2.9", "2.11", "2.99"}) {
    dump.version = known;
    EXPECT_THAT(Read(PickleOf(dump)).notes, IsEmpty()) << known;
  }
}

TEST(FlightRecorderTest, UnknownKeysAreNotedOnceEach) {
  PickleWriter out;
  out.Dict().Text("version").Text("2.12").Text("weather").Text("fine").Text("entries").List();
  for (int64_t i = 0; i < 3; ++i) {
    out.Dict().Text("record_id").Int(i).Text("output_split_sizes").List().Int(1).EndList().EndDict();
  }
  const FlightRecord record = Read(out.EndList().EndDict().Take());
  EXPECT_EQ(record.entries.size(), 3u);
  EXPECT_THAT(record.notes, ElementsAre("an entry has the unknown key \"output_split_sizes\", 3 times",
                                        "the dump has the unknown key \"weather\""));
}

// Ranks and the numbers of their entries.
std::vector<std::pair<int32_t, size_t>> RanksIn(const std::string& bytes) {
  auto records = ReadFlightRecords(bytes);
  EXPECT_TRUE(records.has_value()) << records.error().ToString();
  std::vector<std::pair<int32_t, size_t>> found;
  for (const RankedRecord& of_rank : records ? *records : std::vector<RankedRecord>()) {
    found.emplace_back(of_rank.rank.value_or(-1), of_rank.record.entries.size());
  }
  return found;
}

TEST(FlightRecorderTest, AFileMayHoldTheDumpsOfSeveralRanks) {
  const Dump four = SmallDump();
  Dump two = SmallDump();
  two.operations.resize(2);
  const std::string a = JsonOf(four), b = JsonOf(two);
  const auto both = ElementsAre(std::pair(3, 4u), std::pair(0, 2u));
  EXPECT_THAT(RanksIn("{\"3\":" + a + ",\"0\":" + b + "}"), both);
  EXPECT_THAT(RanksIn("{\"rank_3\":" + a + ",\"rank_0\":" + b + "}"), both);
  EXPECT_THAT(RanksIn("{\"job\":\"x\",\"version\":1,\"dumps\":{\"3\":" + a + ",\"0\":" + b + "}}"), both);
  EXPECT_THAT(RanksIn("[{\"rank\":3," + a.substr(1) + ",{\"rank\":0," + b.substr(1) + "]"), both);
  EXPECT_THAT(RanksIn("{\"ranks\":[" + a + "," + b + "]}"), ElementsAre(std::pair(0, 4u), std::pair(1, 2u)));
  EXPECT_THAT(RanksIn("{\"rank\":7," + a.substr(1)), ElementsAre(std::pair(7, 4u)));
  EXPECT_THAT(RanksIn(a), ElementsAre(std::pair(-1, 4u)));
  // pickle.dumps({3: {"entries": [{"record_id": 5}]}, 0: {"entries": []}}, 4)
  EXPECT_THAT(RanksIn(std::string("\x80\x04\x95\x31\0\0\0\0\0\0\0}\x94(K\x03}\x94\x8c\x07"
                                  "entries\x94]\x94}\x94\x8c\x09record_id\x94K\x05sasK\0}\x94h\x02]\x94su.",
                                  60)),
              ElementsAre(std::pair(3, 1u), std::pair(0, 0u)));
}

TEST(FlightRecorderTest, EachOfSeveralRecordsHasWhatIsItsOwn) {
  Dump other = SmallDump();
  for (DumpOperation& operation : other.operations) operation.group = {"9", "OTHER"}, operation.pg_id = 2;
  other.operations[0].input_sizes = {{5}};
  auto records = ReadFlightRecords("{\"0\":" + JsonOf(SmallDump()) + ",\"1\":" + JsonOf(other) + "}");
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ(test::TextOf((*records)[0].record), test::TextOf(Read(JsonOf(SmallDump()))));
  EXPECT_EQ(test::TextOf((*records)[1].record), test::TextOf(Read(JsonOf(other))));
  EXPECT_EQ((*records)[1].record.size_lists.size(), Read(JsonOf(other)).size_lists.size());
}

TEST(FlightRecorderTest, OfSeveralDumpsTheOneThatWasCutSaysSo) {
  const std::string all = "{\"0\":" + JsonOf(SmallDump()) + ",\"1\":" + JsonOf(SmallDump()) + "}";
  auto records = ReadFlightRecords(std::string_view(all).substr(0, all.size() * 3 / 4));
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2u);
  EXPECT_FALSE((*records)[0].record.truncated);
  EXPECT_TRUE((*records)[1].record.truncated);
  EXPECT_EQ((*records)[0].record.entries.size(), 4u);
}

TEST(FlightRecorderTest, SniffKnowsDumpsFromOtherThings) {
  EXPECT_EQ(SniffFlightRecord(PickleOf(SmallDump()).substr(0, 10)), FlightFormat::kPickle);
  EXPECT_EQ(SniffFlightRecord("\x80\x02](}("), FlightFormat::kPickle);
  EXPECT_EQ(SniffFlightRecord(JsonOf(SmallDump()).substr(0, 200)), FlightFormat::kJson);
  EXPECT_EQ(SniffFlightRecord("\xEF\xBB\xBF {\n \"pg_config\": {}}"), FlightFormat::kJson);
  EXPECT_EQ(SniffFlightRecord(""), FlightFormat::kNone);
  EXPECT_EQ(SniffFlightRecord("\x80"), FlightFormat::kNone);
  EXPECT_EQ(SniffFlightRecord("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46"), FlightFormat::kNone);  // A checkpoint of old.
  EXPECT_EQ(SniffFlightRecord("{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"}]}"), FlightFormat::kNone);
  EXPECT_EQ(SniffFlightRecord("{\"nccl_version\": \"2.28.3\", \"communicators\": []}"), FlightFormat::kNone);
  EXPECT_EQ(SniffFlightRecord("n001:17:17 [0] NCCL INFO Bootstrap"), FlightFormat::kNone);
}

TEST(FlightRecorderTest, WhatIsNoDumpIsSaidToBeNone) {
  const auto message = [](std::string_view bytes) {
    const auto record = ReadFlightRecord(bytes);
    EXPECT_FALSE(record.has_value());
    return record ? std::string() : std::string(ErrorCodeName(record.error().code)) + ": " + record.error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("corrupt_data: is empty"));
  EXPECT_THAT(message("hello"), HasSubstr("neither a pickle nor JSON"));
  EXPECT_THAT(message("{}"), HasSubstr("holds none of the keys"));
  EXPECT_THAT(message("[1, 2]"), HasSubstr("holds none of the keys"));
  EXPECT_THAT(message("\x80\x02K\x01."), HasSubstr("holds none of the keys"));
  EXPECT_THAT(message("\x80\x02"), HasSubstr("ends before any content"));
  EXPECT_THAT(message("{\"a\" 1}"), HasSubstr("is not JSON"));
}

TEST(DumpNameTest, TheRankIsTheNumberAtTheEnd) {
  for (const auto& [name, rank] : std::vector<std::pair<const char*, int32_t>>{{"nccl_trace_rank_12", 12},
                                                                               {"/tmp/job3/trace_3.json.gz", 3},
                                                                               {"_dump_7", 7},
                                                                               {"rank_12.pickle", 12},
                                                                               {"comm_lib_trace_rank_1023.zst", 1023},
                                                                               {"rank12_node7", 12},
                                                                               {"dump-Rank=5.host3.json", 5},
                                                                               {"0", 0},
                                                                               {"gpu-rank0-node0_trace_5", 5},
                                                                               {"node_rank1_trace_9", 9},
                                                                               {"rank3_local_rank1", 3},
                                                                               {"nccl_trace_rank_007", 7}}) {
    EXPECT_EQ(RankOfDumpName(name), rank) << name;
  }
  for (const char* name : {"flight_recorder.pickle", "trace", "", "dump_1758610505", "rank_", "rank_99999999999",
                           "local_rank_3", "trace-node2"}) {
    EXPECT_EQ(RankOfDumpName(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace lockstep::ingest
