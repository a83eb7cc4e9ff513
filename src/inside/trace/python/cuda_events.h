#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::hooks {

using CudaEvent = void*;
using CudaStream = void*;

/// Timed events in streams of the job's, by CUDA's driver. Not by the runtime: that keeps an error of each thread,
/// which the job reads. Nothing here waits for the device. With the interpreter's lock held.
class CudaEvents {
 public:
  enum class Progress : uint8_t { kDone, kNotYet, kFailed };

  /// For the device whose context is this thread's. False: the driver is not loaded, is one without these functions, or
  /// there is no context.
  bool Open();
  /// Null: the stream's work is being captured into a graph, another device is this thread's, there are kMost, or the
  /// driver fails.
  CudaEvent Record(CudaStream stream);
  void GiveBack(CudaEvent event) { free_.push_back(event); }

  Progress Ask(CudaEvent event) const;
  /// Nullopt: they are not both done.
  std::optional<double> MillisecondsBetween(CudaEvent begin, CudaEvent end) const;

 private:
  static constexpr size_t kMost = 4096;
  struct Driver {
    int (*context_get_current)(void** context) = nullptr;
    int (*event_create)(CudaEvent* event, unsigned flags) = nullptr;
    int (*event_record)(CudaEvent event, CudaStream stream) = nullptr;
    int (*event_query)(CudaEvent event) = nullptr;
    int (*event_elapsed_time)(float* milliseconds, CudaEvent begin, CudaEvent end) = nullptr;
    int (*stream_is_capturing)(CudaStream stream, int* status) = nullptr;
    int (*exchange_capture_mode)(int* mode) = nullptr;
  };

  template <typename Call>
  int Relaxed(const Call& call) const;
  bool Make(CudaEvent* event) const;

  Driver driver_;
  void* context_ = nullptr;
  size_t made_count_ = 0;
  std::vector<CudaEvent> free_;
};

}  // namespace lockstep::hooks
