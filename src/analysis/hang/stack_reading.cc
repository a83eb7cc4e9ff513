#include "analysis/hang/stack_reading.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/hang/contains.h"
#include "analysis/hang/job_view.h"

namespace lockstep::hang {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

bool InTorch(std::string_view file) {
  return Contains(file, "-packages/torch/") || file.starts_with("torch/") || Contains(file, "/torch/distributed/");
}

struct Rule {
  std::string_view part;  ///< Of a native function's name.
  MainThreadPlace place;
};
/// In order: the first that any frame matches decides.
constexpr std::array<Rule, 22> kNativeRules = {{
    {"ncclCommInitRank", MainThreadPlace::kStoreWait},
    {"bootstrapInit", MainThreadPlace::kStoreWait},
    {"TCPStore", MainThreadPlace::kStoreWait},
    {"PrefixStore", MainThreadPlace::kStoreWait},
    {"FileStore", MainThreadPlace::kStoreWait},
    {"gloo::rendezvous", MainThreadPlace::kStoreWait},
    {"gloo::", MainThreadPlace::kCollective},
    {"ProcessGroupGloo", MainThreadPlace::kCollective},
    {"ProcessGroupMPI", MainThreadPlace::kCollective},
    {"ProcessGroupUCC", MainThreadPlace::kCollective},
    {"ProcessGroupWrapper", MainThreadPlace::kCollective},
    {"WorkNCCL::", MainThreadPlace::kCollective},
    {"c10d::Work::wait", MainThreadPlace::kCollective},
    {"cudaStreamSynchronize", MainThreadPlace::kDeviceSync},
    {"cuStreamSynchronize", MainThreadPlace::kDeviceSync},
    {"cudaEventSynchronize", MainThreadPlace::kDeviceSync},
    {"cuEventSynchronize", MainThreadPlace::kDeviceSync},
    {"cudaDeviceSynchronize", MainThreadPlace::kDeviceSync},
    {"cuCtxSynchronize", MainThreadPlace::kDeviceSync},
    {"_local_scalar_dense_cuda", MainThreadPlace::kDeviceSync},
    {"hipStreamSynchronize", MainThreadPlace::kDeviceSync},
    {"hipDeviceSynchronize", MainThreadPlace::kDeviceSync},
}};

struct CallName {
  std::string_view function;
  std::string_view operation;  ///< As ReadOperation knows it.
};
/// Functions of torch/distributed/distributed_c10d.py and the operations they end in.
constexpr std::array<CallName, 34> kCalls = {{
    {"all_reduce", "all_reduce"},
    {"all_reduce_coalesced", "all_reduce"},
    {"all_gather", "all_gather"},
    {"all_gather_into_tensor", "all_gather"},
    {"all_gather_single", "all_gather"},
    {"_all_gather_base", "all_gather"},
    {"all_gather_coalesced", "all_gather"},
    {"all_gather_object", "all_gather"},
    {"reduce_scatter", "reduce_scatter"},
    {"reduce_scatter_tensor", "reduce_scatter"},
    {"reduce_scatter_single", "reduce_scatter"},
    {"_reduce_scatter_base", "reduce_scatter"},
    {"all_to_all", "all_to_all"},
    {"all_to_all_single", "all_to_all"},
    {"broadcast", "broadcast"},
    {"broadcast_object_list", "broadcast"},
    {"reduce", "reduce"},
    {"gather", "gather"},
    {"gather_object", "gather"},
    {"scatter", "scatter"},
    {"scatter_object_list", "scatter"},
    {"barrier", "barrier"},
    {"monitored_barrier", "barrier"},
    {"send", "send"},
    {"isend", "send"},
    {"send_object_list", "send"},
    {"recv", "recv"},
    {"irecv", "recv"},
    {"recv_object_list", "recv"},
    {"batch_isend_irecv", "send"},
    {"split_group", ""},
    {"new_group", ""},
    {"_new_group_with_tag", ""},
    {"init_process_group", ""},
}};

std::string_view BareFunction(std::string_view function) {
  const size_t dot = function.rfind('.');
  return dot == std::string_view::npos ? function : function.substr(dot + 1);
}

void ReadPythonFrames(const std::vector<StackFrame>& frames, MainThread& main) {
  for (const StackFrame& frame : frames) {
    if (InTorch(frame.file)) {
      const std::string_view function = BareFunction(frame.function);
      if (function == "_distributed_excepthook") {
        main.place = MainThreadPlace::kRaised;
        return;
      }
      if (Contains(frame.file, "torch/distributed/")) {
        for (const CallName& call : kCalls) {
          if (call.function == function) {
            // The outermost of several names what the user called: all_gather_into_tensor calls all_gather_single.
            const bool is_setup = call.operation.empty();
            if (is_setup) {
              main.place = MainThreadPlace::kStoreWait;
              main.operation_name = call.function;
            } else {
              const Operation operation = ReadOperation(call.operation);
              const bool is_p2p = operation.kind == OperationKind::kSend || operation.kind == OperationKind::kRecv;
              main.place = is_p2p ? MainThreadPlace::kP2p : MainThreadPlace::kCollective;
              main.operation = operation.kind;
              main.operation_name = call.operation;
            }
          }
        }
        if (main.place == MainThreadPlace::kUnknown &&
            (Contains(frame.file, "rendezvous.py") || function == "_store_based_barrier")) {
          main.place = MainThreadPlace::kStoreWait;
        }
      }
      if (main.place == MainThreadPlace::kUnknown && function == "synchronize" && Contains(frame.file, "torch/cuda/")) {
        main.place = MainThreadPlace::kDeviceSync;
      }
      if (main.activity.empty() && Contains(frame.file, "torch/utils/data/")) {
        main.activity = "in the data loader";
      }
      if (main.activity.empty() && Contains(frame.file, "torch/serialization.py")) {
        main.activity = "in torch.save or torch.load";
      }
      continue;
    }
    if (IsUserFile(frame.file)) {
      if (main.file.empty()) {
        main.function = frame.function;
        main.file = frame.file;
        main.line = frame.line;
      }
      if (main.place != MainThreadPlace::kUnknown) {
        return;
      }
      continue;
    }
    if (BareFunction(frame.function) == "_shutdown" && Contains(frame.file, "threading.py")) {
      main.place = MainThreadPlace::kExiting;
    }
  }
}

void ReadNativeFrames(const ThreadStack& thread, MainThread& main) {
  if (main.place == MainThreadPlace::kUnknown || main.place == MainThreadPlace::kOutside) {
    for (const Rule& rule : kNativeRules) {
      const bool found = std::any_of(thread.native.begin(), thread.native.end(),
                                     [&](const StackFrame& frame) { return Contains(frame.function, rule.part); });
      if (found) {
        main.place = rule.place;
        break;
      }
    }
  }
  if (!main.activity.empty() || main.place != MainThreadPlace::kUnknown) {
    return;
  }
  for (size_t i = 0; i < thread.native.size() && i < 12; ++i) {
    const std::string& function = thread.native[i].function;
    if (Contains(function, "nanosleep") || Contains(function, "time_sleep") || Contains(function, "pysleep")) {
      main.activity = "asleep";
      return;
    }
  }
}

void ReadKernelFacts(const ThreadStack& thread, MainThread& main) {
  if (!main.activity.empty()) {
    return;
  }
  if (thread.state == 'D') {
    main.activity = "in an uninterruptible wait of the kernel" +
                    (thread.wait_channel.empty() ? std::string() : " (" + thread.wait_channel + ")");
  } else if (thread.syscall == "clock_nanosleep" || thread.syscall == "nanosleep" ||
             Contains(thread.wait_channel, "nanosleep")) {
    main.activity = "asleep";
  } else if (thread.syscall == "read" || thread.syscall == "pread64" || thread.syscall == "openat" ||
             thread.syscall == "fsync" || thread.syscall == "write" || thread.syscall == "pwrite64") {
    main.activity = "in the system call " + thread.syscall;
  } else if (thread.state == 'R') {
    main.activity = "computing";
  } else if (thread.syscall == "futex") {
    main.activity = "waiting for a lock";
  }
}

/// Evidence helpers of ours and of others run in the thread that they look at.
bool WritesEvidence(const StackFrame& frame) {
  const std::string_view function = BareFunction(frame.function);
  return function == "_dump_fr_trace" || function == "dump_traceback" || function == "_dump_nccl_trace" ||
         function == "dump" || function == "dump_flight_recorder";
}

/// The thread of lockstep's own helper, which the process has only for the sake of the question.
bool IsOurHelper(const ThreadStack& thread) {
  return std::any_of(thread.python.begin(), thread.python.end(),
                     [](const StackFrame& frame) { return frame.file.ends_with("/lockstep/_hang.py"); });
}

}  // namespace

const ThreadStack* FindMainThread(const std::vector<ThreadStack>& stacks) {
  for (const ThreadStack& thread : stacks) {
    if (thread.is_main) {
      return &thread;
    }
  }
  for (const ThreadStack& thread : stacks) {
    if (!thread.python.empty() && thread.python.back().function == "<module>") {
      return &thread;
    }
  }
  for (const ThreadStack& thread : stacks) {
    if (thread.name == "MainThread") {
      return &thread;
    }
  }
  return stacks.size() == 1 ? &stacks.front() : nullptr;
}

MainThread ReadMainThread(const std::vector<ThreadStack>& stacks) {
  MainThread main;
  const ThreadStack* thread = FindMainThread(stacks);
  if (thread == nullptr) {
    return main;
  }
  main.frames = thread->python.empty() ? thread->native : thread->python;
  main.state = thread->state;
  main.dumps_itself = !thread->python.empty() && WritesEvidence(thread->python.front());
  ReadPythonFrames(thread->python, main);
  ReadNativeFrames(*thread, main);
  if (main.place == MainThreadPlace::kUnknown && !thread->python.empty()) {
    main.place = MainThreadPlace::kOutside;
  }
  if (main.place == MainThreadPlace::kOutside) {
    ReadKernelFacts(*thread, main);
  }
  return main;
}

const ThreadStack* FindLockHolder(const std::vector<ThreadStack>& stacks) {
  const ThreadStack* main = FindMainThread(stacks);
  for (const ThreadStack& thread : stacks) {
    if (thread.holds_gil && &thread != main && !IsOurHelper(thread)) {
      return &thread;
    }
  }
  return nullptr;
}

}  // namespace lockstep::hang
