#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/capture/capture_record.h"
#include "node/agent/capture/capture_store.h"
#include "node/agent/capture/output_folder.h"
#include "node/agent/capture/target_progress.h"

namespace lockstep::agent {

/// One process of a capture while the manager runs.
struct TargetRun {
  TargetProgress progress;
  std::shared_ptr<OutputFolder> folder;  ///< Shared with those that send from it. Null: none, or not reachable.
  std::string token;                     ///< Of its offer: "CAPTURE/INDEX".
  bool placed = false;                   ///< The registry has its offer, or has handed it over.
  bool lingers = false;                  ///< Shown as cancelled while its window still runs: followed to its end.
  bool restored = false;                 ///< From an earlier daemon: may have progressed beyond its stored state.
  bool has_leftover = false;             ///< Of a request that its process dropped: to be removed before the next.
  bool swept = false;                    ///< Its offer and folder were dealt with after its end.
  std::optional<int64_t> withdrawal_failed_ns = {};  ///< Monotonic.
  std::optional<control::ProcessEnd> end = {};       ///< As the registry told it.
  std::optional<int64_t> end_seen_ns = {};           ///< Monotonic: the process was found to have ended.
};

struct CaptureEntry {
  CaptureRecord record;
  std::vector<TargetRun> runs;  ///< In the order of record.capture.targets.
  bool unsaved = false;
  bool changed = false;  ///< Listeners are to be told.
};

/// The manager. Locks, in this order: store_mutex_ (the disk), mutex_ (captures; never held over disk or files),
/// events_mutex_ (what the registry's thread waits for; held for a push only). The registry is called with mutex_ held:
/// its listener takes events_mutex_ alone.
class CaptureManagerImpl : public CaptureManager {
 public:
  CaptureManagerImpl(const CaptureManagerOptions& options, Registry* registry, std::unique_ptr<CaptureStore> store);
  ~CaptureManagerImpl() override;
  /// Reads the store, listens to the registry, starts the thread.
  void Begin();

  Result<control::Capture> Start(const control::CaptureSpec& spec, const Caller& caller) override;
  Result<control::Capture> Start(const control::CaptureSpec& spec, const Caller& caller,
                                 const ForeignOutput& output) override;
  std::vector<control::Capture> List(const Caller& caller) const override;
  Result<control::Capture> Get(const std::string& id, const Caller& caller) const override;
  Result<control::Capture> Cancel(const std::string& id, const Caller& caller) override;
  Result<OpenTrace> Open(const std::string& id, const std::string& trace_name, const Caller& caller) const override;
  std::shared_ptr<void> Watch(const std::string& id, std::function<void(const control::Capture&)> listener) override;
  std::vector<std::string> Problems() const override;
  CaptureCounts Counts() const override;

 private:
  struct Listener {
    std::string id;
    std::recursive_mutex mutex;  // Recursive: a listener may let go of itself.
    std::function<void(const control::Capture&)> call;
  };
  // One target's outside facts, gathered without the lock.
  struct Look {
    std::string capture_id;
    size_t idx = 0;
    control::Process process;
    std::shared_ptr<OutputFolder> folder;
    std::string final_name;
    std::string trace_id;
    bool has_leftover = false;
    bool ended = false;
    FileObservation file = {};
    PollFacts facts = {};
  };
  // A process that a capture takes in: its folder is made without the lock.
  struct Newcomer {
    std::optional<Error> error = {};  // Of one that is refused at once.
    control::CaptureTarget target;
    TargetPlace place;
    std::shared_ptr<OutputFolder> folder;
  };

  // capture_manager.cc

  /// Takes up what the store has kept of an earlier daemon.
  void Load() LOCKSTEP_EXCLUDES(store_mutex_, mutex_);
  /// Makes the runs of a capture that the store has kept, in whatever state it was left.
  void TakeUp(CaptureEntry* entry, const Instant& now);
  /// Null: there is none of this id. Valid until the mutex is let go.
  CaptureEntry* FindEntry(const std::string& id) const LOCKSTEP_REQUIRES(mutex_);
  static bool MaySee(const CaptureEntry& entry, const Caller& caller);
  /// An empty problem: that is over.
  void Note(const std::string& key, const std::string& problem) const LOCKSTEP_EXCLUDES(mutex_);

  // capture_start.cc

  Result<control::Capture> StartAt(const control::CaptureSpec& spec, const Caller& caller, const ForeignOutput* output)
      LOCKSTEP_EXCLUDES(mutex_);
  /// Makes the process's folder on disk.
  Newcomer MakeNewcomer(const CaptureRecord& record, const control::Process& process, const Instant& now);
  static void Add(CaptureEntry* entry, Newcomer newcomer, const Instant& now);
  Result<std::string> ConfigText(const CaptureRecord& record, size_t idx) const;

  // capture_rounds.cc: the thread's. A round gathers what is to be looked at, looks without a lock, and applies what it
  // has seen.

  void Run(const std::stop_token& stop);
  /// True: something is under way.
  bool Round() LOCKSTEP_EXCLUDES(store_mutex_, mutex_, events_mutex_);
  /// What the registry has said since the last round.
  void TakeEvents(const Instant& now) LOCKSTEP_EXCLUDES(mutex_, events_mutex_);
  void NoteEnd(const std::string& process_id, const control::ProcessEnd& end) LOCKSTEP_REQUIRES(mutex_);
  /// A rank has died: what the others of its job have not fetched yet is taken back.
  void TakeBackOfJob(CaptureEntry* entry, size_t idx, const Instant& now) LOCKSTEP_REQUIRES(mutex_);
  /// Takes processes in that have come since captures which still wait for some were started.
  void Join() LOCKSTEP_EXCLUDES(mutex_);
  std::vector<Look> Gather() const LOCKSTEP_EXCLUDES(mutex_);
  /// Files and /proc: may take as long as they like.
  void LookAt(Look* look) const LOCKSTEP_EXCLUDES(mutex_);
  void Apply(const Look& look, const Instant& now) LOCKSTEP_REQUIRES(mutex_);
  /// Gives the registry the requests whose turn has come: of one process one at a time.
  void PlaceOffers(const Instant& now) LOCKSTEP_EXCLUDES(mutex_);
  void GiveUp(TargetRun* run, const control::Process& process, const Instant& now) LOCKSTEP_REQUIRES(mutex_);
  /// Ends the capture once all of its targets have ended.
  void Settle(CaptureEntry* entry, const Instant& now) LOCKSTEP_REQUIRES(mutex_);
  /// Withdraws requests and removes folders of targets that have ended without a trace.
  void Sweep() LOCKSTEP_EXCLUDES(mutex_);
  /// Writes what has changed, then tells listeners. What cannot be written stays unsaved, and is tried again.
  void SaveAndTell() LOCKSTEP_EXCLUDES(store_mutex_, mutex_);

  // capture_expiry.cc: at the end of a round.

  /// Forgets captures that ended too long ago or are too many, and removes traces beyond what they may take together.
  void Expire() LOCKSTEP_EXCLUDES(store_mutex_, mutex_);
  std::optional<int64_t> NextExpiryNs() const LOCKSTEP_EXCLUDES(mutex_);

  // Constant after construction.
  const CaptureManagerOptions options_;
  Registry* const registry_;
  const Instant started_;

  mutable Mutex store_mutex_;
  std::unique_ptr<CaptureStore> store_ LOCKSTEP_GUARDED_BY(store_mutex_);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<CaptureEntry>> entries_ LOCKSTEP_GUARDED_BY(mutex_);   // Oldest first.
  std::vector<std::shared_ptr<Listener>> listeners_ LOCKSTEP_GUARDED_BY(mutex_);     // Shared with the handles.
  mutable std::map<std::string, std::string> problems_ LOCKSTEP_GUARDED_BY(mutex_);  // By what is wrong.
  CaptureCounts counts_ LOCKSTEP_GUARDED_BY(mutex_);                                 // Without stored_bytes.

  Mutex events_mutex_;
  std::condition_variable_any wake_;
  std::deque<RegistryEvent> events_ LOCKSTEP_GUARDED_BY(events_mutex_);
  bool woken_ LOCKSTEP_GUARDED_BY(events_mutex_) = false;
  void Wake();

  std::jthread thread_;
};

/// Both clocks, now.
Instant Now();
TargetPlan PlanOf(const control::CaptureSpec& spec, const control::Process& process, const TargetPlace& place);
/// REQUEST_TRACE_ID of a target.
std::string TraceId(const CaptureRecord& record, size_t idx);
/// The spec's, without the start that this target missed.
control::CaptureWindow WindowOf(const CaptureRecord& record, size_t idx);
/// What can serve one request at a time: both clients of a process are one.
std::string ProfilerOf(const control::Process& process);
/// Puts what the progress says into what is shown.
/// Out: whether anything changed.
bool Show(const TargetRun& run, const TargetPlace& place, control::CaptureTarget* target);

}  // namespace lockstep::agent
