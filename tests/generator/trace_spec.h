#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::tracegen {

/// How the JSON is laid out: the writers that traces in the wild come from.
enum class Style : uint8_t {
  kTorch22,       ///< PyTorch 2.2 .. 2.11: several keys a line, microseconds with three decimals, base time after the
                  ///< events.
  kCurrent,       ///< PyTorch 2.12 on: one argument a line, "occupancy" object, "Seq", base time before the events.
  kMicroseconds,  ///< Before 2.2: integer microseconds since the epoch, old flow names, no base time.
  kIndent4,       ///< kTorch22 read and written again by a script with an indent of four.
  kMinified,      ///< kTorch22 without white space.
};

/// What slows a planted straggler down.
enum class SlowBy : uint8_t {
  kKernel,  ///< Its compute kernels take longer.
  kLoader,  ///< Its data loader takes longer; the device waits.
  kHost,    ///< Its main thread stalls in the middle of the forward pass, with nothing recorded.
  // The following stall the main thread in the middle of the forward pass too, in what is recorded.
  kOperator,    ///< In a CPU operator ("aten::nonzero").
  kCollector,   ///< In Python's garbage collector ("gc.collect").
  kAllocator,   ///< In a runtime call ("cudaMalloc") inside an operator.
  kCheckpoint,  ///< In a range called "torch.save".
  kLaunch,      ///< A kernel in the middle of the forward pass starts later than it could.
  kCopy,        ///< Its copies to the device take longer.
  kUnrecorded,  ///< Its main thread stalls before the forward pass, outside of any range but the step's.
  kLink,        ///< Every collective and message it has part in transfers that much longer.
};

struct PlantedStraggler {
  int32_t rank = 0;
  int64_t delay_ns = 0;  ///< Per affected step.
  SlowBy by = SlowBy::kKernel;
  std::optional<int32_t> step = {};  ///< Only this step (one-off); absent = every step (chronic).
  int32_t every = 0;                 ///< > 0: every so-many-th step, the first being `step` (or 0).
};

/// A rank's file holds only events that lie wholly in [start, end) of the job, counted from its first instant.
struct PlantedClip {
  int32_t rank = 0;
  int64_t start_ns = 0;
  int64_t end_ns = INT64_MAX;
};

/// A rank's file ends after this share of its JSON bytes.
struct PlantedCut {
  int32_t rank = 0;
  double ratio = 0.5;
};

/// What is to be generated. The same spec gives the same bytes whatever the number of threads.
struct TraceSpec {
  std::string folder;  ///< Made if missing. The truth goes to "<folder>.truth.json".
  int32_t rank_count = 4;
  int32_t step_count = 4;
  int32_t first_step = 10;  ///< N of the first ProfilerStep#N.
  int32_t layer_count = 12;
  double target_megabytes = 0;  ///< Per rank; > 0 chooses step_count so that a file is about this large.
  uint64_t seed = 1;
  Style style = Style::kTorch22;
  int gzip_level = 0;           ///< 1 .. 9 writes .json.gz.
  int zstd_level = 0;           ///< 1 .. 19 writes .json.zst.
  std::string naming = "rank";  ///< rank | worker | torch | of | dash | plain (no rank in the name).
  bool distributed_info = true;
  bool shapes = false;         ///< "Input Dims" and friends on operators.
  bool stacks = false;         ///< python_function events.
  bool memory_events = false;  ///< [memory] instants.
  bool lean = false;           ///< Only annotations and device events, with few arguments: large jobs in small files.
  bool cpu_only = false;       ///< A Gloo job: operators run on the CPU, no device events.

  /// Stages of a pipeline, each of layer_count layers; ranks of a stage follow each other, then the next stage's, then
  /// the next replica's. Every micro-batch goes forward through all stages, then every one backward.
  int32_t pipeline_parallel = 1;
  int32_t micro_batches = 2;
  bool gradient_norm = false;     ///< With a pipeline: a small all_reduce over all ranks before the optimizer.
  int32_t tensor_parallel = 1;    ///< Ranks per tensor-parallel group: an all_reduce per layer in the forward pass.
  bool sharded = false;           ///< Gathers of weights and reduce_scatters of gradients instead of all_reduces.
  int32_t bucket_layers = 4;      ///< Layers per gradient bucket.
  int64_t transfer_ns = 400'000;  ///< Pure transfer time of a gradient collective.
  double overlap_ratio = 1.0;     ///< Share of the buckets sent while the backward pass runs; the rest follow it.
  int64_t loader_ns = 300'000;    ///< Data loader, every step on every rank.
  int64_t jitter_ns = 500;        ///< Ends of one collective differ by less than this between ranks.
  double kernel_scale = 1.0;      ///< Multiplies kernel durations.
  double kernel_spread = 0.03;    ///< Kernel durations vary by up to this share, by rank and instance.
  double kernel_tail = 0;  ///< Sigma of a log-normal factor on top of that, by rank and instance: noise with a tail.
  double step_tail = 0;    ///< The same by rank and step: batches that differ.

  std::vector<int64_t> offset_ns;  ///< Per rank; missing = 0. What the rank's clock reads more than true time.
  std::vector<double> drift_ppm;   ///< Per rank; missing = 0.
  int32_t ranks_per_host = 8;
  std::vector<PlantedStraggler> stragglers;
  std::vector<PlantedClip> clips;
  std::vector<PlantedCut> cuts;
  std::vector<int32_t> missing_ranks;  ///< No file is written.
  uint32_t thread_count = 1;

  int64_t OffsetOf(int32_t rank) const {
    return static_cast<size_t>(rank) < offset_ns.size() ? offset_ns[static_cast<size_t>(rank)] : 0;
  }
  double DriftOf(int32_t rank) const {
    return static_cast<size_t>(rank) < drift_ppm.size() ? drift_ppm[static_cast<size_t>(rank)] : 0.0;
  }
};

}  // namespace lockstep::tracegen
