#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/event.h"

namespace lockstep::ingest::nsight {

/// Kineto's name of a call: Nsight Systems appends the version of the interface ("cudaLaunchKernel_v7000") and the
/// flavour of the default stream ("_ptsz").
std::string_view CallName(std::string_view name);

/// Is it a call of the driver ("cuLaunchKernel"), not of the runtime ("cudaLaunchKernel")?
bool IsDriverCall(std::string_view name);

/// As Kineto says it: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", "Stream Sync". Kinds are Nsight Systems'
/// numbers (ENUM_CUDA_MEMCPY_OPER, ENUM_CUDA_MEM_KIND, ENUM_CUPTI_SYNC_TYPE).
std::string MemcpyName(int64_t copy_kind, std::optional<int64_t> from, std::optional<int64_t> to);
std::string MemsetName(std::optional<int64_t> memory_kind);
const char* SyncName(model::SyncRecord::Kind kind);
model::SyncRecord::Kind SyncKind(std::optional<int64_t> type);

/// The meaning of an NVTX range.
struct Region {
  std::string name;  ///< "train:forward" in the domain "train"; without a domain the text itself.
  model::Category category = model::Category::kUserAnnotation;
  bool is_collective = false;  ///< One call of a collective of NCCL's, gloo's or MPI's.
};
/// PyTorch's operators ("aten::mm, op_id = 17, seq = 3") become operators without the suffix; ranges of the libraries
/// become "nccl:ncclAllReduce", "gloo:all_reduce", "mpi:MPI_Allreduce", whatever domain they are in where their text
/// says enough.
Region RegionOf(std::string_view domain, std::string_view text);

/// Whether a text alone says what RegionOf makes of it, so that its domain need not be known.
bool SaysItsDomain(std::string_view text);

/// "mpi:MPI_Allreduce" for calls that move data or wait for it, "MPI_Init" for the rest.
std::string MpiCallName(std::string_view text);

/// Does the name of a call move data between ranks or make them wait for one another?
bool NamesCollective(std::string_view name);

}  // namespace lockstep::ingest::nsight
