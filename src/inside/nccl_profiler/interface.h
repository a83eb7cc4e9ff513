#pragma once

#include <cstdint>
#include <cstring>

namespace lockstep::instrument {

// NCCL's profiler interface, versions 1 to 6, as far as it is used: where the fields of a descriptor lie on 64-bit
// machines, by the public headers of NCCL 2.23 to 2.30 (ext-profiler). Declared here by offset, since one library
// answers all versions and none of their headers can be included beside another.

enum EventType : uint64_t {
  kGroup = 1,
  kCollective = 2,
  kP2p = 4,
  kProxyOp = 8,
  kProxyStep = 16,
  kProxyControl = 32,
  kKernelChannel = 64,
  kCopyEngine = 4096
};

enum EventState : int {
  kSendDeviceWait = 8,
  kSendWait = 9,
  kReceiveWait = 10,
  kReceiveFlushWait = 11,
  kReceiveDeviceWait = 12,
  kSendPeerWait = 20,
  kKernelChannelStop = 22
};

inline constexpr uint16_t kNone = UINT16_MAX;

/// Offsets into a version's descriptor; kNone: it has no such field.
struct Layout {
  int version;
  bool wide_type;    ///< The type has 8 bytes, else 1.
  bool codes;        ///< Functions, types, algorithms and protocols are numbers, else pointers to texts.
  bool has_kernels;  ///< KernelChannel events exist.
  struct {
    uint16_t communicator, sequence, function, count, root, datatype, channels, algorithm, protocol;
  } collective;
  struct {
    uint16_t communicator, function, datatype, count, peer, channels;
  } p2p;
  uint16_t kernel_timer;
};

inline constexpr uint16_t kParentOffset = 8;
inline constexpr uint16_t kRankOffset = 16;
inline constexpr struct {
  uint16_t pid, channel, peer, steps, chunk, is_send;
} kProxyOpOffsets = {24, 28, 32, 36, 40, 44};
inline constexpr struct {
  uint16_t sequence, function, count, root, datatype;
} kCopyEngineOffsets = {24, 32, 56, 64, 72};

inline constexpr Layout kLayout1 = {
    1, false, true, false, {32, 40, 48, 72, 80, 84, 104, 106, 107}, {32, 40, 56, 64, 72, kNone}, kNone};
inline constexpr Layout kLayout2 = {
    2, false, false, false, {32, 40, 48, 72, 80, 88, 104, 112, 120}, {32, 40, 56, 64, 72, kNone}, kNone};
inline constexpr Layout kLayout3 = {
    3, false, false, true, {32, 40, 48, 72, 80, 88, 96, 104, 112}, {32, 40, 56, 64, 72, kNone}, kNone};
inline constexpr Layout kLayout4 = {
    4, false, false, true, {kNone, 24, 32, 56, 64, 72, 80, 88, 96}, {kNone, 24, 40, 48, 56, 60}, 32};
inline constexpr Layout kLayout5 = {
    5, true, false, true, {kNone, 24, 32, 56, 64, 72, 80, 88, 96}, {kNone, 24, 40, 48, 56, 60}, 32};
inline constexpr Layout kLayout6 = {
    6, true, false, true, {kNone, 24, 32, 56, 64, 72, 80, 88, 96}, {kNone, 24, 40, 48, 56, 60}, 32};

template <typename T>
T Field(const void* descriptor, uint16_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(descriptor) + offset, sizeof(T));
  return value;
}

/// Names of version 1's numbers; empty when there is no such.
const char* FunctionName(uint8_t code);
const char* DatatypeName(uint8_t code);
const char* AlgorithmName(uint8_t code);
const char* ProtocolName(uint8_t code);

}  // namespace lockstep::instrument
