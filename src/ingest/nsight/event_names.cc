#include "ingest/nsight/event_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/letter_case.h"
#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest::nsight {
namespace {

using model::Category;

bool IsCapital(std::string_view text, size_t at) { return at < text.size() && text[at] >= 'A' && text[at] <= 'Z'; }

const char* MemoryKind(int64_t kind) {
  constexpr std::array kNames = {"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};
  return kind >= 0 && kind < static_cast<int64_t>(kNames.size()) ? kNames[static_cast<size_t>(kind)] : "Unknown";
}

bool IsNcclText(std::string_view text) { return text.starts_with("nccl") && IsCapital(text, 4); }
bool IsMpiText(std::string_view text) { return text.starts_with("MPI_"); }

/// "aten::mm, op_id = 17": what stands before the first ", op_id = " or ", seq = ".
std::string_view WithoutOperatorFacts(std::string_view text) {
  for (const std::string_view mark : {", op_id = ", ", seq = ", ", sizes = "}) {
    text = text.substr(0, text.find(mark));
  }
  return text;
}

}  // namespace

std::string_view CallName(std::string_view name) {
  for (const std::string_view flavour : {"_ptsz", "_ptds"}) {
    if (name.ends_with(flavour)) name.remove_suffix(flavour.size());
  }
  size_t digits = 0;
  while (digits < name.size() && IsDigit(name[name.size() - 1 - digits])) ++digits;
  // The driver's own "_v2" is part of a name; the runtime's are versions of CUDA, 3020 and later.
  if (digits < 4 || !name.substr(0, name.size() - digits).ends_with("_v")) return name;
  name.remove_suffix(digits + 2);
  for (const std::string_view flavour : {"_ptsz", "_ptds"}) {
    if (name.ends_with(flavour)) name.remove_suffix(flavour.size());
  }
  return name;
}

bool IsDriverCall(std::string_view name) { return name.starts_with("cu") && IsCapital(name, 2); }

std::string MemcpyName(int64_t copy_kind, std::optional<int64_t> from, std::optional<int64_t> to) {
  constexpr std::array kKinds = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH",         "AtoA",         "AtoD",
                                 "DtoA",    "DtoD", "HtoH", "PtoP", "Unified HtoD", "Unified DtoH", "Unified DtoD"};
  const char* const kind = copy_kind >= 0 && copy_kind < static_cast<int64_t>(kKinds.size())
                               ? kKinds[static_cast<size_t>(copy_kind)]
                               : "unknown";
  if (!from || !to) return fmt::format("Memcpy {}", kind);
  return fmt::format("Memcpy {} ({} -> {})", kind, MemoryKind(*from), MemoryKind(*to));
}

std::string MemsetName(std::optional<int64_t> memory_kind) {
  return fmt::format("Memset ({})", memory_kind ? MemoryKind(*memory_kind) : "Unknown");
}

model::SyncRecord::Kind SyncKind(std::optional<int64_t> type) {
  using Kind = model::SyncRecord::Kind;
  switch (type.value_or(0)) {
    case 1: return Kind::kEvent;
    case 2: return Kind::kStreamWaitEvent;
    case 3: return Kind::kStream;
    case 4: return Kind::kContext;
    default: return Kind::kOther;
  }
}

const char* SyncName(model::SyncRecord::Kind kind) {
  using Kind = model::SyncRecord::Kind;
  switch (kind) {
    case Kind::kStream: return "Stream Sync";
    case Kind::kEvent: return "Event Sync";
    case Kind::kContext: return "Context Sync";
    case Kind::kStreamWaitEvent: return "Stream Wait Event";
    case Kind::kOther: break;
  }
  return "Unknown Sync";
}

bool NamesCollective(std::string_view name) {
  // As analyses fold them: without case and underscores. MPI's non-blocking ones have an I in front, the vector and
  // neighbour ones letters behind.
  constexpr std::array<std::string_view, 11> kOperations = {"allreduce", "reducescatter", "allgather", "alltoall",
                                                            "barrier",   "broadcast",     "bcast",     "reduce",
                                                            "gather",    "scatter",       "sendrecv"};
  constexpr std::array<std::string_view, 12> kPointToPoint = {"send",   "recv",   "isend",    "irecv",
                                                              "ssend",  "bsend",  "rsend",    "issend",
                                                              "ibsend", "irsend", "ncclsend", "ncclrecv"};
  std::string folded;
  for (const char c : Lowered(name)) {
    if (c != '_') folded += c;
  }
  const size_t colon = folded.rfind(':');
  std::string_view operation = std::string_view(folded).substr(colon == std::string::npos ? 0 : colon + 1);
  if (operation.starts_with("mpi")) operation.remove_prefix(3);
  return std::any_of(kOperations.begin(), kOperations.end(),
                     [&](std::string_view mark) { return operation.find(mark) != std::string_view::npos; }) ||
         std::find(kPointToPoint.begin(), kPointToPoint.end(), operation) != kPointToPoint.end();
}

std::string MpiCallName(std::string_view text) {
  // Setting MPI up and down is not communication.
  const bool communicates = NamesCollective(text) || text.find("Wait") != std::string_view::npos;
  return communicates ? fmt::format("mpi:{}", text) : std::string(text);
}

bool SaysItsDomain(std::string_view text) { return IsNcclText(text) || IsMpiText(text); }

Region RegionOf(std::string_view domain, std::string_view text) {
  Region region;
  const std::string lower = Lowered(domain);
  if (IsNcclText(text)) {
    region.name = fmt::format("nccl:{}", text);
    region.is_collective = NamesCollective(text);
  } else if (IsMpiText(text)) {
    region.name = MpiCallName(text);
    region.is_collective = NamesCollective(text);
  } else if (lower == "nccl" || lower == "rccl" || lower == "gloo" || lower == "mpi" || lower == "ucc") {
    region.name = fmt::format("{}:{}", lower, text);
    region.is_collective = NamesCollective(text);
  } else if (!domain.empty()) {
    region.name = fmt::format("{}:{}", domain, text);
  } else {
    const std::string_view name = WithoutOperatorFacts(text);
    // record_function's own ranges come with the suffix as well.
    const bool is_annotation = IsCollectiveRangeName(name) || name.starts_with("ProfilerStep#") ||
                               name.starts_with("Optimizer.") || name.find("DataLoader") != std::string_view::npos;
    if (name.size() < text.size() && !is_annotation) region.category = Category::kCpuOp;
    region.is_collective = IsCollectiveRangeName(name);
    region.name = name;
  }
  return region;
}

}  // namespace lockstep::ingest::nsight
