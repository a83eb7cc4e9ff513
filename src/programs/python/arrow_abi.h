#pragma once

#include <cstdint>

/// The structures of Arrow's C data and C stream interfaces: names, order and types are fixed by the specification
/// (arrow.apache.org, "The Arrow C data interface", "The Arrow C stream interface"), so that libraries can hand columns
/// to each other within a process without a common library. They are C, not ours: the style of names is theirs.
extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace lockstep::python {

inline constexpr int64_t kArrowNullable = 2;  ///< ARROW_FLAG_NULLABLE

}  // namespace lockstep::python
