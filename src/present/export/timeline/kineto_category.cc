#include "present/export/timeline/event_writer.h"

namespace lockstep::timeline {

const char* KinetoCategory(model::Category category) {
  using model::Category;
  switch (category) {
    case Category::kCpuOp: return "cpu_op";
    case Category::kUserAnnotation: return "user_annotation";
    case Category::kPythonFunction: return "python_function";
    case Category::kRuntime: return "cuda_runtime";
    case Category::kDriver: return "cuda_driver";
    case Category::kKernel: return "kernel";
    case Category::kMemcpy: return "gpu_memcpy";
    case Category::kMemset: return "gpu_memset";
    case Category::kDeviceAnnotation: return "gpu_user_annotation";
    case Category::kSync: return "cuda_sync";
    case Category::kOverhead: return "overhead";
    case Category::kTraceSpan: return "Trace";
    case Category::kOther: return "other";
  }
  return "other";
}

}  // namespace lockstep::timeline
