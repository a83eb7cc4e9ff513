#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/evidence/stack.h"
#include "node/inspect/remote_memory.h"
#include "node/inspect/thread_snapshot.h"

namespace lockstep::inspect {

/// Frames of snapshots, by the call-frame information of the process's own files (elfutils' libdw). No debugging
/// information is fetched or looked for elsewhere. Reads files of a process that may be hostile: belongs in a worker.
class Unwinder {
 public:
  /// Null: libdw finds nothing to work with. `ranges`: the process's, which may have gone by now.
  static std::unique_ptr<Unwinder> Create(pid_t pid, const std::vector<MemoryRange>& ranges);
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;
  ~Unwinder();

  struct Stack {
    std::vector<uint64_t> addresses;  ///< Within the calls, innermost first.
    bool complete = false;            ///< Up to the thread's first function.
  };
  Stack Unwind(const ThreadSnapshot& snapshot);

  /// Function and module of an address.
  evidence::StackFrame Describe(uint64_t address);
  /// Puts file and line instead of the module where the file has them. Slower.
  void AddLine(uint64_t address, evidence::StackFrame* frame);

 private:
  explicit Unwinder(pid_t pid) : pid_(pid) {}
  void AddModules(const std::vector<MemoryRange>& ranges);
  static pid_t GetThread(Dwfl* dwfl, void* argument, void** thread_argument);
  static bool GetThreadById(Dwfl* dwfl, pid_t tid, void* argument, void** thread_argument);
  static bool ReadWord(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* word, void* argument);
  static bool SetRegisters(Dwfl_Thread* thread, void* argument);
  static int TakeFrame(Dwfl_Frame* frame, void* argument);

  pid_t pid_;
  Dwfl* dwfl_ = nullptr;
  const ThreadSnapshot* snapshot_ = nullptr;  ///< While it is unwound.
  std::map<uint64_t, evidence::StackFrame> described_;
};

}  // namespace lockstep::inspect
