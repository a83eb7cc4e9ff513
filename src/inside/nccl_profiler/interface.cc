#include "inside/nccl_profiler/interface.h"

#include <cstddef>

namespace lockstep::instrument {
namespace {

constexpr const char* kFunctions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                      "AllReduce", "SendRecv", "Send",      "Recv"};
constexpr const char* kDatatypes[] = {"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
                                      "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16"};
constexpr const char* kAlgorithms[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr const char* kProtocols[] = {"LL", "LL128", "SIMPLE"};

template <size_t kCount>
const char* Name(const char* const (&names)[kCount], uint8_t code) {
  return code < kCount ? names[code] : "";
}

}  // namespace

const char* FunctionName(uint8_t code) { return Name(kFunctions, code); }
const char* DatatypeName(uint8_t code) { return Name(kDatatypes, code); }
const char* AlgorithmName(uint8_t code) { return Name(kAlgorithms, code); }
const char* ProtocolName(uint8_t code) { return Name(kProtocols, code); }

}  // namespace lockstep::instrument
