#pragma once

#include <cstdint>

#include "inside/nccl_profiler/interface.h"
#include "inside/nccl_profiler/pool.h"
#include "inside/nccl_profiler/ring.h"

namespace lockstep::instrument {

/// What NCCL's profiler interface is answered with, whatever its version. Callbacks come from the program's threads and
/// from NCCL's own, at once; none of them allocates, locks, throws or fails.
class Profiler {
 public:
  static constexpr uint32_t kMostProxies = 8192;
  static constexpr uint32_t kMostSteps = 16384;

  /// Of a communicator. Out: the context for its events, and which events are wanted. `mask` may be null.
  void* Begin(const Layout& layout, uint64_t id, const char* name, int rank, int rank_count, int node_count, int* mask);
  void End(void* context);
  /// The handle of an event, or null where it is not recorded.
  void* Start(const Layout& layout, void* context, const void* descriptor);
  void Stop(void* handle);
  /// `args`: eight bytes in versions 4 and later, of which the first hold the device's time in state 22.
  void State(const Layout& layout, void* handle, int state, const void* args);
  void AtExit() { ring_.RemoveAtExit(); }
  /// In a child of fork: its parent's file is not its own.
  void Disable() { __atomic_store_n(&disabled_, true, __ATOMIC_RELAXED); }

 private:
  struct Proxy {
    RingOperation* operation;
    int32_t peer;
    bool is_send;
  };
  struct Step {
    RingOperation* operation;
    int64_t since_ns;
    int32_t peer;
    bool is_send;
    WaitingFor waiting_for;
  };

  /// Gives it its number on the communicator, and shows it.
  void CountBegun(RingOperation* operation, uint64_t number);
  void* StartCollective(const Layout& layout, int communicator, const void* descriptor);
  void* StartCopyEngine(int communicator, const void* descriptor);
  void* StartP2p(const Layout& layout, int communicator, const void* descriptor);
  void* StartKernel(const Layout& layout, void* parent, const void* descriptor);
  void* StartProxy(void* parent, const void* descriptor);
  void* StartStep(void* parent);
  void ChangeStep(Step* step, WaitingFor waiting_for);
  RingOperation* OperationOf(void* handle) const;
  /// Adds to the counts of parts that have begun and ended; the caller that adds the last end records that the
  /// operation is over.
  void Progress(RingOperation* operation, uint64_t what);

  Ring ring_;
  Pool<Proxy, kMostProxies> proxies_;
  Pool<Step, kMostSteps> steps_;
  int opening_ = 0;  ///< 0 not yet, 1 in progress, 2 done.
  bool records_steps_ = false;
  bool disabled_ = false;
};

}  // namespace lockstep::instrument
