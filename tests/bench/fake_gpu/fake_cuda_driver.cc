// See fake_cuda_driver.h. FAKE_CUDA_DEVICES: how many devices there are (8); FAKE_CUDA_MEMORY_BYTES: what each has;
// FAKE_CUDA_CAPTURES=1: every stream is captured into a graph.
#include "fake_cuda_driver.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace {

constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kNotReady = 600;

size_t Setting(const char* name, size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::mutex memory_mutex;
std::map<unsigned long long, size_t> allocations;
size_t allocated_bytes = 0;

}  // namespace

struct CudaStreamOpaque {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<int()>> queue;
  bool is_busy = false;
  int error = 0;
};

struct Recording {
  std::atomic<int64_t> done_ns = 0;  ///< 0: it is not.
};

/// What waits for an event waits for its newest recording, whatever is recorded later. In one thread at a time.
struct CudaEventOpaque {
  std::shared_ptr<Recording> recording = std::make_shared<Recording>();
};

void FakeCudaQueue(CudaStreamOpaque* stream, std::function<int()> work) {
  const std::lock_guard lock(stream->mutex);
  stream->queue.push_back(std::move(work));
  stream->changed.notify_all();
}

extern "C" {

int cuInit(unsigned /*flags*/) { return Setting("FAKE_CUDA_DEVICES", 8) == 0 ? kNoDevice : 0; }

int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == kNoDevice      ? "CUDA_ERROR_NO_DEVICE"
          : error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
                                  : "CUDA_ERROR";
  return 0;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == kNoDevice ? "no CUDA-capable device is detected" : "of the stand-in";
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(Setting("FAKE_CUDA_DEVICES", 8));
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDeviceGetName(char* name, int length, int /*device*/) {
  std::snprintf(name, static_cast<size_t>(length), "Stand-in without a device");
  return 0;
}

int cuDeviceGetPCIBusId(char* id, int length, int device) {
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", device);
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  std::memset(uuid, 0, 16);
  uuid[0] = static_cast<unsigned char>(device + 1);
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int /*device*/) {
  static int the_context;
  *context = &the_context;
  return 0;
}

int cuCtxSetCurrent(void* /*context*/) { return 0; }

int cuStreamCreate(CudaStreamOpaque** stream, unsigned /*flags*/) {
  auto* const made = new CudaStreamOpaque;
  std::thread([made] {
    std::unique_lock lock(made->mutex);
    while (true) {
      made->changed.wait(lock, [made] { return !made->queue.empty(); });
      const auto work = std::move(made->queue.front());
      made->queue.pop_front();
      made->is_busy = true;
      lock.unlock();
      const int error = work();
      lock.lock();
      made->is_busy = false;
      if (made->error == 0) made->error = error;
    }
  }).detach();
  *stream = made;
  return 0;
}

int cuCtxGetCurrent(void** context) { return cuDevicePrimaryCtxRetain(context, 0); }

int cuEventCreate(CudaEventOpaque** event, unsigned /*flags*/) {
  *event = new CudaEventOpaque;
  return 0;
}

int cuEventRecord(CudaEventOpaque* event, CudaStreamOpaque* stream) {
  event->recording = std::make_shared<Recording>();
  FakeCudaQueue(stream, [recording = event->recording] {
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    recording->done_ns = now.count();
    return 0;
  });
  return 0;
}

int cuEventQuery(CudaEventOpaque* event) { return event->recording->done_ns == 0 ? kNotReady : 0; }

int cuEventElapsedTime(float* milliseconds, CudaEventOpaque* begin, CudaEventOpaque* end) {
  const int64_t begin_ns = begin->recording->done_ns;
  const int64_t end_ns = end->recording->done_ns;
  if (begin_ns == 0 || end_ns == 0) return kNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(end_ns - begin_ns) / 1e6);
  return 0;
}

int cuStreamWaitEvent(CudaStreamOpaque* stream, CudaEventOpaque* event, unsigned /*flags*/) {
  FakeCudaQueue(stream, [recording = event->recording] {
    while (recording->done_ns == 0) ::usleep(50);
    return 0;
  });
  return 0;
}

int cuStreamIsCapturing(CudaStreamOpaque* /*stream*/, int* status) {
  *status = static_cast<int>(Setting("FAKE_CUDA_CAPTURES", 0));
  return 0;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int now = 0;
  std::swap(*mode, now);
  return 0;
}

/// A kernel that takes so long.
void FakeCudaKernel(CudaStreamOpaque* stream, unsigned long long microseconds) {
  FakeCudaQueue(stream, [=] {
    ::usleep(static_cast<useconds_t>(microseconds));
    return 0;
  });
}

int cuStreamQuery(CudaStreamOpaque* stream) {
  const std::lock_guard lock(stream->mutex);
  if (stream->error != 0) return stream->error;
  return stream->queue.empty() && !stream->is_busy ? 0 : kNotReady;
}

int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  const std::lock_guard lock(memory_mutex);
  if (allocated_bytes + bytes > Setting("FAKE_CUDA_MEMORY_BYTES", SIZE_MAX / 2)) return kOutOfMemory;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) return kOutOfMemory;
  *address = reinterpret_cast<unsigned long long>(memory);
  allocations[*address] = bytes;
  allocated_bytes += bytes;
  return 0;
}

int cuMemFree_v2(unsigned long long address) {
  const std::lock_guard lock(memory_mutex);
  allocated_bytes -= allocations[address];
  allocations.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return 0;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, CudaStreamOpaque* stream) {
  FakeCudaQueue(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
  });
  return 0;
}

int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, CudaStreamOpaque* stream) {
  FakeCudaQueue(stream, [=] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return 0;
  });
  return 0;
}

}  // extern "C"
