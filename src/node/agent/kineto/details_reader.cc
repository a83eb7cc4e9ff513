#include "node/agent/kineto/details_reader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <thread>

#include "base/mutex.h"
#include "base/now.h"
#include "node/proc/proc_reader.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMaxHanging = 4;

}  // namespace

struct DetailsReader::Shared {
  struct Running {
    Job job;
    int64_t since_ns = 0;
    bool hangs = false;
  };

  Look look;
  int64_t hang_ns = 0;
  Mutex done_mutex;                           ///< Held over `done`; taken before mutex, never after.
  Done done LOCKSTEP_GUARDED_BY(done_mutex);  ///< Null once the reader is gone.

  Mutex mutex;
  std::condition_variable_any changed;
  std::deque<Job> queue LOCKSTEP_GUARDED_BY(mutex);
  std::list<Running> running LOCKSTEP_GUARDED_BY(mutex);
  size_t thread_count LOCKSTEP_GUARDED_BY(mutex) = 0;
  bool stopping LOCKSTEP_GUARDED_BY(mutex) = false;

  size_t HangingCount() const LOCKSTEP_REQUIRES(mutex) {
    return static_cast<size_t>(
        std::count_if(running.begin(), running.end(), [](const Running& one) { return one.hangs; }));
  }
  bool HangsFor(uint32_t uid) const LOCKSTEP_REQUIRES(mutex) {
    return std::any_of(running.begin(), running.end(),
                       [&](const Running& one) { return one.hangs && one.job.uid == uid; });
  }
  void Tell(uint64_t serial, proc::ProcessDetails details, bool gone) {
    const MutexLock lock(done_mutex);
    if (done) done(serial, std::move(details), gone);
  }
};

DetailsReader::Look DetailsReader::LookInto(std::string proc_root) {
  return [reader = proc::ProcReader(std::move(proc_root))](const Job& job, bool briefly) {
    if (briefly) return reader.ReadBriefly(job.pid, job.seen_boottime_ns);
    return job.refresh ? reader.Refresh(job.pid, job.known) : reader.Read(job.pid, job.seen_boottime_ns);
  };
}

DetailsReader::DetailsReader(Look look, Done done, int64_t hang_ns) : shared_(std::make_shared<Shared>()) {
  shared_->look = std::move(look);
  shared_->hang_ns = hang_ns;
  shared_->done = std::move(done);
  const MutexLock lock(shared_->mutex);
  StartThread(shared_);
}

DetailsReader::~DetailsReader() {
  {
    const MutexLock lock(shared_->done_mutex);
    shared_->done = nullptr;
  }
  MutexLock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, std::chrono::seconds(2),
                            [this]() LOCKSTEP_REQUIRES(shared_->mutex) { return shared_->thread_count == 0; });
}

void DetailsReader::StartThread(const std::shared_ptr<Shared>& shared) LOCKSTEP_REQUIRES(shared->mutex) {
  ++shared->thread_count;
  std::thread(Work, shared).detach();
}

void DetailsReader::Work(std::shared_ptr<Shared> shared) {
  MutexLock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock,
                         [&]() LOCKSTEP_REQUIRES(shared->mutex) { return shared->stopping || !shared->queue.empty(); });
    if (shared->stopping) break;
    Job job = std::move(shared->queue.front());
    shared->queue.pop_front();
    const bool brief = shared->HangsFor(job.uid);
    const auto self = shared->running.insert(shared->running.end(), {.job = job, .since_ns = SteadyNow()});
    lock.unlock();
    std::optional<proc::ProcessDetails> details = shared->look(job, brief);
    const bool gone = !details;
    shared->Tell(job.serial, std::move(details).value_or(proc::ProcessDetails{}), gone);
    lock.lock();
    const bool replaced = self->hangs;
    shared->running.erase(self);
    if (replaced) break;  // Another thread took over.
  }
  --shared->thread_count;
  shared->changed.notify_all();
}

void DetailsReader::Request(Job job) {
  const MutexLock lock(shared_->mutex);
  shared_->queue.push_back(std::move(job));
  shared_->changed.notify_one();
}

void DetailsReader::Tick(int64_t now_monotonic_ns) {
  std::vector<Job> hanging;
  {
    const MutexLock lock(shared_->mutex);
    for (Shared::Running& one : shared_->running) {
      if (one.hangs || now_monotonic_ns - one.since_ns < shared_->hang_ns || shared_->HangingCount() >= kMaxHanging)
        continue;
      one.hangs = true;
      hanging.push_back(one.job);
      StartThread(shared_);
    }
  }
  for (const Job& job : hanging) {
    std::optional<proc::ProcessDetails> details = shared_->look(job, true);
    const bool gone = !details;
    if (!job.refresh) shared_->Tell(job.serial, std::move(details).value_or(proc::ProcessDetails{}), gone);
  }
}

int DetailsReader::hanging_count() const {
  const MutexLock lock(shared_->mutex);
  return static_cast<int>(shared_->HangingCount());
}

}  // namespace lockstep::agent
