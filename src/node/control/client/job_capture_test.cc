#include "node/control/client/job_capture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/job_links.h"

namespace lockstep::control {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A node's daemon as a caller sees it, with processes whose captures end at once. Real daemons and jobs:
// tests/process/capture_test.py.
struct MadeNode {
  std::vector<Process> processes;
  int64_t clock_offset_ns = 0;
  std::map<int32_t, TargetState> ends;                        // By pid; others are done.
  std::function<int64_t(int attempt, int32_t pid)> start_of;  // Wall clock at which a window begins.
  bool silent_after_start = false;
  bool allows_unsafe = false;

  std::mutex mutex;
  std::vector<CaptureSpec> specs;
  std::vector<std::string> removed;
  std::map<std::string, std::string> traces;
};

std::string TraceText(int64_t start_ns, int64_t length_ns, int steps) {
  std::string text = R"({"baseTimeNanoseconds": 0, "traceEvents": [)";
  for (int i = 0; i < steps; ++i)
    text += R"({"name": "Optimizer.step#SGD.step", "ph": "X", "ts": 1.000, "dur": 1.000},)";
  text += fmt::format(R"({{"name": "Iteration Start: PyTorch Profiler", "ts": {}.000}},)", start_ns / 1000);
  text += fmt::format(R"({{"name": "Record Window End", "ts": {}.000}}], "traceName": "x"}})",
                      (start_ns + length_ns) / 1000);
  return text;
}

class MadeClient : public NodeClient {
 public:
  MadeClient(const Endpoint& endpoint, MadeNode& node) : endpoint_(endpoint), node_(node) {}
  const Endpoint& endpoint() const override { return endpoint_; }
  Result<NodeStatus> Status(int64_t) override {
    NodeStatus status;
    status.allows_unsafe_captures = node_.allows_unsafe;
    status.host = endpoint_.host;
    status.now_unix_ns = UnixNow() + node_.clock_offset_ns;
    return status;
  }
  Result<std::vector<Process>> Processes(int64_t) override { return node_.processes; }
  Result<Capture> StartCapture(const CaptureSpec& spec, int64_t) override {
    const std::lock_guard lock(node_.mutex);
    node_.specs.push_back(spec);
    Capture capture;
    capture.id = fmt::format("c{}", node_.specs.size());
    capture.spec = spec;
    for (const Process& process : node_.processes) {
      const auto& ids = spec.selector.process_ids;
      if (std::find(ids.begin(), ids.end(), process.id) == ids.end()) continue;
      CaptureTarget target;
      target.process = process;
      capture.targets.push_back(target);
    }
    return capture;
  }
  Result<std::vector<Capture>> Captures(int64_t) override { return std::vector<Capture>(); }
  Result<NetworkTest> StartNetworkTest(const NetworkTestSpec&, int64_t) override { return NetworkTest(); }
  Result<NetworkTest> GetNetworkTest(const std::string&, int64_t) override { return NetworkTest(); }
  Result<Inspection> Inspect(const InspectionSpec&, int64_t) override { return Inspection(); }
  Result<NodeStages> Stages(const StagesQuery&, int64_t) override { return NodeStages(); }
  Result<Capture> GetCapture(const std::string& id, int64_t) override {
    if (node_.silent_after_start) return Error{ErrorCode::kIo, "connection refused"};
    const std::lock_guard lock(node_.mutex);
    const auto attempt = static_cast<int>(node_.specs.size());
    const CaptureSpec& spec = node_.specs.back();
    Capture capture;
    capture.id = id;
    for (const Process& process : node_.processes) {
      const auto& ids = spec.selector.process_ids;
      if (std::find(ids.begin(), ids.end(), process.id) == ids.end()) continue;
      CaptureTarget target;
      target.process = process;
      target.delivered_unix_ns = UnixNow() + node_.clock_offset_ns;
      target.state = node_.ends.contains(process.pid) ? node_.ends[process.pid] : TargetState::kDone;
      if (target.state == TargetState::kDone) {
        const int64_t start =
            node_.start_of ? node_.start_of(attempt, process.pid) : spec.window.start_unix_ns.value_or(UnixNow());
        const bool steps = spec.window.mode == CaptureWindow::Mode::kIterations;
        target.trace_name = fmt::format("{}-{}.json", id, process.pid);
        node_.traces[target.trace_name] =
            TraceText(start, steps ? spec.window.iterations * 20 * kMillisecondNs : spec.window.duration_ns,
                      spec.window.iterations);
        target.trace_bytes = node_.traces[target.trace_name].size();
      } else {
        target.reason = "the process ended";
      }
      capture.targets.push_back(target);
    }
    return capture;
  }
  Result<Capture> CancelCapture(const std::string& id, int64_t) override {
    const std::lock_guard lock(node_.mutex);
    node_.removed.push_back(id);
    return Capture{};
  }
  lockstep::Status Download(const std::string&, const std::string& name, int64_t,
                            const std::function<lockstep::Status(std::string_view)>& sink) override {
    const std::string& text = node_.traces.at(name);
    RETURN_IF_ERROR(sink(std::string_view(text).substr(0, text.size() / 2)));
    return sink(std::string_view(text).substr(text.size() / 2));
  }

 private:
  const Endpoint endpoint_;
  MadeNode& node_;
};

class CaptureJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    request_.folder = pattern;
    request_.connect = [this](const Endpoint& endpoint) -> Result<std::unique_ptr<NodeClient>> {
      if (!nodes_.contains(endpoint.host)) return Error{ErrorCode::kNotFound, "no lockstepd answers"};
      return std::unique_ptr<NodeClient>(std::make_unique<MadeClient>(endpoint, nodes_[endpoint.host]));
    };
  }
  void TearDown() override { fs::remove_all(request_.folder); }

  void AddNode(const std::string& host, std::vector<int32_t> ranks) {
    Endpoint endpoint;
    endpoint.host = host;
    request_.nodes.push_back(endpoint);
    for (const int32_t rank : ranks) {
      Process process;
      process.pid = 100 + rank;
      process.id = fmt::format("{}-1", process.pid);
      process.rank = rank;
      process.job_id = "5";
      process.poll_period_ns = kSecondNs;
      process.device = "cpu";
      process.torch_version = "2.14.0";
      process.last_poll_unix_ns = UnixNow();
      nodes_[host].processes.push_back(process);
    }
  }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(request_.folder), fs::directory_iterator()));
  }

  JobCaptureRequest request_;
  std::map<std::string, MadeNode> nodes_;
};

TEST_F(CaptureJobTest, NobodyIsAskedWhereKinetoMayEndAProcessUnlessThatIsAllowed) {
  AddNode("n1", {0, 1});
  AddNode("n2", {2, 3});
  nodes_["n2"].processes[0].torch_version = nodes_["n2"].processes[1].torch_version = "2.13.0";
  const auto refused = CaptureJob(request_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(refused.error().message,
              HasSubstr("rank 2 and 1 more on n2: Kineto in PyTorch 2.13.0 can crash the process"));
  EXPECT_THAT(refused.error().message, HasSubstr("--allow-unsafe"));
  EXPECT_TRUE(nodes_["n1"].specs.empty());
  nodes_["n2"].allows_unsafe = true;
  EXPECT_EQ(CaptureJob(request_)->kept_count(), 4u);
  nodes_["n2"].allows_unsafe = false;
  request_.allow_unsafe = true;
  EXPECT_EQ(CaptureJob(request_)->kept_count(), 4u);
  EXPECT_TRUE(nodes_["n1"].specs.back().allow_unsafe);
}

TEST_F(CaptureJobTest, TracesOfAllNodesComeToOneFolderAndLeaveTheNodes) {
  AddNode("n1", {0, 1});
  AddNode("n2", {2, 3});
  nodes_["n2"].clock_offset_ns = 40 * kSecondNs;
  const auto result = CaptureJob(request_);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->kept_count(), 4u);
  EXPECT_FALSE(result->partial());
  EXPECT_EQ(FileCount(), 4u);
  EXPECT_THAT(result->targets[3].file, HasSubstr("5-n2-rank3-pid103-"));
  // The start is one moment, by each node's own clock.
  const int64_t first = *nodes_["n1"].specs.at(0).window.start_unix_ns;
  const int64_t second = *nodes_["n2"].specs.at(0).window.start_unix_ns;
  EXPECT_NEAR(static_cast<double>(second - first), 40e9, 50e6);
  EXPECT_EQ(nodes_["n1"].specs[0].group, nodes_["n2"].specs[0].group);
  EXPECT_LT(*result->start_spread_ns, 50 * kMillisecondNs);
  EXPECT_EQ(nodes_["n1"].removed.size(), 1u);
  EXPECT_EQ(nodes_["n2"].removed.size(), 1u);
}

TEST_F(CaptureJobTest, ADeadNodeAndADeadRankAreNamedAndTheRestIsKept) {
  AddNode("n1", {0, 1});
  Endpoint dead;
  dead.host = "n2";
  request_.nodes.push_back(dead);
  nodes_["n1"].ends[101] = TargetState::kDied;
  for (Process& process : nodes_["n1"].processes) process.world_size = 4;
  const auto result = CaptureJob(request_);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->partial());
  EXPECT_EQ(result->kept_count(), 1u);
  EXPECT_EQ(result->targets[1].reason, "the process ended");
  EXPECT_THAT(result->nodes[1].problem, HasSubstr("no lockstepd"));
  EXPECT_THAT(result->missing_ranks, ::testing::ElementsAre(2, 3));
}

TEST_F(CaptureJobTest, ALeadThatWouldLoseRanksIsRefused) {
  AddNode("n1", {0, 1});
  request_.start = StartMode::kLead;
  request_.lead_ns = 2 * kSecondNs;
  const auto result = CaptureJob(request_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, HasSubstr("at least 4.0 s"));
  EXPECT_TRUE(nodes_["n1"].specs.empty());
}

TEST_F(CaptureJobTest, NobodyAnswers) {
  Endpoint dead;
  dead.host = "n2";
  request_.nodes = {dead, dead};
  const auto result = CaptureJob(request_);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("none of the 2 nodes answered"));
}

TEST_F(CaptureJobTest, ASingleProcessBeginsWhenItPolls) {
  AddNode("n1", {0});
  const auto result = CaptureJob(request_);
  ASSERT_TRUE(result);
  EXPECT_FALSE(nodes_["n1"].specs.at(0).window.start_unix_ns);
}

TEST_F(CaptureJobTest, StepsThatAreApartAreTracedAgainWithALargerRoundUp) {
  AddNode("n1", {0, 1});
  // Rank 1 asks 0.4 s later; steps take 20 ms.
  nodes_["n1"].processes[1].last_poll_unix_ns += 400 * kMillisecondNs;
  request_.window.mode = CaptureWindow::Mode::kIterations;
  request_.window.iterations = 5;
  request_.window.roundup = 10;
  const int64_t base = UnixNow();
  nodes_["n1"].start_of = [&](int attempt, int32_t pid) {
    return base + attempt * kSecondNs +
           (attempt == 1 && pid == 101 ? 400 * kMillisecondNs : pid * kMillisecondNs / 100);
  };
  const auto result = CaptureJob(request_);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->attempt_count, 2);
  EXPECT_EQ(result->steps.verdict, StepAgreement::Verdict::kSame);
  EXPECT_EQ(result->roundup, 100);
  EXPECT_TRUE(nodes_["n1"].specs.at(0).window.deliver_from_unix_ns);
  EXPECT_EQ(nodes_["n1"].specs.at(1).window.roundup, 100);
  EXPECT_EQ(FileCount(), 2u);
  EXPECT_EQ(nodes_["n1"].removed.size(), 2u);
}

TEST_F(CaptureJobTest, CancellingEndsIt) {
  AddNode("n1", {0, 1});
  nodes_["n1"].ends[101] = TargetState::kQueued;
  std::atomic<bool> cancelled = false;
  request_.cancelled = &cancelled;
  request_.on_progress = [&](const JobProgress& progress) {
    for (const JobTarget& target : progress.targets) cancelled = cancelled || target.kept();
  };
  const auto result = CaptureJob(request_);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->cancelled);
  EXPECT_EQ(result->kept_count(), 1u);
  EXPECT_EQ(result->targets[1].state, TargetState::kCancelled);
  EXPECT_FALSE(nodes_["n1"].removed.empty());
  EXPECT_EQ(FileCount(), 1u);
}

}  // namespace
}  // namespace lockstep::control
