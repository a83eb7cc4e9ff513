#include "programs/cli/capture/status_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/nanoseconds.h"
#include "present/report/utf8.h"

namespace lockstep::cli {
namespace {

using control::Capture;
using control::Process;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kNow = 1'800'000'000'000'000'000;

Process RankOf(const std::string& host, int32_t rank, int32_t world_size) {
  Process process;
  process.pid = 4000 + rank;
  process.id = std::to_string(process.pid) + "-1";
  process.uid = 1000;
  process.user = "alice";
  process.client_pids = {process.pid, 3999};
  process.host = host;
  process.rank = rank;
  process.local_rank = rank % 4;
  process.world_size = world_size;
  process.job_kind = control::JobKind::kSlurm;
  process.job_id = "123";
  process.command = "python train.py --lr 0.1";
  process.device = "cuda";
  process.torch_version = "2.13.0";
  process.last_poll_unix_ns = kNow - 2 * kSecondNs;
  return process;
}

jobs::NodeView NodeOf(const std::string& host) {
  jobs::NodeView node;
  node.host = host;
  node.endpoint.host = host;
  node.endpoint.address = host;
  node.status.emplace();
  node.status->host = host;
  node.status->version = "0.1.0";
  node.status->now_unix_ns = kNow;
  node.status->started_unix_ns = kNow - 7200 * kSecondNs;
  node.clock = control::ClockDifference{100'000, 400'000};
  return node;
}

jobs::StatusView Sample() {
  jobs::StatusView view;
  view.asked_unix_ns = kNow;
  jobs::NodeView first = NodeOf("n001");
  jobs::NodeView second = NodeOf("n002");
  for (int32_t rank = 0; rank < 2; ++rank) first.processes.push_back(RankOf("n001", rank, 5));
  for (int32_t rank = 2; rank < 4; ++rank) second.processes.push_back(RankOf("n002", rank, 5));
  second.processes[1].state = control::ProcessState::kSilent;
  second.processes[1].last_poll_unix_ns = kNow - 90 * kSecondNs;
  Process launcher = RankOf("n001", 0, 5);
  launcher.role = control::ProcessRole::kLauncher;
  launcher.rank.reset();
  launcher.pid = 3999;
  launcher.command = "torchrun";
  first.processes.push_back(launcher);
  Process lone;
  lone.pid = 77;
  lone.uid = 1001;
  lone.device = "cpu";
  lone.last_poll_unix_ns = kNow - kSecondNs;
  lone.counts_iterations = false;
  second.processes.push_back(lone);
  Capture capture;
  capture.id = "abcdefgh01234567";
  capture.spec.group = "evening";
  capture.created_unix_ns = kNow - 3 * kSecondNs;
  capture.requested_by = "alice on n001";
  capture.targets.resize(2);
  capture.targets[0].state = control::TargetState::kDone;
  first.captures.push_back(capture);
  capture.id = "bbcdefgh01234567";
  capture.state = control::CaptureState::kDone;
  capture.targets[1].state = control::TargetState::kDone;
  second.captures.push_back(capture);
  capture.id = capture.spec.group = "older";
  capture.created_unix_ns = kNow - 4000 * kSecondNs;
  capture.spec.window.mode = control::CaptureWindow::Mode::kIterations;
  capture.spec.window.iterations = 5;
  second.captures.push_back(capture);
  second.clock = control::ClockDifference{-2 * kSecondNs, 1'000'000};
  second.status->problems = {"the socket \x1b[31mdynolog is another program's"};
  first.status->process_count = second.status->process_count = 3;
  jobs::NodeView third;
  third.host = "n003";
  third.endpoint.host = third.endpoint.address = "n003";
  third.error = Error{ErrorCode::kNotFound, "no lockstepd answers at n003:9476 (Connection refused)"};
  view.nodes = {first, second, third};
  return view;
}

std::string Text(const jobs::StatusView& view, bool all = false, int width = 100) {
  report::TextOptions options;
  options.width = width;
  options.unicode = false;
  std::ostringstream out;
  WriteStatusText(view, options, all, out);
  return out.str();
}

TEST(StatusOutputTest, AGlanceShowsJobsCapturesNodesAndProblems) {
  EXPECT_EQ(Text(Sample()),
            R"(2 nodes answered, 1 did not | 1 job | 5 processes | 1 capture running

Job 123 (slurm) | alice | 4 of 5 ranks on 2 nodes | 1 other (launchers, helpers)
  host  rank  local  state    pid  user   device  torch    last poll  command
  n001     0      0  idle    4000  alice  cuda    2.13.0  2.00 s ago  python train.py --lr 0.1
           1      1  idle    4001  alice  cuda    2.13.0  2.00 s ago  python train.py --lr 0.1
  n002     2      2  idle    4002  alice  cuda    2.13.0  2.00 s ago  python train.py --lr 0.1
           3      3  silent  4003  alice  cuda    2.13.0  90.0 s ago  python train.py --lr 0.1
  not registered: rank 4
  a capture could end 4 of them (Kineto of PyTorch 2.13.0), so it needs --allow-unsafe; under
  'lockstep run' it could not

Processes without a job | uid 1001 | 1 process on n002
  host  rank  local  state  pid  user  device  torch   last poll  command
  n002     -      -  idle    77  1001  cpu     -      1.00 s ago
  a capture could end 1 of them (Kineto of PyTorch of an unknown version), so it needs
  --allow-unsafe; under 'lockstep run' it could not
  1 of them cannot count iterations: capture by --duration

Captures
  capture  state    traces  nodes  window               began  asked for by
  evening  running     3/4      2  500 ms          3.00 s ago  alice on n001
  older    done        2/2      1  5 iterations  66.7 min ago  alice on n001

Nodes
  node  lockstepd   up for  processes  clock off by
  n001  0.1.0      120 min          3  under 400 us
  n002  0.1.0      120 min          3  -2.00 s +- 1.00 ms

Problems
  * n002: the socket ?[31mdynolog is another program's
  * n002: its clock is 2.00 s behind this machine's: does it keep time by NTP?
  * n003: no lockstepd answers at n003:9476 (Connection refused)
)");
}

TEST(StatusOutputTest, RanksThatDiedWhileTheyWereTracedOrSoonAfterItAreProblems) {
  jobs::StatusView view = Sample();
  Capture& capture = view.nodes[0].captures[0];
  control::CaptureTarget target;
  target.process = RankOf("n001", 3, 5);
  target.process.pid = 4003;
  target.state = control::TargetState::kDone;
  target.finished_unix_ns = view.nodes[0].status->now_unix_ns - 5'000'000'000;
  target.end = {.unix_ns = view.nodes[0].status->now_unix_ns - 3'000'000'000, .signal = 11};
  capture.targets.push_back(target);
  capture.targets.push_back(target);
  target.process.id = "4003-2";
  target.state = control::TargetState::kDied;
  target.end->signal.reset();
  target.end->exit_status = 1;
  capture.targets.push_back(target);
  target.process.id = "4003-3";
  target.end->exit_status = 0;
  capture.targets.push_back(target);
  const std::string text = Text(view);
  EXPECT_THAT(text,
              HasSubstr("n001: rank 3, pid 4003, was ended by SIGSEGV 3.00 s ago, 2.00 s after its trace (capture"));
  EXPECT_THAT(text, HasSubstr("pid 4003, ended with exit status 1 3.00 s ago, while it was being traced"));
  EXPECT_THAT(text, Not(HasSubstr("exit status 0")));
  EXPECT_EQ(text.find("SIGSEGV"), text.rfind("SIGSEGV")) << "one that died is said once";
}

TEST(StatusOutputTest, AllShowsLaunchersToo) {
  EXPECT_THAT(Text(Sample()), Not(HasSubstr("torchrun")));
  EXPECT_THAT(Text(Sample(), true), HasSubstr("torchrun"));
}

TEST(StatusOutputTest, NoLineIsWiderThanTheTerminal) {
  for (const int width : {40, 60, 80, 120}) {
    std::istringstream lines(Text(Sample(), true, width));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(report::DisplayWidth(line), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(StatusOutputTest, WhatNodesSayCannotMoveTheCursor) {
  jobs::StatusView view = Sample();
  view.nodes[0].host = "\x1b[2J";
  view.nodes[0].status->version = "\x1b]0;x\x07";
  for (Process& process : view.nodes[0].processes) {
    process.user = "\x1b[1A\r\n";
    process.job_id = "\x1b[1A";
    process.torch_version = process.device = process.command = "a\nb\x1b";
  }
  for (Capture& capture : view.nodes[0].captures) capture.requested_by = capture.spec.group = "\x1b\n";
  view.nodes[2].error->message = "\x1b[1A";
  EXPECT_THAT(Text(view, true), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Text(view, true), Not(HasSubstr("\r")));
}

TEST(StatusOutputTest, ALargeJobIsALineAHost) {
  jobs::StatusView view;
  for (int host = 0; host < 40; ++host) {
    jobs::NodeView node = NodeOf("n" + std::to_string(100 + host));
    for (int32_t rank = host * 4; rank < host * 4 + 4; ++rank) node.processes.push_back(RankOf(node.host, rank, 160));
    view.nodes.push_back(node);
  }
  view.nodes[1].processes[2].state = control::ProcessState::kTracing;
  const std::string text = Text(view);
  EXPECT_THAT(text, HasSubstr("160 of 160 ranks on 40 nodes"));
  EXPECT_THAT(text, HasSubstr("n101  4-7      3 idle, 1 tracing  cuda    2.13.0"));
  EXPECT_THAT(text, HasSubstr("8 more nodes; --all shows them"));
  EXPECT_THAT(text, HasSubstr("40 answered; clocks are within 500 us of this machine's"));
  EXPECT_THAT(Text(view, true), HasSubstr("4159"));
}

TEST(StatusOutputTest, NothingRegisteredSaysWhatToDo) {
  jobs::StatusView view;
  view.nodes.push_back(NodeOf("n001"));
  EXPECT_THAT(Text(view), HasSubstr("No process has registered: start the job with KINETO_USE_DAEMON=1"));
  view.job_id = "7";
  EXPECT_THAT(Text(view), HasSubstr("No process of job 7 has registered"));
}

TEST(StatusViewTest, JobsWithoutAnIdAreToldApartByTheirLauncher) {
  jobs::StatusView view;
  jobs::NodeView node = NodeOf("n001");
  for (int i = 0; i < 4; ++i) {
    Process process = RankOf("n001", i % 2, 2);
    process.job_id.clear();
    process.job_kind = control::JobKind::kTorchelastic;
    process.pid = 100 + i;
    process.client_pids = {process.pid, i < 2 ? 10 : 20};
    node.processes.push_back(process);
  }
  view.nodes.push_back(node);
  const std::vector<jobs::JobView> jobs = jobs::JobsOf(view);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].ranks.size(), 2U);
  EXPECT_TRUE(jobs[0].missing_ranks.empty());
}

TEST(StatusViewTest, OtherUsersJobsOfOneNameAreOthers) {
  jobs::StatusView view;
  jobs::NodeView node = NodeOf("n001");
  node.processes = {RankOf("n001", 0, 1), RankOf("n001", 0, 1)};
  node.processes[1].uid = 2000;
  view.nodes.push_back(node);
  EXPECT_EQ(jobs::JobsOf(view).size(), 2U);
}

TEST(StatusViewTest, ASenselessWorldSizeIsNotBelieved) {
  jobs::StatusView view;
  jobs::NodeView node = NodeOf("n001");
  node.processes = {RankOf("n001", 0, INT32_MAX)};
  view.nodes.push_back(node);
  EXPECT_LE(jobs::JobsOf(view).at(0).missing_ranks.size(), size_t{1} << 20);
}

}  // namespace
}  // namespace lockstep::cli
