#include "ingest/perfetto/perfetto_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/perfetto/message_for_test.h"
#include "ingest/perfetto/packet_stream.h"

namespace lockstep::ingest {
namespace {

using model::Category;
using model::Lane;
using perfetto::test::Arg;
using perfetto::test::Message;
using perfetto::test::TraceBytes;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

template <typename T>
std::vector<T> Values(const Column<T>& column) {
  return {column.begin(), column.end()};
}

constexpr int64_t kNow = 1'727'987'490'000'000'000;

Result<std::vector<TraceContent>> Read(const std::string& bytes, size_t window_bytes = 1 << 16) {
  auto source = OpenMemory(bytes, {});
  if (!source) return std::move(source).error();
  TraceReaderOptions options;
  options.window_bytes = window_bytes;
  return ReadPerfettoTrace(**source, "rank3.pftrace", options);
}

/// The one trace of a sound file.
TraceContent ReadOne(const std::string& bytes) {
  auto contents = Read(bytes);
  EXPECT_TRUE(contents) << contents.error().message;
  if (!contents) return {};
  EXPECT_EQ(contents->size(), 1U);
  return std::move(contents->front());
}

std::vector<std::string> Codes(const TraceContent& content) {
  std::vector<std::string> codes;
  for (const model::LedgerEntry& entry : content.ledger.entries()) codes.push_back(entry.code);
  return codes;
}

/// All events by lane, in order.
std::vector<std::tuple<Lane, std::string, int64_t, int64_t>> Events(const TraceContent& content) {
  std::vector<std::tuple<Lane, std::string, int64_t, int64_t>> events;
  for (const model::Track& track : content.trace.tracks) {
    for (size_t row = 0; row < track.events.size(); ++row) {
      events.emplace_back(track.lane, std::string(content.names[track.events.name[row]]),
                          track.events.start_ns[row] - kNow, track.events.duration_ns[row]);
    }
  }
  return events;
}

TEST(StartsPerfettoTraceTest, JsonBehindALineBreakIsNoPacket) {
  EXPECT_TRUE(perfetto::StartsPerfettoTrace(TraceBytes().Begin(1, 2, "a").bytes()));
  for (const char* text : {"", "{", "[", "\n{\n  \"traceEvents\": [", "\n\n[{", "\n[\n]", " \n{}", "\n{"}) {
    EXPECT_FALSE(perfetto::StartsPerfettoTrace(text)) << text;
  }
  // A packet of 123 bytes begins like a line break and a brace.
  EXPECT_TRUE(perfetto::StartsPerfettoTrace("\n{\x42\x05\x08"));
}

TEST(PerfettoReaderTest, SlicesOfATrackAreAStack) {
  const TraceContent content = ReadOne(TraceBytes()
                                           .Process(1, 17, "python")
                                           .Thread(2, 1, 17, 18, "main")
                                           .Begin(kNow + 10, 2, "aten::linear")
                                           .Begin(kNow + 20, 2, "aten::addmm")
                                           .End(kNow + 30, 2)
                                           .Begin(kNow + 30, 2, "aten::add")
                                           .End(kNow + 40, 2)
                                           .End(kNow + 50, 2)
                                           .bytes());
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kOperators, "aten::linear", 10, 40),
                                           FieldsAre(Lane::kOperators, "aten::addmm", 20, 10),
                                           FieldsAre(Lane::kOperators, "aten::add", 30, 10)));
  ASSERT_EQ(content.trace.tracks.size(), 1U);
  EXPECT_EQ(content.trace.tracks[0].process_id, 17);
  EXPECT_EQ(content.trace.tracks[0].thread_id, 18);
  EXPECT_EQ(content.names[content.trace.tracks[0].thread_name], "main");
  EXPECT_TRUE(content.trace.base_time_known);
  EXPECT_FALSE(content.trace.clock_is_aligned);
  EXPECT_EQ(content.trace.event_count, 3U);
  EXPECT_THAT(Codes(content), IsEmpty());
}

TEST(PerfettoReaderTest, BeginsFollowedByTheirEndsInTheSameOrderArePairedOneToOne) {
  // PyTorch's exporter: a group of slices, not in order of time, on two tracks.
  const TraceContent content = ReadOne(TraceBytes()
                                           .Thread(2, 1, 17, 18, "main")
                                           .Thread(3, 1, 17, 19, "autograd")
                                           .Begin(kNow + 100, 2, "aten::outer")
                                           .Begin(kNow + 110, 2, "aten::inner")
                                           .Begin(kNow + 10, 3, "aten::first")
                                           .Begin(kNow + 50, 2, "aten::earlier")
                                           .End(kNow + 200, 2)
                                           .End(kNow + 120, 2)
                                           .End(kNow + 90, 3)
                                           .End(kNow + 60, 2)
                                           .bytes());
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kOperators, "aten::earlier", 50, 10),
                                           FieldsAre(Lane::kOperators, "aten::outer", 100, 100),
                                           FieldsAre(Lane::kOperators, "aten::inner", 110, 10),
                                           FieldsAre(Lane::kOperators, "aten::first", 10, 80)));
  EXPECT_THAT(Codes(content), IsEmpty());
}

TEST(PerfettoReaderTest, PacketsOutOfOrderArePairedByTime) {
  const TraceContent content = ReadOne(TraceBytes()
                                           .Begin(kNow + 30, 2, "aten::second")
                                           .End(kNow + 40, 2)
                                           .Begin(kNow + 10, 2, "aten::first")
                                           .End(kNow + 20, 2)
                                           .End(kNow + 60, 2)
                                           .Begin(kNow + 5, 2, "aten::around")
                                           .bytes());
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kOperators, "aten::around", 5, 55),
                                           FieldsAre(Lane::kOperators, "aten::first", 10, 10),
                                           FieldsAre(Lane::kOperators, "aten::second", 30, 10)));
}

TEST(PerfettoReaderTest, CategoriesThatPyTorchLeavesOutAreToldFromNamesAndArgs) {
  const auto lane_of = [](const char* name, const Message& args, const char* thread = "main") {
    const TraceContent content =
        ReadOne(TraceBytes().Thread(2, 1, 17, 18, thread).Begin(kNow, 2, name, args).End(kNow + 1, 2).bytes());
    return content.trace.tracks.at(0).events.category[0];
  };
  EXPECT_EQ(lane_of("aten::add", Arg("External id", 7)), Category::kCpuOp);
  EXPECT_EQ(lane_of("ProfilerStep#3", {}), Category::kUserAnnotation);
  EXPECT_EQ(lane_of("nccl:all_reduce", {}), Category::kUserAnnotation);
  EXPECT_EQ(lane_of("train.py(3): step", Arg("Python id", 5)), Category::kPythonFunction);
  EXPECT_EQ(lane_of("cudaLaunchKernel", Arg("cbid", 211)), Category::kRuntime);
  EXPECT_EQ(lane_of("hipLaunchKernel", Arg("cbid", 1)), Category::kRuntime);
  EXPECT_EQ(lane_of("cuLaunchKernelEx", Arg("cbid", 652)), Category::kDriver);
  EXPECT_EQ(lane_of("Stream Sync", Arg("cuda_sync_kind", "Stream Sync")), Category::kSync);
  EXPECT_EQ(lane_of("Activity Buffer Request", {}, "Overhead"), Category::kOverhead);
  EXPECT_EQ(lane_of("custom_op", {}), Category::kCpuOp);
}

TEST(PerfettoReaderTest, GpuRenderStagesAreDeviceEvents) {
  const auto specification = [](uint64_t iid, const char* name) {
    return Message().Sub(24, Message().Number(1, iid).Text(2, name));
  };
  const Message interned = Message()
                               .Sub(2, Message().Number(1, 1).Text(2, "ncclDevKernel_AllReduce"))
                               .Sub(1000, Message().Number(1, 1).Text(3, "void gemm<float>(int)"));
  const std::string stages = interned.bytes() + specification(1, "Kernel").bytes() +
                             specification(2, "Memcpy").bytes() + specification(4, "Annotation").bytes() +
                             specification(100, "stream 0007").bytes();
  const auto stage = [](int64_t time_ns, uint64_t duration_ns, uint64_t stage_iid, const Message& more) {
    const Message event =
        Message().Number(2, duration_ns).Number(11, 3).Number(13, 100).Number(14, stage_iid).Number(5, 1);
    return Message()
        .Number(8, static_cast<uint64_t>(time_ns))
        .Number(10, 1)
        .Number(13, 2)
        .Text(53, event.bytes() + more.bytes());
  };
  const auto extra = [](const char* name, const char* value) {
    return Message().Sub(6, Message().Text(1, name).Text(2, value));
  };
  const Message collective(Message()
                               .Number(20, 1)
                               .Sub(6, Message().Text(1, "correlation").Text(2, "12"))
                               .Sub(6, Message().Text(1, "Collective name").Text(2, "allreduce"))
                               .Sub(6, Message().Text(1, "In msg nelems").Text(2, "1024"))
                               .Sub(6, Message().Text(1, "dtype").Text(2, "Float")));
  const TraceContent content =
      ReadOne(TraceBytes()
                  .Packet(Message().Number(10, 1).Number(13, 1).Text(12, stages))
                  .Packet(stage(kNow + 10, 5, 1, Message(extra("correlation", "11")).Number(19, 1)))
                  .Packet(stage(kNow + 20, 8, 1, collective))
                  .Packet(stage(kNow + 40, 2, 2, extra("stream id", "7")))
                  .Packet(stage(kNow + 10, 30, 4, Message().Text(17, "forward")))
                  .bytes());
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kDevice, "void gemm<float>(int)", 10, 5),
                                           FieldsAre(Lane::kDevice, "ncclDevKernel_AllReduce", 20, 8),
                                           FieldsAre(Lane::kDevice, "Memcpy", 40, 2),
                                           FieldsAre(Lane::kDeviceAnnotation, "forward", 10, 30)));
  const model::Track& track = content.trace.tracks.at(0);
  EXPECT_EQ(track.process_id, 3);
  EXPECT_EQ(track.thread_id, 7);
  EXPECT_THAT(Values(track.events.correlation), ElementsAre(11, 12, 0));
  EXPECT_THAT(Values(track.events.category), ElementsAre(Category::kKernel, Category::kKernel, Category::kMemcpy));
  ASSERT_EQ(content.trace.collectives.size(), 1U);
  const model::CollectiveRecord& record = content.trace.collectives[0];
  EXPECT_EQ(content.names[record.collective_name], "allreduce");
  EXPECT_EQ(content.names[record.dtype], "Float");
  EXPECT_EQ(record.in_elements, 1024);
  EXPECT_EQ(record.duration_ns, 8);
  EXPECT_EQ(record.correlation, 12U);
}

TEST(PerfettoReaderTest, FlowsJoinLaunchesWithKernelsWhereNoArgDoes) {
  const auto flow = [](uint64_t id) { return Message().Fixed(47, id); };
  const Message kernel = Message().Text(22, "kernel");
  const uint64_t large = uint64_t{1} << 40;
  TraceBytes trace;
  trace.Begin(kNow, 2, "cudaLaunchKernel", flow(large)).End(kNow + 1, 2);
  trace.Begin(kNow + 2, 3, "gemm", Message(kernel).Fixed(48, large)).End(kNow + 3, 3);
  const TraceContent content = ReadOne(trace.bytes());
  ASSERT_EQ(content.trace.tracks.size(), 2U);
  ASSERT_EQ(content.trace.tracks[0].lane, Lane::kRuntime);
  EXPECT_NE(content.trace.tracks[0].events.correlation[0], 0U);
  EXPECT_EQ(content.trace.tracks[0].events.correlation[0], content.trace.tracks[1].events.correlation[0]);
}

Message Clocks(uint64_t delta_ns, uint64_t boot_ns, uint64_t real_ns) {
  const auto clock = [](uint64_t id, uint64_t ns, bool incremental) {
    Message message = Message().Number(1, id).Number(2, ns);
    if (incremental) message.Number(3, 1);
    return Message().Sub(1, message);
  };
  return Message().Text(
      6, clock(64, delta_ns, true).bytes() + clock(6, boot_ns, false).bytes() + clock(1, real_ns, false).bytes());
}

TEST(PerfettoReaderTest, TimesMayBeDifferencesAndAreTakenToTheWallClock) {
  const Message defaults = Message().Sub(59, Message().Number(58, 64).Sub(11, Message().Number(11, 2)));
  const auto event = [](uint64_t delta_ns, uint64_t type) {
    return Message().Number(8, delta_ns).Number(10, 5).Sub(11, Message().Number(9, type).Text(23, "aten::add"));
  };
  const TraceContent content = ReadOne(TraceBytes()
                                           .Packet(Message(defaults).Number(10, 5).Number(13, 1))
                                           .Packet(Clocks(1000, 5000, static_cast<uint64_t>(kNow) + 5000).Number(10, 5))
                                           .Packet(event(10, 1))
                                           .Packet(event(20, 2))
                                           .Packet(event(5, 1))
                                           .Packet(event(0, 2))
                                           .bytes());
  // The delta clock stood at 1000 when the trace clock showed 5000 and the wall clock kNow + 5000.
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kOperators, "aten::add", 5010, 20),
                                           FieldsAre(Lane::kOperators, "aten::add", 5035, 0)));
  EXPECT_TRUE(content.trace.base_time_known);
}

TEST(PerfettoReaderTest, ClearedStateForgetsNames) {
  const auto named = [](int64_t time_ns, uint64_t flags, uint64_t type) {
    return Message()
        .Number(8, static_cast<uint64_t>(time_ns))
        .Number(10, 9)
        .Number(13, flags)
        .Sub(11, Message().Number(9, type).Number(11, 2).Number(10, 1));
  };
  const auto intern = [](const char* name) {
    return Message().Number(10, 9).Number(13, 1).Sub(12, Message().Sub(2, Message().Number(1, 1).Text(2, name)));
  };
  TraceBytes trace;
  trace.Packet(named(kNow, 2, 1));  // Before any state: skipped.
  trace.Packet(intern("aten::one")).Packet(named(kNow + 1, 2, 1)).End(kNow + 2, 2);
  trace.Packet(intern("aten::two")).Packet(named(kNow + 3, 2, 1)).End(kNow + 4, 2);
  const TraceContent content = ReadOne(trace.bytes());
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kOperators, "aten::one", 1, 1),
                                           FieldsAre(Lane::kOperators, "aten::two", 3, 1)));
  EXPECT_THAT(Codes(content), ElementsAre("missing_state"));
}

TEST(PerfettoReaderTest, AllocatorEventsAreInstants) {
  const Message event = Message().Number(9, 3).Number(11, 2).Text(23, "[memory]");
  const std::string bytes = event.bytes() + Arg("Bytes", -512).bytes() + Arg("Total Allocated", 1024).bytes() +
                            Arg("Device Type", 1).bytes() + Arg("Device Id", 4).bytes();
  const TraceContent content =
      ReadOne(TraceBytes().Packet(Message().Number(8, static_cast<uint64_t>(kNow)).Text(11, bytes)).bytes());
  const model::MemoryColumns& memory = content.trace.memory;
  EXPECT_THAT(Values(memory.time_ns), ElementsAre(kNow));
  EXPECT_THAT(Values(memory.change_bytes), ElementsAre(-512));
  EXPECT_THAT(Values(memory.allocated_bytes), ElementsAre(1024));
  EXPECT_THAT(Values(memory.reserved_bytes), ElementsAre(-1));
  EXPECT_THAT(Values(memory.device), ElementsAre(4));
}

TEST(PerfettoReaderTest, ListsInArgsReadAsTheirJsonText) {
  // PyTorch writes "Input Dims" as lists of lists; the JSON reader's rule counts their elements.
  const auto number = [](uint64_t value) { return Message().Sub(12, Message().Number(4, value)); };
  const Message inner = Message().Text(12, number(4).bytes() + number(8).bytes());
  const Message dims = Message().Sub(4, Message(inner).Text(10, "Input Dims"));
  const TraceContent content = ReadOne(TraceBytes().Begin(kNow, 2, "nccl:all_reduce", dims).End(kNow + 9, 2).bytes());
  ASSERT_EQ(content.trace.collectives.size(), 1U);
  EXPECT_EQ(content.trace.collectives[0].in_elements, 32);
  EXPECT_EQ(content.trace.collectives[0].duration_ns, 9);
}

TEST(PerfettoReaderTest, SlicesWithoutEndLastToTheEndOfTheirTrack) {
  const TraceContent content = ReadOne(TraceBytes()
                                           .Begin(kNow, 2, "aten::open")
                                           .Begin(kNow + 5, 2, "aten::a")
                                           .End(kNow + 9, 2)
                                           .End(kNow + 1, 3)
                                           .bytes());
  EXPECT_THAT(Events(content), ElementsAre(FieldsAre(Lane::kOperators, "aten::open", 0, 9),
                                           FieldsAre(Lane::kOperators, "aten::a", 5, 4)));
  EXPECT_THAT(Codes(content), ElementsAre("unmatched_end", "unfinished_slice"));
}

TEST(PerfettoReaderTest, DamagedBytesAreSkippedToTheNextPacket) {
  const std::string first = TraceBytes().Begin(kNow, 2, "aten::a").End(kNow + 1, 2).bytes();
  const std::string second = TraceBytes().Begin(kNow + 5, 2, "aten::b").End(kNow + 6, 2).bytes();
  const TraceContent content = ReadOne(first + "\xFF\xFFgarbage\x01" + second);
  EXPECT_THAT(Events(content),
              ElementsAre(FieldsAre(Lane::kOperators, "aten::a", 0, 1), FieldsAre(Lane::kOperators, "aten::b", 5, 1)));
  ASSERT_THAT(Codes(content), ElementsAre("bad_packet"));
  EXPECT_EQ(content.ledger.entries()[0].byte_offset, first.size());
  EXPECT_EQ(content.ledger.entries()[0].severity, model::Severity::kError);
}

TEST(PerfettoReaderTest, AFileCutAnywhereIsReadToItsLastWholePacket) {
  TraceBytes trace;
  for (int i = 0; i < 20; ++i) trace.Begin(kNow + 10 * i, 2, "aten::add").End(kNow + 10 * i + 5, 2);
  const std::string whole = trace.bytes();
  size_t events_before = 0;
  for (size_t size = 1; size <= whole.size(); ++size) {
    auto contents = Read(whole.substr(0, size), 64);
    if (!contents) {
      EXPECT_EQ(contents.error().code, ErrorCode::kCorruptData);
      continue;
    }
    const uint64_t events = contents->front().trace.complete_event_count;
    EXPECT_GE(events, events_before) << size;
    events_before = events;
  }
  EXPECT_EQ(events_before, 20U);
}

TEST(PerfettoReaderTest, WindowsOfAnySizeGiveTheSameColumns) {
  TraceBytes trace;
  for (int i = 0; i < 50; ++i) {
    trace.Begin(kNow + 10 * i, 2, "aten::" + std::string(static_cast<size_t>(i), 'x')).End(kNow + 10 * i + 5, 2);
  }
  const auto expected = Events(ReadOne(trace.bytes()));
  for (const size_t window : {1, 64, 100, 333}) {
    auto contents = Read(trace.bytes(), window);
    ASSERT_TRUE(contents);
    EXPECT_EQ(Events(contents->front()), expected) << window;
  }
}

TEST(PerfettoReaderTest, AFileWithoutSlicesIsNoTrace) {
  const auto contents = Read(TraceBytes().Process(1, 2, "python").bytes());
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code, ErrorCode::kCorruptData);
}

}  // namespace
}  // namespace lockstep::ingest
