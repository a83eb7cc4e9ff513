#include "measure/nccl/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace lockstep::nccl_bench {

Result<DynamicLibrary> DynamicLibrary::Open(const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& candidate : candidates) {
    void* const handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) {
      const char* const said = ::dlerror();
      const std::string why = said == nullptr ? "" : said;
      // "libx.so.1: cannot open shared object file: No such file or directory"; the same of another name is a library
      // that this one needs.
      const bool is_absent = why.starts_with(candidate + ": cannot open shared object file: No such file");
      const bool is_path = candidate.find('/') != std::string::npos;
      tried += fmt::format("{}{}{}", tried.empty() ? "" : ", ", is_absent ? candidate : why,
                           is_path || !is_absent ? "" : " (in LD_LIBRARY_PATH and where the system has libraries)");
      continue;
    }
    DynamicLibrary library;
    library.handle_ = handle;
    link_map* map = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) library.path_ = map->l_name;
    if (library.path_.empty()) library.path_ = candidate;
    return library;
  }
  return Error{.code = ErrorCode::kNotFound, .message = "cannot open " + tried};
}

Result<void*> DynamicLibrary::Symbol(const char* name) const {
  void* const symbol = ::dlsym(handle_, name);
  if (symbol != nullptr) return symbol;
  return Error{.code = ErrorCode::kUnsupported, .message = fmt::format("it has no {}", name), .file = path_};
}

}  // namespace lockstep::nccl_bench
