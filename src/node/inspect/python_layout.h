#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace lockstep::inspect {

/// Where a CPython interpreter keeps what leads to its frames: offsets in bytes. docs/formats/cpython-frames.md.
struct PythonLayout {
  int minor = 0;  ///< Of version 3.
  uint64_t interpreters_head = 0;
  uint64_t interpreter_next = 0;
  uint64_t threads_head = 0;
  uint64_t thread_next = 0;
  uint64_t thread_interpreter = 0;
  uint64_t thread_native_id = 0;
  uint64_t thread_frame = 0;     ///< Of the frame, or with frame_in_cframe of the _PyCFrame that has it.
  bool frame_in_cframe = false;  ///< 3.11, 3.12.
  uint64_t cframe_frame = 0;
  uint64_t frame_code = 0;
  uint64_t frame_previous = 0;
  uint64_t frame_instruction = 0;
  uint64_t frame_owner = 0;
  int first_shim_owner = 256;  ///< Frames of this owner and above stand for a call from C.
  uint64_t code_filename = 0;
  uint64_t code_name = 0;
  uint64_t code_qualname = 0;
  uint64_t code_linetable = 0;
  uint64_t code_firstlineno = 0;
  uint64_t code_instructions = 0;
  uint64_t bytes_size = 0;
  uint64_t bytes_data = 0;
  uint64_t text_length = 0;
  uint64_t text_state = 0;
  uint64_t text_ascii_data = 0;    ///< Behind a PyASCIIObject.
  uint64_t text_compact_data = 0;  ///< Behind a PyCompactUnicodeObject.
  uint64_t object_type = 0;
  uint64_t gil_holder = 0;  ///< Of the runtime (3.11), of the struct that gil_pointer leads to, or of the
  uint64_t gil_locked = 0;  ///< interpreter; an int32 that is 1 while it is held.
  enum class GilPlace : uint8_t { kRuntime, kBehindPointer, kInterpreter } gil_place = GilPlace::kRuntime;
  uint64_t gil_pointer = 0;  ///< In the interpreter.
};

/// Addresses, in the process, of variables that every CPython since 3.11 exports.
struct PythonSymbols {
  uint64_t runtime = 0;    ///< _PyRuntime
  uint64_t version = 0;    ///< Py_Version
  uint64_t code_type = 0;  ///< PyCode_Type
  uint64_t text_type = 0;  ///< PyUnicode_Type
};
/// Looks through the symbol tables of the process's executable and libpython as the process's own user; all zero: it
/// is not CPython that can be told. For a worker (privilege.h): gives rights up.
PythonSymbols FindPython(pid_t pid);

/// The layout of the interpreter in the process, by its version and, since 3.13, its own table of offsets.
/// Errors: kUnsupported (another version, no lock over all threads), kIo (its memory cannot be read).
Result<PythonLayout> ReadLayout(pid_t pid, const PythonSymbols& symbols);

}  // namespace lockstep::inspect
