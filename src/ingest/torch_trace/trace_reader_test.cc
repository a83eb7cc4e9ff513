#include "ingest/torch_trace/trace_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/checkout.h"

namespace lockstep::ingest {
namespace {

using model::Category;
using model::Lane;
using model::Track;

Result<TraceContent> Read(const std::string& text, TraceReaderOptions options = {}) {
  auto source = OpenMemory(text, {});
  if (!source) return source.error();
  return ReadTrace(**source, "test.json", options);
}

std::string Wrap(const std::string& events, const std::string& head = "") {
  return "{\n  \"schemaVersion\": 1,\n" + head + "  \"traceEvents\": [\n" + events + "\n  ]\n}";
}

const Track* FindTrack(const TraceContent& content, Lane lane) {
  for (const Track& track : content.trace.tracks) {
    if (track.lane == lane) return &track;
  }
  return nullptr;
}

uint64_t LedgerCount(const TraceContent& content, const std::string& code) {
  for (const model::LedgerEntry& entry : content.ledger.entries()) {
    if (entry.code == code) return entry.count;
  }
  return 0;
}

/// Everything that a reader found, as text: equal dumps are equal contents.
std::string Dump(const TraceContent& content) {
  std::string out = std::to_string(content.trace.event_count) + "\n";
  const auto name = [&](NameId id) { return std::string(content.names[id]); };
  for (const Track& track : content.trace.tracks) {
    out += "track " + std::to_string(static_cast<int>(track.lane)) + " " + std::to_string(track.process_id) + " " +
           std::to_string(track.thread_id) + " " + name(track.thread_name) + "\n";
    for (size_t i = 0; i < track.events.size(); ++i) {
      out += std::to_string(track.events.start_ns[i]) + " " + std::to_string(track.events.duration_ns[i]) + " " +
             name(track.events.name[i]) + " " + CategoryName(track.events.category[i]) + " " +
             (track.events.correlation.empty() ? "" : std::to_string(track.events.correlation[i])) + "\n";
    }
  }
  for (size_t i = 0; i < content.trace.memory.size(); ++i) {
    out += "memory " + std::to_string(content.trace.memory.time_ns[i]) + " " +
           std::to_string(content.trace.memory.change_bytes[i]) + " " +
           std::to_string(content.trace.memory.allocated_bytes[i]) + " " +
           std::to_string(content.trace.memory.reserved_bytes[i]) + " " +
           std::to_string(content.trace.memory.device[i]) + "\n";
  }
  for (const model::CollectiveRecord& record : content.trace.collectives) {
    out += "collective " + std::to_string(record.start_ns) + " " + name(record.collective_name) + " " +
           name(record.group_ranks) + " " + std::to_string(record.in_elements.value_or(-1)) + "\n";
  }
  return out;
}

/// Events in Kineto's own layout, repeated so that shapes are learned, with values that change from one to the next.
std::string KinetoEvents(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(1000 + i);
    out += std::string(i == 0 ? "" : ",\n") + "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm" +
           std::to_string(i % 3) + "\", \"pid\": 77, \"tid\": " + std::to_string(77 + i % 2) + ",\n    \"ts\": 44586" +
           n + ".4" + std::to_string(i % 10) + "2, \"dur\": 1" + std::to_string(i) +
           ".5,\n    \"args\": {\n      \"External id\": " + n +
           ",\"Input Dims\": [[2, 3], []], \"Concrete Inputs\": [\"[]\", \"a\\\"}{\"]\n    }\n  },\n" +
           "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 77, \"tid\": "
           "77,\n    \"ts\": 44586" +
           n + ".5, \"dur\": 3,\n    \"args\": {\n      \"External id\": " + n +
           ",\n      \"cbid\": 211, \"correlation\": " + n + "\n    }\n  },\n" +
           "  {\n    \"ph\": \"s\", \"id\": " + n + ", \"pid\": 77, \"tid\": 77, \"ts\": 44586" + n +
           ".5,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n" +
           "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm<{lambda()#1}>(float)\", \"pid\": 0, \"tid\": "
           "7,\n    \"ts\": 44586" +
           n +
           ".75, \"dur\": 2.125,\n    \"args\": {\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      "
           "\"stream\": 7, \"correlation\": " +
           n + ",\n      \"grid\": [8, 1, 1]\n    }\n  },\n" +
           "  {\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": 77, "
           "\"tid\": 77, \"ts\": 44586" +
           n + ".9,\n    \"args\": {\n      \"Total Reserved\": 2097152, \"Total Allocated\": " + n +
           ", \"Bytes\": " + (i % 2 == 0 ? "512" : "-512") +
           ", \"Addr\": 1, \"Device Id\": 0, \"Device Type\": 1\n    }\n  }";
  }
  return out;
}

TEST(TraceReaderTest, ReadsEveryKindOfEventToItsLane) {
  const auto content = Read(Wrap(KinetoEvents(5), "  \"baseTimeNanoseconds\": 1000000000,\n"));
  ASSERT_TRUE(content) << content.error().ToString();
  EXPECT_EQ(content->trace.event_count, 25U);
  EXPECT_EQ(content->trace.complete_event_count, 15U);
  EXPECT_TRUE(content->trace.base_time_known);
  const Track* device = FindTrack(*content, Lane::kDevice);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->device().value, 0);
  EXPECT_EQ(device->stream().value, 7);
  ASSERT_EQ(device->events.size(), 5U);
  EXPECT_EQ(device->events.start_ns[0], 1'000'000'000 + 445'861'000'750);
  EXPECT_EQ(device->events.duration_ns[0], 2'125);
  EXPECT_EQ(device->events.correlation[4], 1004U);
  EXPECT_EQ(content->names[device->events.name[0]], "gemm<{lambda()#1}>(float)");
  ASSERT_EQ(content->trace.memory.size(), 5U);
  EXPECT_EQ(content->trace.memory.change_bytes[1], -512);
  EXPECT_EQ(content->trace.memory.device[0], 0);
  EXPECT_TRUE(content->ledger.entries().empty());
}

TEST(TraceReaderTest, LearnedTemplatesAndWindowSizesChangeNothing) {
  const std::string text = Wrap(KinetoEvents(400), "  \"distributedInfo\": {\"rank\": 3, \"world_size\": 8},\n");
  TraceReaderOptions general;
  general.learned_templates = false;
  const auto expected = Read(text, general);
  ASSERT_TRUE(expected);
  const std::string dump = Dump(*expected);
  for (const size_t window : {4096, 5000, 8191, 65536, 1 << 20}) {
    TraceReaderOptions options;
    options.window_bytes = window;
    const auto content = Read(text, options);
    ASSERT_TRUE(content);
    EXPECT_EQ(Dump(*content), dump) << window;
    EXPECT_EQ(content->trace.rank.value, 3);
    EXPECT_TRUE(content->ledger.entries().empty());
  }
}

TEST(TraceReaderTest, ATraceCutAtAnyByteIsReadToItsLastWholeEvent) {
  const std::string text = Wrap(KinetoEvents(6));
  const auto whole = Read(text);
  ASSERT_TRUE(whole);
  for (size_t cut = 0; cut < text.size() - 1; ++cut) {
    const auto content = Read(text.substr(0, cut));
    if (!content) {
      EXPECT_LT(cut, text.find("traceEvents") + 20) << cut;
      EXPECT_EQ(content.error().code, ErrorCode::kCorruptData);
      continue;
    }
    EXPECT_EQ(LedgerCount(*content, "truncated_file"), 1U) << cut;
    EXPECT_EQ(LedgerCount(*content, "bad_event"), 0U) << cut;
    EXPECT_LE(content->trace.event_count, whole->trace.event_count);
  }
}

TEST(TraceReaderTest, MetadataMayFollowTheEvents) {
  const auto content =
      Read("{\"traceEvents\": [" + KinetoEvents(1) +
           "], \"distributedInfo\": {\"rank\": \"5\", \"world_size\": 16, \"backend\": \"nccl\", \"pg_config\": "
           "[{\"pg_name\": \"0\", "
           "\"pg_desc\": \"default_pg\", \"pg_size\": 2, \"ranks\": \"[0, 1]\"}]}, \"baseTimeNanoseconds\": 7}");
  ASSERT_TRUE(content);
  EXPECT_TRUE(content->has_rank);
  EXPECT_EQ(content->trace.rank.value, 5);
  EXPECT_EQ(content->trace.world_size, 16);
  ASSERT_EQ(content->trace.groups.size(), 1U);
  EXPECT_EQ(content->trace.groups[0].ranks, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(content->trace.first_ns, 445'861'000'402 + 7);
}

TEST(TraceReaderTest, ABareListOfEventsIsATrace) {
  const auto content = Read("[" + KinetoEvents(2) + "]");
  ASSERT_TRUE(content);
  EXPECT_EQ(content->trace.event_count, 10U);
}

TEST(TraceReaderTest, WhatIsNoTraceIsRefusedByName) {
  for (const char* text :
       {"", " ", "hello", "[1, 2]", "[]", "{}", "{\"schema\": \"1.0.1\", \"nodes\": []}", "[{\"a\": 1}]"}) {
    const auto content = Read(text);
    ASSERT_FALSE(content) << text;
    EXPECT_EQ(content.error().code, ErrorCode::kCorruptData);
    EXPECT_EQ(content.error().file, "test.json");
  }
}

TEST(TraceReaderTest, DamagedEventsAreSkippedAndCounted) {
  const std::string good =
      "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 5, \"dur\": 1}";
  const auto content = Read(Wrap(good + ", {\"ph\": \"X\" \"name\" 5}, " + good + ", {{{, " + good));
  ASSERT_TRUE(content);
  EXPECT_EQ(content->trace.complete_event_count, 3U);
  EXPECT_GE(LedgerCount(*content, "bad_event"), 1U);
}

TEST(TraceReaderTest, DamagedValuesAreRepairedOrSkippedAndCounted) {
  const auto event = [](const std::string& name, const std::string& ts, const std::string& dur) {
    return "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": " + name + ", \"pid\": 1, \"tid\": 1, \"ts\": " + ts +
           ", \"dur\": " + dur + "}";
  };
  const auto content = Read(Wrap(event("\"a\\qb\"", "1", "1") + "," + event("\"a\tb\"", "2", "1") + "," +
                                 event("\"a\xFF"
                                       "b\"",
                                       "3", "1") +
                                 "," + event("\"say \"hi\" now\"", "4", "1") + "," + event("\"nan\"", "NaN", "1") +
                                 "," + event("\"big\"", "99999999999999999999999", "1") + "," + event("5", "5", "1") +
                                 "," + event("\"neg\"", "6", "-4") + "," + event("\"list\"", "[]", "1") +
                                 ",{\"ph\": \"X\", \"name\": \"no time\"}"));
  ASSERT_TRUE(content);
  for (const char* code : {"invalid_escape", "control_character", "invalid_utf8", "unescaped_quote",
                           "non_finite_number", "integer_overflow", "negative_duration", "missing_key"}) {
    EXPECT_GE(LedgerCount(*content, code), 1U) << code;
  }
  EXPECT_EQ(LedgerCount(*content, "wrong_type"), 2U);
  EXPECT_EQ(content->trace.event_count, 10U);
  const Track* track = FindTrack(*content, Lane::kOperators);
  ASSERT_NE(track, nullptr);
  ASSERT_EQ(track->events.size(), 5U);
  EXPECT_EQ(content->names[track->events.name[0]], "a\\qb");
  EXPECT_EQ(content->names[track->events.name[2]],
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(content->names[track->events.name[3]], "say \"hi\" now");
}

TEST(TraceReaderTest, IntegersBeyond64BitsInArgumentsAreHarmless) {
  const auto content = Read(
      "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", \"pid\": 0, \"tid\": "
      "1, \"ts\": 200, \"dur\": 100, "
      "\"args\": {\"Comms Id\": 10159970886766084423, \"Seq\": 99999999999999999999}}]}");
  ASSERT_TRUE(content);
  ASSERT_EQ(content->trace.collectives.size(), 1U);
  EXPECT_EQ(content->trace.collectives[0].communicator_id, 10'159'970'886'766'084'423U);
  EXPECT_FALSE(content->trace.collectives[0].sequence.has_value());
}

TEST(TraceReaderTest, OldCategoriesAndTextualThreadsAreUnderstood) {
  std::string events;
  for (int i = 0; i < 4; ++i) {
    events +=
        std::string(i == 0 ? "" : ",") +
        "{\"ph\": \"X\", \"cat\": \"Kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": \"stream 7\", \"ts\": " +
        std::to_string(10 + i) + ", \"dur\": 1, \"args\": {\"correlation\": 9}}" +
        ",{\"ph\": \"X\", \"cat\": \"Operator\", \"name\": \"o\", \"pid\": 3, \"tid\": \"25\", \"ts\": 1, \"dur\": 1}";
  }
  const auto content = Read(Wrap(events));
  ASSERT_TRUE(content);
  const Track* device = FindTrack(*content, Lane::kDevice);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->stream().value, 7);
  EXPECT_EQ(device->events.size(), 4U);
  const Track* operators = FindTrack(*content, Lane::kOperators);
  ASSERT_NE(operators, nullptr);
  EXPECT_EQ(operators->thread_id, 25);
}

TEST(TraceReaderTest, SynchronisationsKeepWhatTheyWaitFor) {
  const auto sync = [](const char* name, int start, const char* args) {
    return std::string(R"({"ph": "X", "cat": "cuda_sync", "name": ")") + name + R"(", "pid": 0, "tid": 7, "ts": )" +
           std::to_string(start) + R"(, "dur": 2, "args": {)" + args + "}}";
  };
  const auto content = Read(
      Wrap(sync("Stream Sync", 20, R"("stream": 7, "correlation": 15, "device": 0)") + ",\n" +
           sync("Context Sync", 30, R"("stream": -1, "correlation": 16, "device": 0)") + ",\n" +
           sync("Event Sync", 10,
                R"("wait_on_stream": 9, "wait_on_cuda_event_record_corr_id": 12, "stream": -1, "correlation": 14)")));
  ASSERT_TRUE(content.has_value());
  const auto& records = content->trace.synchronisations;
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].kind, model::SyncRecord::Kind::kEvent);
  EXPECT_EQ(records[0].start_ns, 10'000);
  EXPECT_EQ(records[0].duration_ns, 2'000);
  EXPECT_EQ(records[0].correlation, 14u);
  EXPECT_EQ(records[0].event_stream, 9);
  EXPECT_EQ(records[0].event_record_correlation, 12u);
  EXPECT_FALSE(records[0].stream.has_value());
  EXPECT_EQ(records[1].kind, model::SyncRecord::Kind::kStream);
  EXPECT_EQ(records[1].stream, 7);
  EXPECT_FALSE(records[1].event_stream.has_value());
  EXPECT_EQ(records[2].kind, model::SyncRecord::Kind::kContext);
  EXPECT_EQ(records[2].correlation, 16u);
}

TEST(TraceReaderTest, UnsortedEventsAreSortedByStartThenLongerFirst) {
  const auto event = [](int ts, int dur) {
    return "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"d" + std::to_string(dur) +
           "\", \"pid\": 1, \"tid\": 1, \"ts\": " + std::to_string(ts) + ", \"dur\": " + std::to_string(dur) + "}";
  };
  const auto content =
      Read(Wrap(event(5, 1) + "," + event(1, 2) + "," + event(1, 9) + "," + event(3, 1) + "," + event(0, 1)));
  ASSERT_TRUE(content);
  const Track* track = FindTrack(*content, Lane::kOperators);
  ASSERT_NE(track, nullptr);
  std::vector<int64_t> durations(track->events.duration_ns.begin(), track->events.duration_ns.end());
  EXPECT_EQ(durations, (std::vector<int64_t>{1000, 9000, 2000, 1000, 1000}));
  EXPECT_EQ(track->events.start_ns[4], 5000);
}

TEST(TraceReaderTest, AnEventOverTheLimitIsSkipped) {
  TraceReaderOptions options;
  options.window_bytes = 4096;
  options.max_event_bytes = 16384;
  const std::string huge(100'000, 'x');
  const std::string good =
      "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 5, \"dur\": 1}";
  const auto content =
      Read(Wrap(good + ", {\"ph\": \"X\", \"name\": \"" + huge + "\", \"ts\": 1, \"dur\": 1}, " + good), options);
  ASSERT_TRUE(content);
  EXPECT_EQ(content->trace.complete_event_count, 2U);
  EXPECT_EQ(LedgerCount(*content, "oversized_event"), 1U);
}

TEST(TraceReaderTest, RealTracesReadTheSameByBothPaths) {
  const std::filesystem::path root = SharedData();
  if (!std::filesystem::exists(root / "traces")) GTEST_SKIP() << "shared trace data is absent; set LOCKSTEP_DATA";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "traces")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".json.gz") || path.find("/expected/") != std::string::npos || entry.file_size() > 1'300'000)
      continue;
    TraceReaderOptions general;
    general.learned_templates = false;
    auto general_source = OpenFile(path, {});
    auto learned_source = OpenFile(path, {});
    ASSERT_TRUE(general_source && learned_source);
    const auto expected = ReadTrace(**general_source, path, general);
    const auto content = ReadTrace(**learned_source, path, {});
    ASSERT_EQ(expected.has_value(), content.has_value()) << path;
    if (expected) {
      EXPECT_TRUE(Dump(*expected) == Dump(*content)) << path;
    }
  }
}

/// Five launches and kernels a millisecond apart, and what is put behind them.
std::string WithStrangers(const std::string& strangers) {
  std::string events;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    events += R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":17641000000)" + n +
              R"(0000,"dur":6,"args":{"correlation":)" + n + R"(}},{"ph":"X","cat":"kernel","name":"k)" + n +
              R"(","pid":0,"tid":7,"ts":17641000000)" + n + R"(0100,"dur":500,"args":{"correlation":)" + n + "}},";
  }
  return Wrap(events + strangers);
}

constexpr const char* kLastNs = "1764100000040600000";

TEST(LostTimesTest, EventsFarFromAllOthersAreSetAsideAndCounted) {
  const std::string kernel = R"({"ph":"X","cat":"kernel","name":"lost","pid":0,"tid":7,"args":{},)";
  for (const char* time : {R"("ts":0,"dur":5})",                               // CUPTI's own sign of it.
                           R"("ts":1763400000000000,"dur":5})",                // A week before.
                           R"("ts":1795636000000000,"dur":5})",                // A year after.
                           R"("ts":1764100000000000,"dur":604800000000})"}) {  // It ends a week after.
    SCOPED_TRACE(time);
    const auto content = Read(WithStrangers(kernel + time));
    ASSERT_TRUE(content);
    EXPECT_EQ(LedgerCount(*content, "lost_times"), 1u);
    EXPECT_EQ(FindTrack(*content, Lane::kDevice)->events.size(), 5u);
    EXPECT_EQ(content->trace.complete_event_count, 10u);
    EXPECT_EQ(content->trace.first_ns, 1'764'100'000'000'000'000);
    EXPECT_EQ(std::to_string(content->trace.last_ns.value_or(0)), kLastNs);
  }
}

TEST(LostTimesTest, CollectivesAndMemoryGoWithTheirTimes) {
  const auto content = Read(WithStrangers(
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":20,"ts":0,"dur":5,)"
      R"("args":{"Collective name":"allreduce","Process Group Ranks":"[0, 1]","In msg nelems":4}},)"
      R"({"ph":"i","s":"t","name":"[memory]","pid":1,"tid":1,"ts":0,"args":{"Bytes":512,"Total Allocated":512,)"
      R"("Device Type":1,"Device Id":0}},)"
      R"({"ph":"i","s":"t","name":"[memory]","pid":1,"tid":1,"ts":1764100000000000,"args":{"Bytes":64,)"
      R"("Total Allocated":64,"Device Type":1,"Device Id":0}})"));
  ASSERT_TRUE(content);
  EXPECT_TRUE(content->trace.collectives.empty());
  ASSERT_EQ(content->trace.memory.size(), 1u);
  EXPECT_EQ(content->trace.memory.change_bytes[0], 64);
  EXPECT_EQ(LedgerCount(*content, "lost_times"), 1u);
}

TEST(LostTimesTest, HoursWithoutAGapAreARecording) {
  std::string events;
  for (int hour = 0; hour < 40; ++hour) {
    const std::string ts = std::to_string(1'764'100'000'000'000 + hour * 3'600'000'000LL * 5);
    events += (hour > 0 ? "," : "") + std::string(R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":)") + ts +
              R"(,"dur":6})";
  }
  const auto content = Read(Wrap(events));
  ASSERT_TRUE(content);
  EXPECT_EQ(LedgerCount(*content, "lost_times"), 0u);
  EXPECT_EQ(content->trace.complete_event_count, 40u);
}

TEST(LostTimesTest, HalvesThatLieApartAreLeftAsTheyAre) {
  const auto content =
      Read(Wrap(R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":0,"dur":6},)"
                R"({"ph":"X","cat":"cpu_op","name":"b","pid":1,"tid":1,"ts":1764100000000000,"dur":6})"));
  ASSERT_TRUE(content);
  EXPECT_EQ(content->trace.complete_event_count, 2u);
}

/// Launches of a gemm and of an all_reduce in turn; ROCm's profiler wrote 0 for all kernels of the second.
std::string RocmSteps(int count, int lost_gemms = 0) {
  std::string events;
  for (int i = 0; i < count; ++i) {
    const auto at = [&](int us) { return std::to_string(1'764'100'000'000'000 + i * 1000 + us); };
    const std::string gemm = std::to_string(100 + 2 * i), sum = std::to_string(101 + 2 * i);
    const auto launch = [&](int us, const std::string& correlation) {
      return R"({"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":9,"tid":9,"ts":)" + at(us) +
             R"(,"dur":3,"args":{"correlation":)" + correlation + "}},";
    };
    const auto kernel = [&](int us, const std::string& name, int stream, const std::string& correlation) {
      return R"({"ph":"X","cat":"kernel","name":")" + name + R"(","pid":0,"tid":)" + std::to_string(stream) +
             R"(,"ts":)" + at(us) + R"(,"dur":100,"args":{"correlation":)" + correlation + "}},";
    };
    events += launch(8, gemm) + kernel(20, "gemm", 7, i < lost_gemms ? "0" : gemm) +
              R"({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":9,"ts":)" + at(18) +
              R"(,"dur":6,"args":{"Collective name":"allreduce","In msg nelems":4}},)" + launch(20, sum) +
              kernel(300, "ncclDevKernel_Generic", 20, "0");
  }
  events.pop_back();
  return Wrap(events);
}

TEST(LostCorrelationsTest, KernelsWithoutOneAreJoinedByOrder) {
  const auto content = Read(RocmSteps(4, 2));
  ASSERT_TRUE(content);
  EXPECT_EQ(LedgerCount(*content, "guessed_correlations"), 6u);
  EXPECT_EQ(LedgerCount(*content, "lost_correlations"), 0u);
  for (const Track& track : content->trace.tracks) {
    if (track.lane != Lane::kDevice) continue;
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(track.events.correlation[i], (track.thread_id == 7 ? 100 : 101) + 2 * i);
    }
  }
}

TEST(LostCorrelationsTest, WhereTheirNumbersDifferNothingIsGuessed) {
  const auto content = Read(RocmSteps(4) + " ");
  ASSERT_TRUE(content);
  std::string text = RocmSteps(4);
  const size_t launch = text.find("hipLaunchKernel", text.find("record_param_comms"));
  text.replace(launch, 15, "hipStreamQuery_");
  const auto fewer = Read(text);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(LedgerCount(*content, "guessed_correlations"), 4u);
  EXPECT_EQ(LedgerCount(*fewer, "guessed_correlations"), 0u);
  EXPECT_EQ(LedgerCount(*fewer, "lost_correlations"), 4u);
}

}  // namespace
}  // namespace lockstep::ingest
