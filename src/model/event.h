#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "base/column.h"
#include "base/ids.h"

namespace lockstep::model {

/// What an event is. The trace's own category names, old and new, map onto these at ingest.
enum class Category : uint8_t {
  kCpuOp,             ///< Operator on a CPU thread.
  kUserAnnotation,    ///< record_function range, ProfilerStep#N, Optimizer.step, gloo:all_reduce, nccl:all_reduce.
  kPythonFunction,    ///< Python frame.
  kRuntime,           ///< Call of the device runtime (cudaLaunchKernel, hipLaunchKernel, ...).
  kDriver,            ///< Call of the driver (cuLaunchKernelEx, ...).
  kKernel,            ///< Kernel on a device stream.
  kMemcpy,            ///< Copy on a device stream.
  kMemset,            ///< Set on a device stream.
  kDeviceAnnotation,  ///< User annotation projected onto a stream.
  kSync,              ///< cuda_sync: a synchronisation seen from the device.
  kOverhead,          ///< The profiler's own overhead.
  kTraceSpan,         ///< The capture window ("PyTorch Profiler (0)").
  kOther,
};
inline constexpr int kCategoryCount = 13;
const char* CategoryName(Category category);

/// Events of a track as columns (struct of arrays), all of one length, sorted by (start_ns, longer first, file order).
/// Cost: 21 bytes an event, 25 on lanes that carry correlation.
struct EventColumns {
  Column<int64_t> start_ns;     ///< Trace clock of the file: wall clock of the host, ns since the Unix epoch.
  Column<int64_t> duration_ns;  ///< >= 0.
  Column<NameId> name;
  Column<Category> category;
  Column<uint32_t> correlation;  ///< Only on lanes kRuntime and kDevice (else empty); 0 = none.

  size_t size() const { return start_ns.size(); }
  bool empty() const { return start_ns.empty(); }
  int64_t end_ns(size_t i) const { return start_ns[i] + duration_ns[i]; }
};

/// Which events a track holds; one CPU thread may have a track per lane.
enum class Lane : uint8_t {
  kOperators,         ///< kCpuOp and kUserAnnotation of a CPU thread; they nest.
  kPython,            ///< kPythonFunction of a CPU thread; they nest.
  kRuntime,           ///< kRuntime and kDriver of a CPU thread.
  kDevice,            ///< kKernel, kMemcpy, kMemset of one device stream.
  kDeviceAnnotation,  ///< kDeviceAnnotation of one device stream.
  kOther,             ///< kSync, kOverhead, kTraceSpan, kOther.
};
const char* LaneName(Lane lane);  ///< "operators", "python", ..., as SQL and JSON have it.
/// Whether a track's process and thread are a device and a stream.
constexpr bool IsDeviceLane(Lane lane) { return lane == Lane::kDevice || lane == Lane::kDeviceAnnotation; }

struct Track {
  Lane lane = Lane::kOther;
  int64_t process_id = 0;  ///< `pid` of the file; the device ordinal on device lanes.
  int64_t thread_id = 0;   ///< `tid` of the file; the stream on device lanes.
  NameId thread_name;      ///< From thread_name metadata, or the string the file used as tid; may be empty.
  EventColumns events;

  DeviceOrdinal device() const { return {static_cast<int32_t>(process_id)}; }  ///< Device lanes only.
  StreamId stream() const { return {thread_id}; }                              ///< Device lanes only.
};

/// A row of a track of a rank, by place in RankTrace::tracks.
struct RowRef {
  uint32_t track = 0;
  uint32_t row = 0;
  friend auto operator<=>(const RowRef&, const RowRef&) = default;
};

/// What a trace says of one collective call or kernel, beyond name and time. Self-contained: rows of tracks move when
/// sorted. `bytes` figures are not here: they are elements x dtype size (analysis/collective_size.h).
struct CollectiveRecord {
  enum class Source : uint8_t {
    kKernel,      ///< Device kernel with "Collective name" in its args.
    kParamComms,  ///< CPU operator record_param_comms.
    kAnnotation,  ///< CPU range named nccl:..., gloo:..., c10d::..., mpi:..., ucc:..., xccl:..., hccl:...
  };
  Source source = Source::kKernel;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t process_id = 0;
  int64_t thread_id = 0;     ///< Stream for kernels.
  uint32_t correlation = 0;  ///< Kernels only; 0 = none.
  NameId event_name;
  NameId collective_name;              ///< As written ("allreduce", "_allgather_base", ...); empty if absent.
  NameId dtype;                        ///< As written ("Float", "BFloat16"; for annotations the first "Input type").
  NameId group_name;                   ///< "Process Group Name".
  NameId group_description;            ///< "Process Group Description".
  NameId group_ranks;                  ///< "Process Group Ranks" as written; cut by the producer after 30 entries.
  std::optional<int64_t> in_elements;  ///< "In msg nelems"; for annotations the product sum of "Input Dims".
  std::optional<int64_t>
      out_elements;  ///< "Out msg nelems". c10d::alltoall: both are of the right one of "Input Dims".
  std::optional<int32_t> group_size;
  std::optional<int64_t> sequence;          ///< "Seq".
  std::optional<uint64_t> communicator_id;  ///< "Comms Id".
  std::optional<int32_t> source_rank;       ///< "Src Rank".
  std::optional<int32_t> destination_rank;  ///< "Dst Rank".
};

/// What a trace says of one synchronisation as the device saw it (category cuda_sync). Self-contained, like
/// CollectiveRecord. The event itself is on lane kOther.
struct SyncRecord {
  enum class Kind : uint8_t { kOther, kStream, kEvent, kContext, kStreamWaitEvent };
  Kind kind = Kind::kOther;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t device = 0;                     ///< `pid` of the file.
  std::optional<int64_t> stream;          ///< That is waited for (kStream) or that waits (kStreamWaitEvent).
  uint32_t correlation = 0;               ///< The call's; 0 = none.
  std::optional<int64_t> event_stream;    ///< "wait_on_stream": where the awaited event was recorded.
  uint32_t event_record_correlation = 0;  ///< "wait_on_cuda_event_record_corr_id": of cudaEventRecord; 0 = none.
};

/// Shapes of one call of an operator that multiplies matrices (matrix products, convolutions, attention), where the
/// profiler recorded them. Texts as written, without white space; Trace clock.
struct OperatorShape {
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t thread_id = 0;  ///< As in Track.
  NameId name;            ///< Of the operator.
  NameId dims;            ///< "Input Dims": "[[8944,1024],[1024,2816]]".
  NameId types;           ///< "Input type".
  NameId values;          ///< "Concrete Inputs"; empty where no figure needs them.
};

/// One row of the caching allocator's counters, from `[memory]` instant events.
struct MemoryColumns {
  Column<int64_t> time_ns;
  Column<int64_t> change_bytes;     ///< "Bytes": positive allocates, negative frees.
  Column<int64_t> allocated_bytes;  ///< "Total Allocated" after the event; -1 where the file has none.
  Column<int64_t> reserved_bytes;   ///< "Total Reserved"; -1 where the file has none.
  Column<int16_t> device;           ///< Device ordinal; -1 = CPU.
  size_t size() const { return time_ns.size(); }
};

}  // namespace lockstep::model
