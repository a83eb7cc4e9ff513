#include "node/control/client/dynolog_capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/text_scan.h"
#include "base/unique_fd.h"
#include "node/control/client/job_links.h"
#include "node/control/client/trace_file.h"
#include "node/control/client/trace_names.h"

namespace lockstep::control {
namespace {

// Kineto's poll period, its warm-up, its ticks and a margin: Dynolog gives no better information.
constexpr int64_t kLeadNs = 13 * kSecondNs;
constexpr auto kFollowEvery = std::chrono::milliseconds(300);

class DynologCapturer {
 public:
  DynologCapturer(const JobCaptureRequest& request, const std::vector<DynologNode>& nodes)
      : request_(request), nodes_(nodes) {}

  Result<JobCaptureResult> Run() {
    result_.asked_unix_ns = UnixNow();
    result_.window_name = WindowName(request_.window, result_.asked_unix_ns);
    ASSIGN_OR_RETURN(DynologRequest question, Question());
    Show(JobProgress::Phase::kAsking);
    RETURN_IF_ERROR(AskAll(question));
    Show(JobProgress::Phase::kStarted);
    Follow();
    result_.finished_unix_ns = UnixNow();
    result_.cancelled = cancelled();
    Show(JobProgress::Phase::kDone);
    return std::move(result_);
  }

 private:
  bool cancelled() const { return request_.cancelled != nullptr && *request_.cancelled; }
  void Show(JobProgress::Phase phase) const {
    if (request_.on_progress)
      request_.on_progress({phase, result_.nodes, result_.targets, result_.start_unix_ns, std::string()});
  }

  Result<DynologRequest> Question() {
    const CaptureSelector& selector = request_.selector;
    if (!selector.ranks.empty()) {
      return Error{.code = ErrorCode::kInvalidArgument,
                   .message = "Dynolog cannot select ranks: name processes with --pid, or leave --ranks out"};
    }
    if (!request_.allow_unsafe) {
      return Error{.code = ErrorCode::kFailedPrecondition,
                   .message =
                       "Dynolog traces processes with Kineto, which before PyTorch 2.14 can crash them: allow it with "
                       "--allow-unsafe, or use lockstepd and 'lockstep run'"};
    }
    DynologRequest question;
    if (!selector.job_id.empty()) {
      const auto job_id = WholeNumber(selector.job_id);
      if (!job_id) {
        return Error{.code = ErrorCode::kInvalidArgument,
                     .message = fmt::format("Dynolog selects jobs by SLURM's number only, not '{}'", selector.job_id)};
      }
      question.job_id = *job_id;
    }
    question.pids = selector.pids;
    question.window = request_.window;
    question.options = request_.options;
    std::error_code error;
    folder_ = std::filesystem::absolute(request_.folder, error).lexically_normal().string();
    while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
    if (error || folder_.find(".json") != std::string::npos) {
      return Error{.code = ErrorCode::kInvalidArgument,
                   .message = "with --dynolog the folder's name may not hold '.json': Kineto would put pids there",
                   .file = request_.folder};
    }
    // Processes of other users write there themselves.
    ::chmod(folder_.c_str(), 01777);
    if (request_.window.mode == CaptureWindow::Mode::kDuration && request_.start != StartMode::kNow) {
      const int64_t lead = request_.start == StartMode::kLead ? request_.lead_ns : kLeadNs;
      result_.start_unix_ns = (UnixNow() + lead) / kMillisecondNs * kMillisecondNs;
      question.window.start_unix_ns = result_.start_unix_ns;
    }
    return question;
  }

  std::string LogFile(size_t node) const {
    return fmt::format("{}/dynolog-{}-{}.json", folder_, SafeNamePart(nodes_[node].host), result_.window_name);
  }

  Status AskAll(const DynologRequest& question) {
    const auto answers =
        FanOut<DynologAnswer>(nodes_.size(), request_.parallel, kQuestionNs, [&](size_t i, int64_t left_ns) {
          DynologRequest own = question;
          own.log_file = LogFile(i);
          return AskDynolog(nodes_[i], own, left_ns);
        });
    size_t answered = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      JobNodeState node;
      node.host = nodes_[i].host;
      node.endpoint.host = nodes_[i].host;
      if (!answers[i]) {
        node.problem = answers[i].error().ToString();
        result_.nodes.push_back(std::move(node));
        continue;
      }
      ++answered;
      node.process_count = answers[i]->matched.size();
      result_.nodes.push_back(std::move(node));
      for (const int32_t pid : answers[i]->matched) AddTarget(i, pid, *answers[i]);
    }
    if (answered == 0) return Error{.code = ErrorCode::kNotFound, .message = result_.nodes.front().problem};
    if (result_.targets.empty()) {
      return Error{.code = ErrorCode::kNotFound,
                   .message =
                       "Dynolog knows no process that matches: were they started with KINETO_USE_DAEMON=1, dynolog "
                       "with --enable_ipc_monitor, and is --job SLURM's number (none for a job without SLURM)?"};
    }
    return {};
  }

  void AddTarget(size_t node, int32_t pid, const DynologAnswer& answer) {
    JobTarget target;
    target.node_idx = node;
    target.process.pid = pid;
    target.process.client_pids = {pid};
    target.process.host = nodes_[node].host;
    target.process.job_id = request_.selector.job_id;
    target.trace_name = DynologTracePath(LogFile(node), pid);
    if (std::find(answer.triggered.begin(), answer.triggered.end(), pid) != answer.triggered.end()) {
      target.state = TargetState::kDelivered;
      target.reason = "requested; Dynolog reports nothing until the file is there";
    } else {
      target.state = TargetState::kRefused;
      target.reason = "Dynolog did not pass the request on: the process has another one to fetch";
    }
    result_.targets.push_back(std::move(target));
  }

  void Follow() {
    int64_t deadline = UnixNow() + request_.timeout_ns;
    if (request_.window.mode == CaptureWindow::Mode::kDuration)
      deadline += request_.window.duration_ns + std::max(request_.lead_ns, kLeadNs);
    while (true) {
      bool open = false;
      for (JobTarget& target : result_.targets) {
        if (!IsFinal(target.state)) Look(target);
        open = open || !IsFinal(target.state);
      }
      Show(JobProgress::Phase::kFollowing);
      if (!open) return;
      if (cancelled() || UnixNow() > deadline) break;
      std::this_thread::sleep_for(kFollowEvery);
    }
    for (JobTarget& target : result_.targets) {
      if (IsFinal(target.state)) continue;
      target.state = cancelled() ? TargetState::kCancelled : TargetState::kTimedOut;
      target.reason = cancelled()
                          ? "cancelled here; Dynolog cannot take its request back"
                          : fmt::format(
                                "no trace came to {}: the folder may not be shared with {}, or the process dropped "
                                "the request",
                                target.trace_name, nodes_[target.node_idx].host);
    }
  }

  // The name without ".tmp" means that the trace is whole.
  void Look(JobTarget& target) {
    struct stat facts = {};
    const UniqueFd fd(::open(target.trace_name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) {
      if (::lstat((target.trace_name + ".tmp").c_str(), &facts) == 0 && facts.st_size > 0)
        target.state = TargetState::kWriting;
      return;
    }
    if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    target.state = TargetState::kDone;
    target.finished_unix_ns = UnixNow();
    target.trace_bytes = static_cast<uint64_t>(facts.st_size);
    const Status taken = Take(fd.get(), target);
    if (!taken) {
      target.fetch_error = taken.error().ToString();
      target.reason = fmt::format("could not be read: {}; it is still at {}", target.fetch_error, target.trace_name);
    }
  }

  Status Take(int fd, JobTarget& target) {
    const std::string path = folder_ + '/' +
                             TraceFileName(target.process, result_.nodes[target.node_idx].host, result_.window_name) +
                             ".json";
    ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file, TraceFile::Create(path, request_.compress));
    std::vector<char> piece(size_t{1} << 20);
    while (true) {
      const ssize_t count = ::read(fd, piece.data(), piece.size());
      if (count < 0) return Error{.code = ErrorCode::kIo, .message = "cannot be read", .file = target.trace_name};
      if (count == 0) break;
      RETURN_IF_ERROR(file->Write({piece.data(), static_cast<size_t>(count)}));
    }
    ASSIGN_OR_RETURN(target.facts, file->Keep(target.trace_bytes));
    target.file = file->path().substr(file->path().rfind('/') + 1);
    target.file_bytes = file->file_bytes();
    ::unlink(target.trace_name.c_str());  // Another user's file stays: the folder is sticky.
    return {};
  }

  const JobCaptureRequest& request_;
  const std::vector<DynologNode>& nodes_;
  JobCaptureResult result_;
  std::string folder_;
};

}  // namespace

Result<JobCaptureResult> CaptureThroughDynolog(const JobCaptureRequest& request,
                                               const std::vector<DynologNode>& nodes) {
  return DynologCapturer(request, nodes).Run();
}

}  // namespace lockstep::control
