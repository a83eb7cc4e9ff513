#include "node/agent/history/recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"

namespace lockstep::agent {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);
// A node has hundreds of series; who makes up thousands gets no more of them than a file of the default size holds.
constexpr size_t kMostSamples = 4096;

}  // namespace

Result<std::unique_ptr<HistoryRecorder>> HistoryRecorder::Open(Options options) {
  HistoryFile::Options file;
  file.path = options.path;
  file.limit_bytes = options.settings.limit_bytes;
  file.keep_ms = {options.settings.keep_ns / kMillisecondNs, options.settings.coarse_keep_ns / kMillisecondNs};
  std::string problem;
  ASSIGN_OR_RETURN(std::unique_ptr<HistoryFile> opened, HistoryFile::Open(file, UnixNow() / kMillisecondNs, &problem));
  if (!problem.empty() && options.log) options.log(problem);
  return std::unique_ptr<HistoryRecorder>(new HistoryRecorder(std::move(options), std::move(opened)));
}

HistoryRecorder::HistoryRecorder(Options options, std::unique_ptr<HistoryFile> file)
    : options_(std::move(options)), file_(std::move(file)), view_(file_->View()), bytes_(file_->bytes()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

HistoryRecorder::~HistoryRecorder() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void HistoryRecorder::Run(const std::stop_token& stop) {
  auto due = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    Look(UnixNow());
    // After a pause (a machine that slept) no looks are made up for.
    due += kEvery;
    if (const auto now = std::chrono::steady_clock::now(); due < now) due = now + kEvery;
    MutexLock lock(mutex_);
    wake_.wait_until(lock, stop, due, [] { return false; });
  }
}

void HistoryRecorder::Look(int64_t now_unix_ns) {
  health_.Begin(now_unix_ns);
  options_.visit([this](const prometheus::MetricFamily& family) {
    sampler_.Take(family);
    health_.Take(family);
  });
  const std::vector<HistorySample> samples = sampler_.Finish(kMostSamples);
  const std::vector<control::HistoryEvent> events = health_.Finish(samples);
  // A clock that was set back would hold the coarse looks up.
  const bool is_due =
      now_unix_ns >= coarse_due_unix_ns_ || coarse_due_unix_ns_ - now_unix_ns > options_.settings.coarse_every_ns;
  if (is_due) coarse_due_unix_ns_ = now_unix_ns + options_.settings.coarse_every_ns - kMillisecondNs * 500;
  const int64_t now_ms = now_unix_ns / kMillisecondNs;
  Status status = file_->Append(HistoryTier::kFine, now_ms, samples, {});
  static const std::vector<HistorySample> kNone;
  const Status coarse = file_->Append(HistoryTier::kCoarse, now_ms, is_due ? samples : kNone, events);
  if (status) status = coarse;
  bytes_ = file_->bytes();
  HistoryView view = file_->View();
  {
    const MutexLock lock(mutex_);
    std::swap(view_, view);
  }
  // Once for each kind of trouble, not each second.
  std::string trouble = status ? "" : status.error().ToString();
  if (trouble != told_ && !trouble.empty() && options_.log) options_.log(trouble);
  told_ = std::move(trouble);
}

control::History HistoryRecorder::Ask(const control::HistoryQuery& query) const {
  const MutexLock one_at_a_time(ask_mutex_);
  const HistoryView view = [this] {
    const MutexLock lock(mutex_);
    return view_;
  }();
  control::History history = AskHistory(view, query, UnixNow());
  history.host = options_.host;
  return history;
}

}  // namespace lockstep::agent
