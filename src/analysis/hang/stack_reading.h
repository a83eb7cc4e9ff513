#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/hang/operation.h"
#include "model/evidence/stack.h"

namespace lockstep::hang {

enum class MainThreadPlace : uint8_t {
  kUnknown,     ///< No stack, or nothing of it is known.
  kCollective,  ///< In a call of torch.distributed, or in Gloo, NCCL or c10d beneath one.
  kP2p,         ///< In a send or a receive, or waiting for one.
  kDeviceSync,  ///< Waits for the device: the cause is on the device's side.
  kStoreWait,   ///< Waits for a key of the c10d store: a rendezvous, a new group, a monitored barrier.
  kRaised,      ///< In the hook of an uncaught exception.
  kExiting,     ///< The interpreter is shutting down.
  kOutside,     ///< In the user's code, outside of communication.
};

/// What a process's main thread is in the middle of.
struct MainThread {
  MainThreadPlace place = MainThreadPlace::kUnknown;
  OperationKind operation = OperationKind::kOther;
  std::string operation_name;  ///< "all_reduce"; "" = not told.
  std::string activity;  ///< Of kOutside, where frames tell: "in the data loader", "asleep", "in a file operation".
  std::string function;  ///< The user's innermost frame.
  std::string file;
  int32_t line = 0;
  std::vector<evidence::StackFrame> frames;  ///< Python's, else native ones; innermost first.
  char state = '?';
  bool dumps_itself = false;  ///< Its innermost frames write the evidence: where it was before is not known.
};

/// Tells the main thread by its mark, else by its outermost frame.
const evidence::ThreadStack* FindMainThread(const std::vector<evidence::ThreadStack>& stacks);
MainThread ReadMainThread(const std::vector<evidence::ThreadStack>& stacks);
/// A thread other than `main` that holds the interpreter's lock while others want it; nullptr = none is told.
const evidence::ThreadStack* FindLockHolder(const std::vector<evidence::ThreadStack>& stacks);

}  // namespace lockstep::hang
