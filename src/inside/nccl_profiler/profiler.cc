#include "inside/nccl_profiler/profiler.h"

#include <sched.h>

#include <cstdlib>

#include "inside/nccl_profiler/atomics.h"

namespace lockstep::instrument {
namespace {

/// Which of an operation's events a handle is: the low bits of its slot's address, which are zero.
enum Tag : uintptr_t { kNoTag = 0, kOperationTag = 1, kKernelTag = 2 };
constexpr uintptr_t kTagBits = 7;

void* Tagged(RingOperation* operation, Tag tag) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(operation) | tag);
}
Tag TagOf(const void* handle) { return static_cast<Tag>(reinterpret_cast<uintptr_t>(handle) & kTagBits); }
void* Untagged(void* handle) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(handle) & ~kTagBits); }

/// The context of a communicator is its index, one up: null is not a context.
void* ContextOf(int index) { return reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1); }
int IndexOf(const void* context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1; }
/// Of versions whose operations say their communicator.
constexpr int kByOperation = 1 << 20;

template <typename T>
void Raise(T* value, T to) {
  T now = Load(value, __ATOMIC_RELAXED);
  while (now < to && !Replace(value, &now, to, __ATOMIC_RELAXED)) {
  }
}
/// Whether it was the first.
template <typename T>
bool SetFirst(T* value, T to) {
  T none = 0;
  return Replace(value, &none, to, __ATOMIC_RELAXED);
}

void Count(uint64_t* counter, uint64_t by = 1) { __atomic_fetch_add(counter, by, __ATOMIC_RELAXED); }

/// "ncclFloat32" has 4 bytes an element, as the number in it says; 0 where there is none.
uint64_t ElementBytes(const char (&datatype)[16]) {
  for (const char* at = datatype; *at != '\0'; ++at) {
    if (*at < '1' || *at > '9') continue;
    uint64_t bits = 0;
    for (; *at >= '0' && *at <= '9'; ++at) bits = bits * 10 + static_cast<uint64_t>(*at - '0');
    return bits / 8;
  }
  return 0;
}

uint64_t DurationNs(const RingOperation& operation) {
  const uint64_t first_device_ns = Load(&operation.first_device_ns, __ATOMIC_RELAXED);
  const uint64_t last_device_ns = Load(&operation.last_device_ns, __ATOMIC_RELAXED);
  if (first_device_ns > 0 && last_device_ns >= first_device_ns) return last_device_ns - first_device_ns;
  const int64_t first_ns = Load(&operation.first_kernel_ns, __ATOMIC_RELAXED);
  const int64_t from_ns = first_ns > 0 ? first_ns : operation.enqueued_ns;
  return operation.done_ns > from_ns ? static_cast<uint64_t>(operation.done_ns - from_ns) : 0;
}

/// RingOperation::progress: one word, so that what changes it last sees all the rest as it was at that instant, and
/// need not look at a slot that may be another operation's by then.
constexpr uint64_t kKernelBegun = 1;
constexpr uint64_t kKernelEnded = uint64_t{1} << 16;
constexpr uint64_t kProxyBegun = uint64_t{1} << 32;
constexpr uint64_t kProxyEnded = uint64_t{1} << 47;
constexpr uint64_t kEnqueued = uint64_t{1} << 62;

bool IsOver(uint64_t progress, uint8_t channel_count) {
  const uint64_t kernels_begun = progress & 0xFFFF;
  const uint64_t kernels_ended = progress >> 16 & 0xFFFF;
  const uint64_t proxies_begun = progress >> 32 & 0x7FFF;
  const uint64_t proxies_ended = progress >> 47 & 0x7FFF;
  if ((progress & kEnqueued) == 0 || kernels_begun != kernels_ended || proxies_begun != proxies_ended) return false;
  // All channels' kernels; where the interface does not say how many, all that have begun. Without kernels' events the
  // proxy's operations are all that ends.
  return kernels_begun == 0 ? proxies_begun > 0 : kernels_ended >= channel_count;
}

/// Goes forward only: a callback that reports an earlier state late adds nothing new.
void Advance(RingOperation* operation, OperationState to) { Raise(&operation->state, to); }

const char* TextOrCode(const Layout& layout, const void* descriptor, uint16_t offset, const char* (*name)(uint8_t)) {
  if (layout.codes) return name(Field<uint8_t>(descriptor, offset));
  return Field<const char*>(descriptor, offset);
}

bool Asks(const char* variable) {
  const char* const text = getenv(variable);
  return text != nullptr && text[0] == '1';
}

}  // namespace

void* Profiler::Begin(const Layout& layout, uint64_t id, const char* name, int rank, int rank_count, int node_count,
                      int* mask) {
  int none = 0;
  if (Replace(&opening_, &none, 1, __ATOMIC_ACQ_REL)) {
    records_steps_ = Asks("LOCKSTEP_NCCL_STEPS");
    ring_.Open(layout.version, records_steps_, !layout.has_kernels);
    Store(&opening_, 2, __ATOMIC_RELEASE);
  }
  // Communicators of several threads may begin at once; NCCL is not timing anything yet.
  while (Load(&opening_, __ATOMIC_ACQUIRE) != 2) sched_yield();
  if (mask != nullptr) Store(mask, 0, __ATOMIC_RELAXED);
  if (!ring_.is_open() || Load(&disabled_, __ATOMIC_RELAXED)) return nullptr;
  int index = kByOperation;
  if (layout.version >= 4) {
    index = ring_.AddCommunicator(id, name, rank, rank_count, node_count);
    if (index < 0) return nullptr;
  }
  if (mask != nullptr) {
    int wanted = kCollective | kP2p;
    if (layout.has_kernels) wanted |= kKernelChannel;
    if (layout.version >= 6) wanted |= kCopyEngine;
    // Without kernels' events only the proxy says that an operation is over.
    if (!layout.has_kernels || records_steps_) wanted |= kProxyOp;
    if (records_steps_) wanted |= kProxyStep;
    Store(mask, wanted, __ATOMIC_RELAXED);
  }
  return ContextOf(index);
}

void Profiler::End(void* context) {
  if (context == nullptr || !ring_.is_open() || Load(&disabled_, __ATOMIC_RELAXED)) return;
  const int index = IndexOf(context);
  if (index != kByOperation) ring_.EndCommunicator(index);
}

void* Profiler::Start(const Layout& layout, void* context, const void* descriptor) {
  if (context == nullptr || Load(&disabled_, __ATOMIC_RELAXED)) return nullptr;
  const uint64_t type = layout.wide_type ? Field<uint64_t>(descriptor, 0) : Field<uint8_t>(descriptor, 0);
  void* const parent = Field<void*>(descriptor, kParentOffset);
  switch (type) {
    case kCollective: return StartCollective(layout, IndexOf(context), descriptor);
    case kP2p: return StartP2p(layout, IndexOf(context), descriptor);
    case kKernelChannel: return StartKernel(layout, parent, descriptor);
    case kProxyOp: return StartProxy(parent, descriptor);
    case kProxyStep: return StartStep(parent);
    case kCopyEngine: return StartCopyEngine(IndexOf(context), descriptor);
    default: return nullptr;
  }
}

void Profiler::CountBegun(RingOperation* operation, uint64_t number) {
  const auto index = static_cast<int>(operation->communicator);
  if (index >= 0) {
    RingCommunicator* const communicator = ring_.communicator(index);
    uint64_t* const count =
        operation->kind == OperationKind::kCollective ? &communicator->collective_count : &communicator->p2p_count;
    operation->order = __atomic_fetch_add(count, 1, __ATOMIC_RELAXED) + 1;
    operation->total = ring_.FindOrAddTotal(operation->communicator, operation->function);
    if (RingTotal* const total = ring_.total(operation->total)) Count(&total->begun);
  }
  Ring::Publish(operation, number);
}

void* Profiler::StartCollective(const Layout& layout, int communicator, const void* descriptor) {
  const auto& at = layout.collective;
  uint64_t number = 0;
  RingOperation* const operation = ring_.Claim(&number);
  if (communicator == kByOperation) {
    communicator = ring_.FindOrAddCommunicator(Field<uint64_t>(descriptor, at.communicator),
                                               Field<const char*>(descriptor, 24), Field<int>(descriptor, kRankOffset));
  }
  if (operation == nullptr) {
    ring_.CountDropped(communicator, OperationKind::kCollective);
    return nullptr;
  }
  operation->communicator = static_cast<uint32_t>(communicator);
  operation->kind = OperationKind::kCollective;
  operation->sequence = Field<uint64_t>(descriptor, at.sequence);
  operation->element_count = Field<uint64_t>(descriptor, at.count);
  operation->root = Field<int>(descriptor, at.root);
  operation->channel_count = Field<uint8_t>(descriptor, at.channels);
  CopyText(TextOrCode(layout, descriptor, at.function, FunctionName), operation->function);
  CopyText(TextOrCode(layout, descriptor, at.datatype, DatatypeName), operation->datatype);
  CopyText(TextOrCode(layout, descriptor, at.algorithm, AlgorithmName), operation->algorithm);
  CopyText(TextOrCode(layout, descriptor, at.protocol, ProtocolName), operation->protocol);
  operation->begin_ns = MonotonicNs();
  CountBegun(operation, number);
  return Tagged(operation, kOperationTag);
}

void* Profiler::StartCopyEngine(int communicator, const void* descriptor) {
  uint64_t number = 0;
  RingOperation* const operation = ring_.Claim(&number);
  if (operation == nullptr) {
    ring_.CountDropped(communicator, OperationKind::kCollective);
    return nullptr;
  }
  operation->communicator = static_cast<uint32_t>(communicator);
  operation->kind = OperationKind::kCollective;
  operation->sequence = Field<uint64_t>(descriptor, kCopyEngineOffsets.sequence);
  operation->element_count = Field<uint64_t>(descriptor, kCopyEngineOffsets.count);
  operation->root = Field<int>(descriptor, kCopyEngineOffsets.root);
  operation->channel_count = 0;
  CopyText(Field<const char*>(descriptor, kCopyEngineOffsets.function), operation->function);
  CopyText(Field<const char*>(descriptor, kCopyEngineOffsets.datatype), operation->datatype);
  CopyText("COPY_ENGINE", operation->algorithm);
  operation->begin_ns = MonotonicNs();
  // It begins and ends with the copies themselves: its stop is its end.
  operation->first_kernel_ns = operation->begin_ns;
  operation->enqueued_ns = operation->begin_ns;
  operation->progress = kEnqueued | kKernelBegun;
  CountBegun(operation, number);
  if (RingTotal* const total = ring_.total(operation->total)) {
    Count(&total->enqueued);
    Count(&total->started);
  }
  Advance(operation, OperationState::kRunning);
  return Tagged(operation, kKernelTag);
}

void* Profiler::StartP2p(const Layout& layout, int communicator, const void* descriptor) {
  const auto& at = layout.p2p;
  uint64_t number = 0;
  RingOperation* const operation = ring_.Claim(&number);
  if (communicator == kByOperation) {
    communicator = ring_.FindOrAddCommunicator(Field<uint64_t>(descriptor, at.communicator),
                                               Field<const char*>(descriptor, 24), Field<int>(descriptor, kRankOffset));
  }
  if (operation == nullptr) {
    ring_.CountDropped(communicator, OperationKind::kPointToPoint);
    return nullptr;
  }
  operation->communicator = static_cast<uint32_t>(communicator);
  operation->kind = OperationKind::kPointToPoint;
  operation->sequence = 0;
  operation->element_count = Field<uint64_t>(descriptor, at.count);
  operation->root = Field<int>(descriptor, at.peer);
  operation->channel_count = at.channels == kNone ? 0 : Field<uint8_t>(descriptor, at.channels);
  CopyText(TextOrCode(layout, descriptor, at.function, FunctionName), operation->function);
  CopyText(TextOrCode(layout, descriptor, at.datatype, DatatypeName), operation->datatype);
  operation->begin_ns = MonotonicNs();
  CountBegun(operation, number);
  return Tagged(operation, kOperationTag);
}

RingOperation* Profiler::OperationOf(void* handle) const {
  void* const pointer = Untagged(handle);
  return pointer != nullptr && ring_.Holds(pointer) ? static_cast<RingOperation*>(pointer) : nullptr;
}

void* Profiler::StartKernel(const Layout& layout, void* parent, const void* descriptor) {
  RingOperation* const operation = OperationOf(parent);
  if (operation == nullptr) return nullptr;
  __atomic_fetch_add(&operation->progress, kKernelBegun, __ATOMIC_RELAXED);
  if (SetFirst(&operation->first_kernel_ns, MonotonicNs())) {
    if (RingTotal* const total = ring_.total(operation->total)) Count(&total->started);
  }
  if (layout.kernel_timer != kNone)
    SetFirst(&operation->first_device_ns, Field<uint64_t>(descriptor, layout.kernel_timer));
  Advance(operation, OperationState::kRunning);
  return Tagged(operation, kKernelTag);
}

void* Profiler::StartProxy(void* parent, const void* descriptor) {
  // One process's proxy may send for its neighbour: the parent is an address over there.
  if (parent == nullptr || Field<int>(descriptor, kProxyOpOffsets.pid) != ring_.pid()) return nullptr;
  RingOperation* const operation = OperationOf(parent);
  if (operation == nullptr) return nullptr;
  Proxy* const proxy = proxies_.Take();
  if (proxy == nullptr) {
    ring_.CountDroppedStep();
    return nullptr;
  }
  proxy->operation = operation;
  proxy->peer = Field<int>(descriptor, kProxyOpOffsets.peer);
  proxy->is_send = Field<int>(descriptor, kProxyOpOffsets.is_send) != 0;
  __atomic_fetch_add(&operation->progress, kProxyBegun, __ATOMIC_RELAXED);
  Advance(operation, OperationState::kRunning);
  return proxy;
}

void* Profiler::StartStep(void* parent) {
  if (!proxies_.Holds(parent)) return nullptr;
  const auto* const proxy = static_cast<const Proxy*>(parent);
  Step* const step = steps_.Take();
  if (step == nullptr) {
    ring_.CountDroppedStep();
    return nullptr;
  }
  step->operation = proxy->operation;
  step->peer = proxy->peer;
  step->is_send = proxy->is_send;
  step->since_ns = MonotonicNs();
  step->waiting_for = WaitingFor::kNothing;
  return step;
}

void Profiler::ChangeStep(Step* step, WaitingFor waiting_for) {
  const int64_t now_ns = MonotonicNs();
  const int64_t waited_ns = now_ns - step->since_ns;
  RingOperation* const operation = step->operation;
  switch (step->waiting_for) {
    case WaitingFor::kOwnDevice: __atomic_fetch_add(&operation->device_wait_ns, waited_ns, __ATOMIC_RELAXED); break;
    case WaitingFor::kPeer: __atomic_fetch_add(&operation->peer_wait_ns, waited_ns, __ATOMIC_RELAXED); break;
    case WaitingFor::kNetwork: __atomic_fetch_add(&operation->network_wait_ns, waited_ns, __ATOMIC_RELAXED); break;
    case WaitingFor::kNothing: break;
  }
  step->since_ns = now_ns;
  step->waiting_for = waiting_for;
  Store(&operation->waiting_peer, step->peer, __ATOMIC_RELAXED);
  Store(&operation->waiting_for, waiting_for, __ATOMIC_RELAXED);
}

void Profiler::Progress(RingOperation* operation, uint64_t what) {
  const uint8_t channel_count = operation->channel_count;
  const uint64_t now = __atomic_fetch_add(&operation->progress, what, __ATOMIC_ACQ_REL) + what;
  if (!IsOver(now, channel_count)) return;
  OperationState state = Load(&operation->state, __ATOMIC_ACQUIRE);
  // Callbacks may come late, of one that was over.
  if (state == OperationState::kEnding || state == OperationState::kDone ||
      !Replace(&operation->state, &state, OperationState::kEnding, __ATOMIC_ACQ_REL)) {
    return;
  }
  Store(&operation->waiting_for, WaitingFor::kNothing, __ATOMIC_RELAXED);
  operation->done_ns = MonotonicNs();
  if (const auto index = static_cast<int>(operation->communicator); index >= 0) {
    RingCommunicator* const communicator = ring_.communicator(index);
    __atomic_fetch_add(&communicator->done_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&communicator->done_elements, operation->element_count, __ATOMIC_RELAXED);
  }
  if (RingTotal* const total = ring_.total(operation->total)) {
    Count(&total->elements, operation->element_count);
    Count(&total->bytes, operation->element_count * ElementBytes(operation->datatype));
    Count(&total->duration_ns, DurationNs(*operation));
    __atomic_fetch_add(&total->completed, 1, __ATOMIC_RELEASE);
  }
  // From here on the slot may belong to another operation.
  Store(&operation->state, OperationState::kDone, __ATOMIC_RELEASE);
}

void Profiler::Stop(void* handle) {
  if (handle == nullptr || Load(&disabled_, __ATOMIC_RELAXED)) return;
  if (proxies_.Holds(handle)) {
    auto* const proxy = static_cast<Proxy*>(handle);
    RingOperation* const operation = proxy->operation;
    proxies_.Give(proxy);
    return Progress(operation, kProxyEnded);
  }
  if (steps_.Holds(handle)) {
    auto* const step = static_cast<Step*>(handle);
    ChangeStep(step, WaitingFor::kNothing);
    return steps_.Give(step);
  }
  RingOperation* const operation = OperationOf(handle);
  if (operation == nullptr) return;
  if (TagOf(handle) == kKernelTag) return Progress(operation, kKernelEnded);
  operation->enqueued_ns = MonotonicNs();
  if (RingTotal* const total = ring_.total(operation->total)) Count(&total->enqueued);
  Advance(operation, OperationState::kEnqueued);
  Progress(operation, kEnqueued);
}

void Profiler::State(const Layout& layout, void* handle, int state, const void* args) {
  if (handle == nullptr || Load(&disabled_, __ATOMIC_RELAXED)) return;
  if (steps_.Holds(handle)) {
    auto* const step = static_cast<Step*>(handle);
    switch (state) {
      case kSendDeviceWait:
      case kReceiveDeviceWait: return ChangeStep(step, WaitingFor::kOwnDevice);
      case kSendPeerWait: return ChangeStep(step, WaitingFor::kPeer);
      // What a receiver waits for is its sender and the network between: it cannot tell them apart.
      case kReceiveWait: return ChangeStep(step, WaitingFor::kPeer);
      case kSendWait:
      case kReceiveFlushWait: return ChangeStep(step, WaitingFor::kNetwork);
      default: return;
    }
  }
  RingOperation* const operation = OperationOf(handle);
  if (operation == nullptr || TagOf(handle) != kKernelTag || state != kKernelChannelStop || args == nullptr) return;
  if (layout.kernel_timer != kNone) Raise(&operation->last_device_ns, Field<uint64_t>(args, 0));
}

}  // namespace lockstep::instrument
