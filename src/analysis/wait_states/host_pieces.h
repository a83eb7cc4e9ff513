#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/track_merge.h"
#include "analysis/wait_states/host_cause.h"
#include "analysis/wait_states/wait_states.h"
#include "model/event.h"
#include "model/run.h"

namespace lockstep::analysis {

using ThreadKey = std::pair<int64_t, int64_t>;  ///< Process and thread id.

/// How surely a piece says that the CPU worked.
enum class HostGrip : uint8_t {
  kNamed,     ///< Data loading, garbage collection, allocator, checkpoint.
  kOperator,  ///< Inside an operator.
  kAround,    ///< In an annotation, a Python frame, or a call that awaits a collective: perhaps just waiting.
};

/// A piece of a thread's time and the innermost range in it.
struct ThreadPortion {
  Interval span;
  RootCause cause = RootCause::kHost;
  NameId name;
  HostGrip grip = HostGrip::kAround;
};

/// The CPU threads of a rank that may hold up its work: those that launch, issue collectives or carry the steps.
class HostThreads {
 public:
  HostThreads(const model::RankTrace& trace, HostKinds* kinds);

  /// Adds a thread that launches or issues.
  void AddIssuer(ThreadKey thread) { issuers_[thread]; }

  /// Threads, by key: those added, and those with a step range.
  std::vector<ThreadKey> Issuers() const;
  /// Threads with operators of their own.
  std::vector<ThreadKey> Workers() const;

  /// Cuts `windows` (sorted, disjoint) of one thread by innermost range of operators, annotations, Python frames and
  /// runtime calls. What is outside of all (a step's range is not one) goes to `rest`, sorted. Cost: O(events of the
  /// thread up to the last window).
  std::vector<ThreadPortion> Cut(ThreadKey thread, const std::vector<Interval>& windows, std::vector<Interval>* rest);

 private:
  struct Lanes {
    std::vector<const model::EventColumns*> events;
    bool has_operators = false;
    bool has_step = false;
  };

  HostKinds* const kinds_;
  std::map<ThreadKey, Lanes> threads_;
  std::map<ThreadKey, bool> issuers_;
};

}  // namespace lockstep::analysis
