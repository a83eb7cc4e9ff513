// A stand-in for CUDA's driver (libcuda.so.1) on a machine without a device: memory is the host's, a stream is a thread
// with a queue. For tests of what calls the driver.
#pragma once

#include <functional>

struct CudaStreamOpaque;

/// Queues work of the stand-in for NCCL. What returns other than 0 leaves the stream with that error.
void FakeCudaQueue(CudaStreamOpaque* stream, std::function<int()> work);
