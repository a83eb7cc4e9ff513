#include "inside/trace/python/cuda_events.h"

#include <dlfcn.h>

namespace lockstep::hooks {
namespace {

// As cuda.h numbers them (CUDA Driver API, "Data types used by CUDA driver").
constexpr int kSuccess = 0;
constexpr int kNotReady = 600;
constexpr int kCaptureNone = 0;
constexpr int kCaptureModeRelaxed = 2;

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool CudaEvents::Open() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const bool has_all = Find(library, "cuCtxGetCurrent", &driver_.context_get_current) &&
                       Find(library, "cuEventCreate", &driver_.event_create) &&
                       Find(library, "cuEventRecord", &driver_.event_record) &&
                       Find(library, "cuEventQuery", &driver_.event_query) &&
                       Find(library, "cuEventElapsedTime", &driver_.event_elapsed_time) &&
                       Find(library, "cuStreamIsCapturing", &driver_.stream_is_capturing) &&
                       Find(library, "cuThreadExchangeStreamCaptureMode", &driver_.exchange_capture_mode);
  return has_all && driver_.context_get_current(&context_) == kSuccess && context_ != nullptr;
}

CudaEvent CudaEvents::Record(CudaStream stream) {
  void* context = nullptr;
  if (driver_.context_get_current(&context) != kSuccess || context != context_) return nullptr;
  // An event that is captured becomes part of the graph, and the stream that all others wait for must not be touched
  // while one of them is captured: asking that one fails then.
  int capture = kCaptureNone;
  if (driver_.stream_is_capturing(stream, &capture) != kSuccess || capture != kCaptureNone) return nullptr;
  CudaEvent event = nullptr;
  if (!free_.empty()) {
    event = free_.back();
    free_.pop_back();
  } else {
    if (made_count_ == kMost || !Make(&event)) return nullptr;
    ++made_count_;
  }
  if (driver_.event_record(event, stream) == kSuccess) return event;
  free_.push_back(event);
  return nullptr;
}

/// Else a graph that is captured in another stream just now could become invalid.
template <typename Call>
int CudaEvents::Relaxed(const Call& call) const {
  int mode = kCaptureModeRelaxed;
  driver_.exchange_capture_mode(&mode);
  const int result = call();
  driver_.exchange_capture_mode(&mode);
  return result;
}

bool CudaEvents::Make(CudaEvent* event) const {
  return Relaxed([&] { return driver_.event_create(event, 0); }) == kSuccess;
}

CudaEvents::Progress CudaEvents::Ask(CudaEvent event) const {
  const int result = Relaxed([&] { return driver_.event_query(event); });
  return result == kSuccess ? Progress::kDone : result == kNotReady ? Progress::kNotYet : Progress::kFailed;
}

std::optional<double> CudaEvents::MillisecondsBetween(CudaEvent begin, CudaEvent end) const {
  float milliseconds = 0;
  if (Relaxed([&] { return driver_.event_elapsed_time(&milliseconds, begin, end); }) != kSuccess) return std::nullopt;
  return static_cast<double>(milliseconds);
}

}  // namespace lockstep::hooks
