#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "inside/launch/environment.h"
#include "measure/nccl/dynamic_library.h"
#include "measure/nccl/nccl_interface.h"

namespace lockstep::nccl_bench {

/// NCCL, opened.
struct NcclLibrary {
  DynamicLibrary library;
  NcclInterface call;
  std::string version;  ///< "2.21.5".
};

/// Where libnccl.so.2 is looked for, in this order: `chosen` alone where it is not empty, else the loader's places
/// (LD_LIBRARY_PATH, the system), else what PyTorch's wheels install beside the active Python: VIRTUAL_ENV,
/// CONDA_PREFIX, the python3 of PATH.
std::vector<std::string> NcclCandidates(const std::string& chosen, const launch::Environment& environment);

/// "2.21.5" of 22105; before 2.9 "2.4.8" of 2408.
std::string NcclVersionText(int version);

/// Errors: kNotFound with what was searched; kUnsupported for a NCCL before 2.7, or one that lacks a function.
Result<NcclLibrary> OpenNccl(const std::vector<std::string>& candidates);

}  // namespace lockstep::nccl_bench
