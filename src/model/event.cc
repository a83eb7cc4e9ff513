#include "model/event.h"

namespace lockstep::model {

const char* CategoryName(Category category) {
  switch (category) {
    case Category::kCpuOp: return "cpu_op";
    case Category::kUserAnnotation: return "user_annotation";
    case Category::kPythonFunction: return "python_function";
    case Category::kRuntime: return "runtime";
    case Category::kDriver: return "driver";
    case Category::kKernel: return "kernel";
    case Category::kMemcpy: return "memcpy";
    case Category::kMemset: return "memset";
    case Category::kDeviceAnnotation: return "device_annotation";
    case Category::kSync: return "sync";
    case Category::kOverhead: return "overhead";
    case Category::kTraceSpan: return "trace_span";
    case Category::kOther: return "other";
  }
  return "other";
}

const char* LaneName(Lane lane) {
  switch (lane) {
    case Lane::kOperators: return "operators";
    case Lane::kPython: return "python";
    case Lane::kRuntime: return "runtime";
    case Lane::kDevice: return "device";
    case Lane::kDeviceAnnotation: return "device_annotation";
    case Lane::kOther: return "other";
  }
  return "other";
}

}  // namespace lockstep::model
