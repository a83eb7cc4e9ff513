#include "node/control/api/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "node/control/api/names.h"

namespace lockstep::control {
namespace {

using testing::HasSubstr;

// Every field with a value that is not its default: what is forgotten in reading or writing shows.
constexpr std::string_view kProcess =
    R"({"id":"4242-991","pid":4242,"start_ticks":18446744073709551615,"uid":4294967294,"client_pids":[17,1],)"
    R"("user":"alice","host":"n001","role":"helper","state":"tracing","rank":3,"local_rank":1,"world_size":8,)"
    R"("job_kind":"mpi","job_id":"12_3","job_step":"0","command":"python3 \"train.py\"","device":"cuda",)"
    R"("torch_version":"2.13.0+cpu","socket":"/run/kineto","python_version":"3.11.2",)"
    R"("settings":["NCCL_DEBUG=INFO","OMP_NUM_THREADS=1"],"tracer":"steps","counts_iterations":false,)"
    R"("first_poll_unix_ns":1700000000000000001,"last_poll_unix_ns":1700000000000000002,"poll_period_ns":1000000000})";
constexpr std::string_view kSpec =
    R"({"group":"nightly_1-a","selector":{"job_id":"123.pbs01","pids":[5,6],"process_ids":["4242-991"],)"
    R"("ranks":[[0,3],[8,15]],"uid":1000,"include_launchers":true},"window":{"mode":"iterations",)"
    R"("duration_ns":250000000,"start_unix_ns":1700000000123000000,"warmup_ns":2000000000,"iterations":5,"roundup":50,)"
    R"("start_iteration":2000,"warmup_iterations":2,"deliver_from_unix_ns":1700000000000000007},)"
    R"("options":{"record_shapes":true,"memory":true,"stacks":true,"flops":true,"modules":true,)"
    R"("activities":["cpu_op","user_annotation"]},"wait_ns":1,"timeout_ns":60000000000,"process_limit":7,)"
    R"("allow_unsafe":true})";

std::string CaptureText() {
  return fmt::format(
      R"({{"id":"abcdefgh01234567","spec":{},"state":"partial","reason":"rank 1 died","requested_by":"alice",)"
      R"("created_unix_ns":10,"finished_unix_ns":20,"targets":[{{"process":{},"state":"timed_out",)"
      R"("reason":"no poll","delivered_unix_ns":11,"begun_unix_ns":12,"missed_start_unix_ns":15,"finished_unix_ns":13,)"
      R"("trace_name":"n001_rank3.json","trace_bytes":99,"end":{{"unix_ns":14,"signal":11,)"
      R"("signal_name":"SIGSEGV","exit_status":3}}}}]}})",
      kSpec, kProcess);
}

TEST(ProcessTest, OfOneJobAreThoseOfOneIdAndStepOrRanksOfOneLauncher) {
  Process a;
  a.job_id = "123";
  a.job_step = "0";
  Process b = a;
  EXPECT_TRUE(IsSameJob(a, b));
  b.job_step = "1";
  EXPECT_FALSE(IsSameJob(a, b));
  a.job_id = a.job_step = b.job_id = b.job_step = "";
  a.client_pids = {10, 5};
  b.client_pids = {11, 5};
  EXPECT_FALSE(IsSameJob(a, b)) << "two programs of one shell";
  a.rank = 0;
  b.rank = 1;
  a.world_size = b.world_size = 2;
  EXPECT_TRUE(IsSameJob(a, b));
  b.client_pids = {11, 6};
  EXPECT_FALSE(IsSameJob(a, b));
}

TEST(JsonTest, EveryFieldOfACaptureGoesThroughUnchanged) {
  const Result<Capture> capture = ReadCapture(CaptureText());
  ASSERT_TRUE(capture) << capture.error().message;
  EXPECT_EQ(ToJson(*capture), CaptureText());
  EXPECT_EQ(capture->targets.at(0).process.start_ticks, UINT64_MAX);
  EXPECT_EQ(capture->spec.selector.ranks.at(1), std::pair(8, 15));
  EXPECT_EQ(capture->state, CaptureState::kPartial);
  EXPECT_EQ(capture->targets.at(0).state, TargetState::kTimedOut);
  const std::string several = fmt::format(R"({{"captures":[{0},{0}]}})", CaptureText());
  const Result<std::vector<Capture>> captures = ReadCaptures(several);
  ASSERT_TRUE(captures) << captures.error().message;
  EXPECT_EQ(ToJson(*captures), several);
}

constexpr std::string_view kInspectionSpec =
    R"({"job_id":"123.pbs01","pids":[5,6],"ranks":[[0,3],[8,15]],"depth":"glance","python_stacks":false,)"
    R"("native_stacks":false,"flight_record":false,"devices":false,"ras":false,"state_window_ns":1000000,)"
    R"("deadline_ns":30000000000})";
constexpr std::string_view kInspection =
    R"({"id":"abcdefgh01234567","state":"done","host":"n001","now_unix_ns":1700000000000000001,"glances":[)"
    R"({"pid":4242,"start_ticks":18446744073709551615,"launcher_pid":17,"uid":4294967294,"rank":3,"world_size":8,)"
    R"("job_kind":"slurm","job_id":"12_3","command":"python3 train.py","state":"S","main_switches":5,)"
    R"("main_cpu_ns":6,"cpu_ns":7,"threads_cpu_ns":8,"wait_channel":"futex_wait_queue"}],"processes":[],"ras":[{"address":"localhost:28028","format":"json",)"
    R"("asked_unix_ns":1700000000000000002,"text":"{\"communicators\": []}"}],)"
    R"("missing":[{"rank":1,"host":"n002","what":"process","reason":"gone","remedy":"look"}]})";

TEST(JsonTest, EveryFieldOfInspectionsGoesThroughUnchanged) {
  const Result<InspectionSpec> spec = ReadInspectionSpec(kInspectionSpec);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(ToJson(*spec), kInspectionSpec);
  const Result<Inspection> inspection = ReadInspection(kInspection);
  ASSERT_TRUE(inspection) << inspection.error().message;
  EXPECT_EQ(ToJson(*inspection), kInspection);
  for (const char* bad : {R"({"state_window_ns":1})", R"({"deadline_ns":31000000000})", R"({"depth":"deep"})",
                          R"({"pids":[0]})", R"({"ranks":[[3,1]]})"}) {
    EXPECT_EQ(ReadInspectionSpec(bad).error().code, ErrorCode::kInvalidArgument) << bad;
  }
}

TEST(JsonTest, InspectionThatIsTooLargeLosesDumpsFirstAndNamesThem) {
  Inspection inspection;
  inspection.id = "abcdefgh01234567";
  inspection.state = InspectionState::kDone;
  for (int rank = 0; rank < 3; ++rank) {
    evidence::InspectedProcess& process = inspection.processes.emplace_back();
    process.pid = 10 + rank;
    process.rank = rank;
    process.record_format = "pickle";
    process.record_bytes = std::string(size_t{1} << 20, 'x');
  }
  const Result<Inspection> whole = ReadInspection(ToJson(inspection));
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(whole->processes.size(), 3U);
  EXPECT_EQ(whole->processes[2].record_bytes, inspection.processes[2].record_bytes);
  const std::string text = ToJson(inspection, size_t{4} << 20);
  EXPECT_LE(text.size(), size_t{4} << 20);
  const Result<Inspection> cut = ReadInspection(text);
  ASSERT_TRUE(cut) << cut.error().message;
  ASSERT_EQ(cut->processes.size(), 3U);
  EXPECT_EQ(cut->processes[2].record_bytes, "");
  ASSERT_EQ(cut->missing.size(), 1U);
  EXPECT_EQ(cut->missing[0].rank, 2);
  EXPECT_EQ(cut->missing[0].what, "flight_recorder");
}

TEST(JsonTest, EveryFieldOfSpecsAndProcessesGoesThroughUnchanged) {
  const Result<CaptureSpec> spec = ReadCaptureSpec(kSpec);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(ToJson(*spec), kSpec);
  const std::string several = fmt::format(R"({{"processes":[{}]}})", kProcess);
  const Result<std::vector<Process>> processes = ReadProcesses(several);
  ASSERT_TRUE(processes) << processes.error().message;
  EXPECT_EQ(ToJson(*processes), several);
  EXPECT_EQ(ToJson(processes->at(0)), kProcess);
}

TEST(JsonTest, EveryFieldOfAStatusGoesThroughUnchanged) {
  constexpr std::string_view kText =
      R"({"host":"n1","version":"0.1.0","daemon_pid":9,"daemon_uid":5,"started_unix_ns":1,"now_unix_ns":2,)"
      R"("kineto_sockets":["abstract:dynolog","/run/x"],"base_config":"/etc/libkineto.conf","process_count":3,)"
      R"("running_capture_count":4,"ptrace_scope":1,"may_trace_all":true,"allows_unsafe_captures":true,)"
      R"("problems":["the disk is full"]})";
  const Result<NodeStatus> status = ReadNodeStatus(kText);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(ToJson(*status), kText);
}

TEST(JsonTest, DefaultsGoThroughWithUnknownAsNull) {
  Capture capture;
  capture.id = "0123456789abcdef";
  capture.targets.resize(1);
  capture.targets[0].process.id = "1-1";
  const std::string text = ToJson(capture);
  EXPECT_THAT(text, HasSubstr(R"("rank":null)"));
  EXPECT_THAT(text, HasSubstr(R"("start_unix_ns":null)"));
  const Result<Capture> read = ReadCapture(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(ToJson(*read), text);
}

TEST(JsonTest, AnEmptySpecIsAllDefaults) {
  const Result<CaptureSpec> spec = ReadCaptureSpec("{}");
  ASSERT_TRUE(spec);
  EXPECT_EQ(ToJson(*spec), ToJson(CaptureSpec()));
}

TEST(JsonTest, UnknownFieldsAreSkippedAtAnyPlace) {
  EXPECT_TRUE(ReadCaptureSpec(R"({"new":[{"a":1}],"window":{"newer":1.5,"duration_ns":1000000}})"));
}

TEST(JsonTest, TextsThatAreNoUtf8BecomeSo) {
  Process process;
  process.id = "1-1";
  process.command = "a\xFF\x01\"\n";
  const Result<std::vector<Process>> read = ReadProcesses(ToJson(std::vector{process}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at(0).command, "a\xEF\xBF\xBD\x01\"\n");
}

TEST(JsonTest, HalfASurrogatePairIsReplaced) {
  const Result<std::vector<Process>> read = ReadProcesses(R"({"processes":[{"id":"1-1","command":"\udc00"}]})");
  ASSERT_TRUE(read);
  EXPECT_EQ(ReadProcesses(ToJson(*read)).value()[0].command, read->at(0).command);
}

TEST(JsonTest, RandomSpecsGoThroughUnchanged) {
  std::mt19937_64 random(7);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  for (int i = 0; i < 2000; ++i) {
    CaptureSpec spec;
    spec.group = std::string(static_cast<size_t>(upto(64)), "aZ9_-"[upto(4)]);
    for (int64_t n = upto(5); n > 0; --n) spec.selector.pids.push_back(static_cast<int32_t>(1 + upto(INT32_MAX - 1)));
    for (int64_t n = upto(5); n > 0; --n) {
      const auto first = static_cast<int32_t>(upto(INT32_MAX - 10));
      spec.selector.ranks.emplace_back(first, first + static_cast<int32_t>(upto(10)));
    }
    if (upto(1)) spec.selector.uid = static_cast<uint32_t>(upto(UINT32_MAX));
    spec.window.mode = upto(1) ? CaptureWindow::Mode::kIterations : CaptureWindow::Mode::kDuration;
    spec.window.iterations = static_cast<int32_t>(1 + upto(99'999));
    spec.window.duration_ns = (1 + upto(3'599'999)) * 1'000'000;
    if (upto(1)) spec.window.start_unix_ns = upto(INT64_MAX / 1'000'000) * 1'000'000;
    if (upto(1)) spec.window.start_iteration = upto(INT64_MAX - 1);
    spec.timeout_ns = 1'000'000 + upto(INT32_MAX);
    const std::string text = ToJson(spec);
    const Result<CaptureSpec> read = ReadCaptureSpec(text);
    ASSERT_TRUE(read) << text << "\n" << read.error().message;
    ASSERT_EQ(ToJson(*read), text);
  }
}

struct BadText {
  const char* text;
  ErrorCode code;
  const char* said;
};

TEST(JsonTest, WrongSpecsAreRefusedByFieldAndKind) {
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  const BadText texts[] = {
      {"", kCorrupt, "not JSON"},
      {"[]", kCorrupt, "the document is not an object"},
      {"{} x", kCorrupt, "byte 3"},
      {R"({"group":7})", kCorrupt, "group is not a string"},
      {R"({"group":"a b"})", kInvalid, "group may hold"},
      {R"({"group":"../x"})", kInvalid, "group may hold"},
      {R"({"window":[]})", kCorrupt, "window is not an object"},
      {R"({"window":{"mode":"forever"}})", kInvalid, "window.mode is not a word"},
      {R"({"window":{"mode":1}})", kCorrupt, "window.mode is not a string"},
      {R"({"window":{"duration_ns":"5"}})", kCorrupt, "window.duration_ns is not a whole number"},
      {R"({"window":{"duration_ns":1e9}})", kCorrupt, "window.duration_ns is not a whole number"},
      {R"({"window":{"duration_ns":999999}})", kInvalid, "window.duration_ns is 999999"},
      {R"({"window":{"duration_ns":1000001}})", kInvalid, "milliseconds"},
      {R"({"window":{"duration_ns":3600000000001}})", kInvalid, "outside"},
      {R"({"window":{"duration_ns":18446744073709551615}})", kInvalid, "is over"},
      {R"({"window":{"duration_ns":99999999999999999999999}})", kCorrupt, "not a whole number"},
      {R"({"window":{"mode":"iterations"}})", kCorrupt, "window.iterations is missing"},
      {R"({"window":{"mode":"iterations","iterations":0}})", kInvalid, "window.iterations is 0"},
      {R"({"window":{"roundup":0}})", kInvalid, "window.roundup is 0"},
      {R"({"window":{"start_unix_ns":-1000000}})", kInvalid, "window.start_unix_ns is -1000000"},
      {R"({"window":{"warmup_ns":500000000}})", kInvalid, "seconds"},
      {R"({"selector":{"pids":[1,"2"]}})", kCorrupt, "selector.pids[1] is not a whole number"},
      {R"({"selector":{"pids":[0]}})", kInvalid, "selector.pids[0] is below 1"},
      {R"({"selector":{"ranks":[[3,1]]}})", kInvalid, "selector.ranks[0]"},
      {R"({"selector":{"ranks":[[-1,1]]}})", kInvalid, "selector.ranks[0]"},
      {R"({"selector":{"ranks":[3]}})", kCorrupt, "selector.ranks[0]"},
      {R"({"selector":{"uid":4294967296}})", kInvalid, "selector.uid"},
      {R"({"selector":{"process_ids":["../1"]}})", kInvalid, "selector.process_ids[0]"},
      {R"({"options":{"memory":1}})", kCorrupt, "options.memory is neither"},
      {R"({"options":{"activities":["cpu_op\n"]}})", kInvalid, "options.activities[0]"},
      {R"({"options":{"activities":["a=b"]}})", kInvalid, "options.activities[0]"},
      {R"({"options":{"activities":[""]}})", kInvalid, "options.activities[0]"},
      {R"({"process_limit":-1})", kInvalid, "process_limit"},
      {R"({"timeout_ns":0})", kInvalid, "timeout_ns"},
      {"{\"group\":\"\xFF\"}", kCorrupt, "not JSON"},
  };
  for (const BadText& bad : texts) {
    const Result<CaptureSpec> spec = ReadCaptureSpec(bad.text);
    ASSERT_FALSE(spec) << bad.text;
    EXPECT_EQ(spec.error().code, bad.code) << bad.text << ": " << spec.error().message;
    EXPECT_THAT(spec.error().message, HasSubstr(bad.said)) << bad.text;
  }
}

TEST(JsonTest, AZeroByteIsNotTheEnd) {
  EXPECT_FALSE(ReadCaptureSpec(std::string_view("{}\0{", 4)));
  EXPECT_FALSE(ReadCaptureSpec(std::string_view("{}\0", 3)));
}

TEST(JsonTest, DepthIsBoundedAndCostsNoStack) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text = "{\"x\":";
    for (int i = 0; i < 300'000; ++i) text += open;
    const Result<CaptureSpec> spec = ReadCaptureSpec(text);
    ASSERT_FALSE(spec);
    EXPECT_EQ(spec.error().code, ErrorCode::kLimitExceeded);
  }
  EXPECT_TRUE(ReadCaptureSpec(R"({"x":[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]})"));  // 16
  EXPECT_TRUE(ReadCaptureSpec(R"({"x":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[[[[[["})"));
}

TEST(JsonTest, CountsAreBounded) {
  std::string text = R"({"options":{"activities":["a")";
  for (int i = 0; i < 64; ++i) text += R"(,"a")";
  const Result<CaptureSpec> spec = ReadCaptureSpec(text + "]}}");
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument);
}

TEST(JsonTest, ATextCutAnywhereIsAnError) {
  const std::string text = CaptureText();
  for (size_t i = 0; i < text.size(); ++i) EXPECT_FALSE(ReadCapture(text.substr(0, i))) << i;
}

TEST(JsonTest, AnswersNameNoFileOutsideTheFolder) {
  std::string text = CaptureText();
  const size_t at = text.find("n001_rank3.json");
  for (const char* name : {"../x.json", "a/b.json", ".json", ".hidden.json", "x.txt", "a\\\\b.json", "a b.json"}) {
    std::string changed = text;
    changed.replace(at, std::string_view("n001_rank3.json").size(), name);
    EXPECT_FALSE(ReadCapture(changed)) << name;
  }
  std::string changed = text;
  changed.replace(changed.find("abcdefgh01234567"), 16, "../../etc/passwd");
  EXPECT_FALSE(ReadCapture(changed));
}

TEST(JsonTest, ErrorsGoThroughAndForeignAnswersAreSaidToBe) {
  const Error error = ReadError(ToJson(Error{ErrorCode::kFailedPrecondition, "all 4 are busy", "x.json"}));
  EXPECT_EQ(error.code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(error.message, "x.json: all 4 are busy");
  EXPECT_EQ(ReadError(R"({"error":{"code":"brand_new","message":"m"}})").code, ErrorCode::kIo);
  EXPECT_EQ(ReadError(R"({"error":{"code":"brand_new","message":"m"}})").message, "m");
  for (const char* text : {"", "<html>502 \x1b[31m", "{}", R"({"error":{}})", R"({"error":{"code":7}})"}) {
    EXPECT_EQ(ReadError(text).code, ErrorCode::kCorruptData) << text;
    EXPECT_EQ(ReadError(text).message.find('\x1b'), std::string::npos);
  }
}

TEST(NamesTest, EachValueHasAWordOfItsOwnThatLeadsBack) {
  for (int i = 0; i <= static_cast<int>(JobKind::kMpi); ++i) {
    EXPECT_EQ(kJobKinds.Find(JobKindName(static_cast<JobKind>(i))), static_cast<JobKind>(i));
  }
  for (int i = 0; i <= static_cast<int>(TargetState::kCancelled); ++i) {
    EXPECT_EQ(kTargetStates.Find(TargetStateName(static_cast<TargetState>(i))), static_cast<TargetState>(i));
  }
  for (int i = 0; i <= static_cast<int>(CaptureState::kCancelled); ++i) {
    EXPECT_EQ(kCaptureStates.Find(CaptureStateName(static_cast<CaptureState>(i))), static_cast<CaptureState>(i));
  }
  EXPECT_STREQ(ProcessRoleName(ProcessRole::kHelper), "helper");
  EXPECT_STREQ(ProcessStateName(ProcessState::kSilent), "silent");
  EXPECT_FALSE(IsFinal(TargetState::kWriting));
  EXPECT_TRUE(IsFinal(TargetState::kDone));
  EXPECT_FALSE(IsFinal(CaptureState::kRunning));
  EXPECT_TRUE(IsFinal(CaptureState::kCancelled));
}

}  // namespace
}  // namespace lockstep::control
