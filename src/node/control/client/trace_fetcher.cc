#include "node/control/client/trace_fetcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "node/control/client/trace_file.h"

namespace lockstep::control {
namespace {

constexpr size_t kThreads = 4;
constexpr int kTries = 3;
constexpr int64_t kStallNs = 30'000'000'000;
constexpr auto kPause = std::chrono::seconds(1);

bool MayPass(ErrorCode code) {
  return code == ErrorCode::kIo || code == ErrorCode::kCancelled || code == ErrorCode::kCorruptData ||
         code == ErrorCode::kNotFound;
}

}  // namespace

TraceFetcher::TraceFetcher(std::vector<Endpoint> nodes, Connect connect, bool compress)
    : nodes_(std::move(nodes)), connect_(std::move(connect)), compress_(compress) {}

TraceFetcher::~TraceFetcher() {
  Cancel();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TraceFetcher::Add(TraceJob job) {
  const MutexLock lock(mutex_);
  queue_.push_back(std::move(job));
  ++pending_;
  if (threads_.size() < kThreads && threads_.size() < pending_) threads_.emplace_back([this] { Work(); });
  changed_.notify_all();
}

std::vector<FetchedTrace> TraceFetcher::Take() {
  const MutexLock lock(mutex_);
  pending_ -= done_.size();
  return std::exchange(done_, {});
}

bool TraceFetcher::busy() const {
  const MutexLock lock(mutex_);
  return pending_ > 0;
}

void TraceFetcher::Cancel() {
  cancelled_ = true;
  changed_.notify_all();
}

void TraceFetcher::Work() {
  std::map<size_t, std::unique_ptr<NodeClient>> clients;  // One thread, one connection to a node.
  MutexLock lock(mutex_);
  while (true) {
    const auto next = std::find_if(queue_.begin(), queue_.end(), [&](const TraceJob& job) LOCKSTEP_REQUIRES(mutex_) {
      return nodes_[job.node_idx].tunnel.empty() || running_[job.node_idx] == 0;
    });
    if (next == queue_.end()) {
      if (stopping_) return;
      changed_.wait(lock);
      continue;
    }
    const TraceJob job = std::move(*next);
    queue_.erase(next);
    ++running_[job.node_idx];
    lock.unlock();
    FetchedTrace fetched = Fetch(job, clients);
    if (!nodes_[job.node_idx].tunnel.empty()) clients.clear();
    lock.lock();
    --running_[job.node_idx];
    done_.push_back(std::move(fetched));
    changed_.notify_all();
  }
}

FetchedTrace TraceFetcher::Fetch(const TraceJob& job, std::map<size_t, std::unique_ptr<NodeClient>>& clients) {
  FetchedTrace fetched;
  fetched.target_idx = job.target_idx;
  for (int attempt = 1; attempt <= kTries; ++attempt) {
    if (cancelled_) {
      fetched.status = Error{ErrorCode::kCancelled, "was cancelled"};
      return fetched;
    }
    auto& client = clients[job.node_idx];
    if (client == nullptr) {
      auto connected = connect_(nodes_[job.node_idx]);
      if (connected) {
        client = std::move(*connected);
      } else {
        fetched.status = std::move(connected).error();
      }
    }
    if (client != nullptr) fetched.status = Try(job, *client, fetched);
    if (fetched.status || !MayPass(fetched.status.error().code)) return fetched;
    client.reset();
    if (attempt == kTries || cancelled_) return fetched;
    MutexLock lock(mutex_);
    changed_.wait_for(lock, kPause, [&] { return cancelled_.load(); });
  }
  return fetched;
}

Status TraceFetcher::Try(const TraceJob& job, NodeClient& client, FetchedTrace& fetched) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file, TraceFile::Create(job.path, compress_));
  RETURN_IF_ERROR(client.Download(job.capture_id, job.trace_name, kStallNs, [&](std::string_view bytes) -> Status {
    if (cancelled_) return Error{ErrorCode::kCancelled, "was cancelled"};
    return file->Write(bytes);
  }));
  ASSIGN_OR_RETURN(fetched.facts, file->Keep(job.bytes));
  fetched.path = file->path();
  fetched.file_bytes = file->file_bytes();
  return {};
}

}  // namespace lockstep::control
