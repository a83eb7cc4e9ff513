#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::evidence {

struct StackFrame {
  std::string function;
  std::string file;  ///< As the source of the stack names it; of a native frame the module when no file is known.
  int32_t line = 0;  ///< 0 = unknown.
};

/// One thread of a live or dumped process. A kind of frames that was not collected is empty.
struct ThreadStack {
  int64_t tid = 0;  ///< Kernel thread id; 0 = unknown (faulthandler prints pthread ids: then `name` has it).
  std::string name;
  bool is_main = false;
  bool holds_gil = false;
  char state = '?';                ///< /proc's letter: R, S, D, T, Z; '?' = unknown.
  std::string wait_channel;        ///< Kernel function that it sleeps in, "" = unknown or none.
  std::string syscall;             ///< Name of the system call that it is in, "" = unknown or none.
  std::vector<StackFrame> python;  ///< Innermost first.
  std::vector<StackFrame> native;  ///< Innermost first.
  std::string source;              ///< "py-spy", "faulthandler", "libdw", "proc": best that contributed frames.
};

}  // namespace lockstep::evidence
