#include "model/evidence/inspected_process.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::evidence {
namespace {

InspectedProcess FullProcess() {
  InspectedProcess process;
  process.pid = 4711;
  process.start_ticks = uint64_t{1} << 63;
  process.host = "node-a";
  process.rank = 3;
  process.local_rank = 0;
  process.world_size = 8;
  process.job_id = "42";
  process.command = "python train.py \"quoted\"\n";
  process.torch_version = "2.13.0";
  process.record_unix_ns = 1'700'000'000'223'456'789;
  process.collected_unix_ns = 1'700'000'000'123'456'789;
  process.longest_pause_ns = 1'234;
  process.record_format = "pickle";
  process.record_source = "helper";
  process.record_bytes = std::string("\x80\x02\x00}\xff.", 6);
  process.log_tail = "Traceback\n";
  process.log_path = "/logs/rank3.err";
  ThreadStack& thread = process.stacks.emplace_back();
  thread.tid = 4711;
  thread.name = "MainThread";
  thread.is_main = true;
  thread.holds_gil = true;
  thread.state = 'S';
  thread.wait_channel = "futex_wait_queue";
  thread.syscall = "futex";
  thread.python = {{"clip", "train.py", 74}, {"main", "train.py", 0}};
  thread.native = {{"__futex_wait", "libc.so.6", 0}};
  thread.source = "py-spy";
  ProcessState& state = process.state.emplace();
  state.state = 'D';
  state.window_ns = 500'000'000;
  state.cpu_ns = 0;
  state.resident_bytes = 1 << 30;
  state.sockets = {{"10.0.0.1:1", "10.0.0.2:2", "CLOSE_WAIT", 12, 0}};
  state.devices = {{"gpu", "0", "error", {{"xid", "79"}}}};
  process.missing = {{3, "node-a", "native_stacks", "ptrace is not allowed", "echo 0 > ..."}};
  return process;
}

TEST(InspectedProcessTest, ReadsBackAllThatWasWritten) {
  const InspectedProcess process = FullProcess();
  const std::string json = WriteInspectedProcess(process, true);
  const Result<InspectedProcess> read = ReadInspectedProcess(json);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(WriteInspectedProcess(*read, true), json);
  EXPECT_EQ(read->record_bytes, process.record_bytes);
  EXPECT_EQ(read->start_ticks, process.start_ticks);
  EXPECT_EQ(read->collected_unix_ns, process.collected_unix_ns);
  EXPECT_EQ(read->record_unix_ns, process.record_unix_ns);
  EXPECT_EQ(read->rank, 3);
  ASSERT_EQ(read->stacks.size(), 1U);
  EXPECT_EQ(read->stacks[0].python[0].line, 74);
  EXPECT_EQ(read->stacks[0].state, 'S');
  ASSERT_TRUE(read->state);
  EXPECT_EQ(read->state->cpu_ns, 0);
  EXPECT_EQ(read->state->read_bytes, std::nullopt);
  EXPECT_EQ(read->state->devices[0].facts[0].second, "79");
  EXPECT_EQ(read->missing[0].remedy, "echo 0 > ...");
}

TEST(InspectedProcessTest, AnEmptyProcessComesBackEmpty) {
  const Result<InspectedProcess> read = ReadInspectedProcess(WriteInspectedProcess({}, true));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->rank, std::nullopt);
  EXPECT_EQ(read->state.has_value(), false);
  EXPECT_EQ(read->stacks.size(), 0U);
}

TEST(InspectedProcessTest, LeavesRecordAndLogOutOfAFoldersFile) {
  const std::string json = WriteInspectedProcess(FullProcess(), false);
  const Result<InspectedProcess> read = ReadInspectedProcess(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->record_bytes, "");
  EXPECT_EQ(read->log_tail, "");
  EXPECT_EQ(read->record_format, "pickle");
}

TEST(InspectedProcessTest, MakesInvalidTextValid) {
  InspectedProcess process;
  process.command = "a\xff\xc3(";
  const Result<InspectedProcess> read = ReadInspectedProcess(WriteInspectedProcess(process, true));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->command, "a\xef\xbf\xbd\xef\xbf\xbd(");
}

ErrorCode CodeOf(const std::string& json) {
  const Result<InspectedProcess> read = ReadInspectedProcess(json);
  EXPECT_FALSE(read) << json.substr(0, 80);
  return read ? ErrorCode::kIo : read.error().code;
}

TEST(InspectedProcessTest, RefusesWhatIsNoInspection) {
  EXPECT_EQ(CodeOf(""), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("[]"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{}"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{\"schema\":\"other/1\"}"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{\"schema\":\"lockstep.inspection/1\",\"pid\":\"1\"}"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{\"schema\":\"lockstep.inspection/1\",\"pid\":4294967296}"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{\"schema\":\"lockstep.inspection/1\",\"record_base64\":\"%\"}"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{\"schema\":\"lockstep.inspection/1\",\"stacks\":[1]}"), ErrorCode::kCorruptData);
  EXPECT_EQ(CodeOf("{\"schema\":\"lockstep.inspection/1\"} x"), ErrorCode::kCorruptData);
}

TEST(InspectedProcessTest, NamesThePlaceOfAWrongField) {
  const Result<InspectedProcess> read =
      ReadInspectedProcess(R"({"schema":"lockstep.inspection/1","stacks":[{},{"python":[{"line":"x"}]}]})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "stacks[1].python[0].line: expected an integer in its range");
}

TEST(InspectedProcessTest, DeepNestingIsHarmless) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(CodeOf(deep), ErrorCode::kCorruptData);
  const std::string closed =
      "{\"schema\":\"lockstep.inspection/1\",\"other\":" + deep + std::string(deep.size(), ']') + "}";
  EXPECT_TRUE(ReadInspectedProcess(closed));
}

TEST(InspectedProcessTest, RefusesTooManyFrames) {
  std::string frames = "{}";
  for (int i = 0; i < 4'096; ++i) frames += ",{}";
  EXPECT_EQ(CodeOf("{\"schema\":\"lockstep.inspection/1\",\"stacks\":[{\"python\":[" + frames + "]}]}"),
            ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace lockstep::evidence
