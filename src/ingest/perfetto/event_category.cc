#include "ingest/perfetto/event_category.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest::perfetto {
namespace {

using model::Category;

bool IsCapital(std::string_view text, size_t at) { return at < text.size() && text[at] >= 'A' && text[at] <= 'Z'; }

bool StartsWithAny(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace

Category GuessCategory(std::string_view name, const Annotations& args, std::string_view track_name) {
  if (track_name == "Overhead") return Category::kOverhead;
  if (args.Find("cuda_sync_kind") != nullptr) return Category::kSync;
  if (args.Find("Python id") != nullptr || args.Find("Python module id") != nullptr) return Category::kPythonFunction;
  if (name.starts_with("cu") && IsCapital(name, 2)) return Category::kDriver;
  if (StartsWithAny(name, {"cuda", "hip"}) && (IsCapital(name, 4) || IsCapital(name, 3))) return Category::kRuntime;
  if (args.Find("cbid") != nullptr) return Category::kRuntime;
  if (StartsWithAny(name, {"ProfilerStep#", "Optimizer.", "PyTorch Profiler"}) || IsCollectiveRangeName(name))
    return Category::kUserAnnotation;
  return Category::kCpuOp;
}

Category CategoryOfStage(std::string_view stage) {
  if (stage == "Memcpy") return Category::kMemcpy;
  if (stage == "Memset") return Category::kMemset;
  if (stage == "Annotation") return Category::kDeviceAnnotation;
  return Category::kKernel;
}

}  // namespace lockstep::ingest::perfetto
