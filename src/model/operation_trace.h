#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::model {

/// One operation of one worker in one step, as a training framework's own timers recorded it.
struct Operation {
  int64_t step = 0;
  int64_t start_ns = 0;                      ///< Since whatever the recorder counts from; comparable within a step.
  int64_t duration_ns = 0;                   ///< >= 0; of communication it includes the wait for the others.
  int32_t rank = 0;                          ///< Global rank of the worker (of its first device where it has several).
  int32_t data_rank = 0;                     ///< Index of the pipeline (data-parallel rank).
  int32_t stage = 0;                         ///< Pipeline stage, 0 first.
  int32_t sequence = 0;                      ///< Running index among the worker's operations of this type in this step.
  uint32_t type = 0;                         ///< Index into OperationTrace::types.
  std::optional<int32_t> model_chunk = {};   ///< Of its own stage's chunks; absent when the operation has none.
  std::optional<int32_t> micro_batch = {};   ///< Absent when the operation has none.
  std::optional<int32_t> global_chunk = {};  ///< Of the whole model's chunks, in forward order.
};

/// One stage's own account of one iteration (Primus).
struct Iteration {
  int64_t step = 0;
  int32_t stage = 0;
  int64_t total_ns = 0;                      ///< From the iteration's begin to the end of the stage's last work.
  std::optional<int64_t> memory_bytes = {};  ///< Peak of the device, as the recorder says.
};

/// Where an operation trace comes from, and so what it holds.
enum class OperationSource : uint8_t {
  kStudy,   ///< Every operation, communication included, of every worker: the what-if study's table.
  kPrimus,  ///< Forward and backward work of one pipeline's stages, times from each iteration's begin.
};

/// A job told in operations instead of events: what there is in place of Run::ranks' tracks. Filled by ingest/op_trace.
struct OperationTrace {
  OperationSource source = OperationSource::kStudy;
  std::vector<std::string> types;  ///< Sorted: "backward-compute", "forward-send", ...
  /// By (step, data_rank, stage, type, sequence, start_ns); the order of the file's lines does not matter.
  std::vector<Operation> operations;
  std::vector<Iteration> iterations;              ///< By (step, stage); empty for kStudy.
  std::optional<int32_t> micro_batch_count = {};  ///< As the recorder states it.
};

inline constexpr const char* kForwardCompute = "forward-compute";
inline constexpr const char* kBackwardCompute = "backward-compute";

}  // namespace lockstep::model
