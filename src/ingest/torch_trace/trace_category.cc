#include "ingest/torch_trace/trace_category.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/letter_case.h"

namespace lockstep::ingest {
namespace {

using model::Category;

struct Spelling {
  std::string_view text;  ///< Lower case.
  Category category;
};

constexpr Spelling kSpellings[] = {
    {"cpu_op", Category::kCpuOp},
    {"operator", Category::kCpuOp},
    {"user_annotation", Category::kUserAnnotation},
    {"python_function", Category::kPythonFunction},
    {"cuda_runtime", Category::kRuntime},
    {"runtime", Category::kRuntime},
    {"hip_runtime", Category::kRuntime},
    {"xpu_runtime", Category::kRuntime},
    {"mtia_runtime", Category::kRuntime},
    {"glow_runtime", Category::kRuntime},
    {"privateuse1_runtime", Category::kRuntime},
    {"cuda_driver", Category::kDriver},
    {"xpu_driver", Category::kDriver},
    {"privateuse1_driver", Category::kDriver},
    {"kernel", Category::kKernel},
    {"concurrent_kernel", Category::kKernel},
    {"mtia_ccp_events", Category::kKernel},
    {"hpu_op", Category::kKernel},
    {"gpu_memcpy", Category::kMemcpy},
    {"memcpy", Category::kMemcpy},
    {"gpu_memset", Category::kMemset},
    {"memset", Category::kMemset},
    {"gpu_user_annotation", Category::kDeviceAnnotation},
    {"cuda_sync", Category::kSync},
    {"overhead", Category::kOverhead},
    {"trace", Category::kTraceSpan},
    {"cuda_event", Category::kOther},
    {"cuda_profiler_range", Category::kOther},
    {"collective_comm", Category::kOther},
    {"mtia_insight", Category::kOther},
    {"external_correlation", Category::kOther},
    {"cpu_instant_event", Category::kOther},
};

constexpr std::string_view kRangePrefixes[] = {"nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:", "rccl:", "c10d::"};

}  // namespace

std::optional<Category> FindCategory(std::string_view cat) {
  std::array<char, 24> lower{};
  if (cat.size() > lower.size()) return std::nullopt;
  std::transform(cat.begin(), cat.end(), lower.begin(), Lower);
  const std::string_view text(lower.data(), cat.size());
  for (const Spelling& spelling : kSpellings) {
    if (spelling.text == text) return spelling.category;
  }
  return std::nullopt;
}

model::Lane LaneOf(Category category) {
  switch (category) {
    case Category::kCpuOp:
    case Category::kUserAnnotation: return model::Lane::kOperators;
    case Category::kPythonFunction: return model::Lane::kPython;
    case Category::kRuntime:
    case Category::kDriver: return model::Lane::kRuntime;
    case Category::kKernel:
    case Category::kMemcpy:
    case Category::kMemset: return model::Lane::kDevice;
    case Category::kDeviceAnnotation: return model::Lane::kDeviceAnnotation;
    case Category::kSync:
    case Category::kOverhead:
    case Category::kTraceSpan:
    case Category::kOther: return model::Lane::kOther;
  }
  return model::Lane::kOther;
}

bool IsCollectiveRangeName(std::string_view name) {
  return std::any_of(std::begin(kRangePrefixes), std::end(kRangePrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool MayCarryCollectiveMetadata(std::string_view name) {
  // "ccl": nccl, rccl, hccl, xccl, oneccl and what comes next.
  return name == "record_param_comms" || IsCollectiveRangeName(name) || ContainsIgnoringCase(name, "ccl");
}

}  // namespace lockstep::ingest
