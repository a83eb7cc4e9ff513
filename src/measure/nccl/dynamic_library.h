#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::nccl_bench {

/// A library that is opened at run time, for the rest of the process: threads of its own may run in it.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;

  /// The first of `candidates` that opens: names, which the loader looks for in LD_LIBRARY_PATH and where the system
  /// has its libraries, or paths. Errors: kNotFound; the message has what was tried, and the loader's word where a file
  /// is there and does not open.
  static Result<DynamicLibrary> Open(const std::vector<std::string>& candidates);

  /// Errors: kUnsupported, with the library and the name that it lacks.
  template <typename Function>
  Status Find(const char* name, Function* function) const {
    auto found = Symbol(name);
    if (!found) return std::move(found).error();
    *function = reinterpret_cast<Function>(*found);
    return {};
  }

  /// Where its file lies, as the loader says.
  const std::string& path() const { return path_; }

 private:
  Result<void*> Symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace lockstep::nccl_bench
