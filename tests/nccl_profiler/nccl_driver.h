#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "nccl_interface.h"

/// Calls a profiler plugin as NCCL does, through one version of its interface.
class NcclDriver {
 public:
  static constexpr int kColl = 2, kP2p = 4, kProxyOp = 8, kProxyStep = 16, kKernel = 64, kCopyEngine = 4096;

  NcclDriver(const char* library, int version) : version_(version) {
    void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const std::string symbol = "ncclProfiler_v" + std::to_string(version);
    table_ = handle == nullptr ? nullptr : dlsym(handle, symbol.c_str());
    if (table_ != nullptr) functions_ = static_cast<const nccl_interface::Table<nccl_interface::Init1>*>(table_);
  }
  bool loaded() const { return table_ != nullptr; }
  int version() const { return version_; }
  int mask() const { return mask_; }

  void* Init(uint64_t id, const char* name, int rank, int ranks) {
    using namespace nccl_interface;  // NOLINT(google-build-using-namespace)
    void* context = nullptr;
    int status = 0;
    if (version_ <= 3) {
      status = functions_->init(&context, &mask_);
    } else if (version_ == 4) {
      status = static_cast<const Table<Init4>*>(table_)->init(&context, &mask_, name, id, 1, ranks, rank, nullptr);
    } else {
      status = static_cast<const Table<Init5>*>(table_)->init(&context, id, &mask_, name, 1, ranks, rank, nullptr);
    }
    if (status != 0) std::abort();
    return context;
  }
  void Finalize(void* context) { Must(functions_->finalize(context)); }

  void* Group(void* context) {
    return version_ >= 5 ? Start<uint64_t>(context, 1, nullptr, 0, 0) : Start<uint8_t>(context, 1, nullptr, 0, 0);
  }

  void* AllReduce(void* context, uint64_t communicator, int rank, uint64_t sequence, size_t count, uint8_t channels) {
    return Collective(context, communicator, rank, sequence, "AllReduce", count, channels);
  }
  /// `function` is AllReduce in version 1, which has codes instead.
  void* Collective(void* context, uint64_t communicator, int rank, uint64_t sequence, const char* function,
                   size_t count, uint8_t channels) {
    using namespace nccl_interface;  // NOLINT(google-build-using-namespace)
    if (version_ == 1) {
      return Start<uint8_t>(
          context, kColl, nullptr, rank,
          Coll1{"comm", communicator, sequence, 4, nullptr, nullptr, count, -1, 7, 0, 0, channels, 16, 1, 2, 0, 0});
    }
    if (version_ == 2) {
      return Start<uint8_t>(context, kColl, nullptr, rank,
                            Coll2{"comm", communicator, sequence, function, nullptr, nullptr, count, -1, "ncclFloat32",
                                  0, channels, 16, "RING", "SIMPLE"});
    }
    if (version_ == 3) {
      return Start<uint8_t>(context, kColl, nullptr, rank,
                            Coll3{"comm", communicator, sequence, function, nullptr, nullptr, count, -1, "ncclFloat32",
                                  channels, 16, "RING", "SIMPLE"});
    }
    const Coll4 coll{sequence, function, nullptr, nullptr, count, -1, "ncclFloat32", channels, 16, "RING", "SIMPLE"};
    if (version_ == 4) return Start<uint8_t>(context, kColl, nullptr, rank, coll);
    return Start<uint64_t>(context, kColl, nullptr, rank, Coll5{coll, nullptr});
  }

  void* Send(void* context, uint64_t communicator, int rank, int peer, size_t count) {
    return PointToPoint(context, communicator, rank, "Send", peer, count);
  }
  /// `function` is Send in version 1.
  void* PointToPoint(void* context, uint64_t communicator, int rank, const char* function, int peer, size_t count) {
    using namespace nccl_interface;  // NOLINT(google-build-using-namespace)
    if (version_ == 1)
      return Start<uint8_t>(context, kP2p, nullptr, rank, P2p1{"comm", communicator, 6, nullptr, 7, count, peer});
    if (version_ <= 3)
      return Start<uint8_t>(context, kP2p, nullptr, rank,
                            P2p2{"comm", communicator, function, nullptr, "ncclFloat32", count, peer});
    const P2p4 p2p{function, nullptr, "ncclFloat32", count, peer, 1};
    if (version_ == 4) return Start<uint8_t>(context, kP2p, nullptr, rank, p2p);
    return Start<uint64_t>(context, kP2p, nullptr, rank, P2p5{p2p, nullptr});
  }

  void* Kernel(void* context, void* parent, uint8_t channel, uint64_t timer) {
    using namespace nccl_interface;  // NOLINT(google-build-using-namespace)
    if (version_ == 3) return Start<uint8_t>(context, kKernel, parent, 0, Kernel3{channel});
    if (version_ == 4) return Start<uint8_t>(context, kKernel, parent, 0, Kernel4{channel, timer});
    return Start<uint64_t>(context, kKernel, parent, 0, Kernel4{channel, timer});
  }
  void StopKernel(void* handle, uint64_t timer) {
    if (version_ >= 4) State(handle, 22, &timer);
    Stop(handle);
  }
  void* CopyEngine(void* context, uint64_t sequence, size_t count) {
    return Start<uint64_t>(context, kCopyEngine, nullptr, 0,
                           nccl_interface::CopyEngine6{sequence, "AllGather", nullptr, nullptr, count, -1, "ncclInt8",
                                                       "MC", false, 1, 1, 0, nullptr});
  }
  void* Proxy(void* context, void* parent, int peer, bool is_send, std::optional<int> pid = {}) {
    const nccl_interface::ProxyOp op{pid.value_or(own_pid_), 0, peer, 4, 1 << 19, is_send ? 1 : 0};
    return version_ >= 5 ? Start<uint64_t>(context, kProxyOp, parent, 0, op)
                         : Start<uint8_t>(context, kProxyOp, parent, 0, op);
  }
  void* Step(void* context, void* parent, int step) {
    return version_ >= 5 ? Start<uint64_t>(context, kProxyStep, parent, 0, step)
                         : Start<uint8_t>(context, kProxyStep, parent, 0, step);
  }
  // NCCL calls neither for a null handle.
  void Stop(void* handle) {
    if (handle != nullptr) Must(functions_->stop(handle));
  }
  void State(void* handle, int state, void* args) {
    if (handle != nullptr) Must(functions_->state(handle, state, args));
  }

  /// A whole collective: kernels of all channels by another thread's time.
  void Whole(void* context, uint64_t communicator, int rank, uint64_t sequence, size_t count, uint8_t channels) {
    void* const operation = AllReduce(context, communicator, rank, sequence, count, channels);
    Stop(operation);
    if (operation == nullptr) return;
    if (version_ >= 3) {
      for (uint8_t channel = 0; channel < channels; ++channel) {
        StopKernel(Kernel(context, operation, channel, 1'000'000), 1'005'000);
      }
    } else {
      Stop(Proxy(context, operation, (rank + 1) % 2, true));
    }
  }

 private:
  static void Must(int status) {
    if (status != 0) std::abort();
  }
  template <typename Type, typename Body>
  void* Start(void* context, int type, void* parent, int rank, Body body) {
    nccl_interface::Descriptor<Type, Body> descriptor{static_cast<Type>(type), parent, rank, body};
    void* handle = nullptr;
    Must(functions_->start(context, &handle, &descriptor));
    return handle;
  }

  int version_;
  int own_pid_ = ::getpid();  // Asked once: the callbacks are watched for system calls.
  int mask_ = -1;
  void* table_ = nullptr;
  const nccl_interface::Table<nccl_interface::Init1>* functions_ = nullptr;
};
