#pragma once

#include <cstddef>
#include <cstdint>

/// What NCCL hands to a profiler plugin, as structs of each version: facts of its public interface (ext-profiler,
/// NCCL 2.23 to 2.30), written down apart from what the plugin has, so that one wrong offset on either side shows.
namespace nccl_interface {

struct Coll1 {
  const char* name;
  uint64_t communicator;
  uint64_t sequence;
  uint8_t function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic_bytes;
  uint8_t channels;
  uint8_t warps;
  uint8_t algorithm;
  uint8_t protocol;
  int is_collnet;
  int is_nvls;
};
struct P2p1 {
  const char* name;
  uint64_t communicator;
  uint8_t function;
  void* buffer;
  uint8_t datatype;
  size_t count;
  int peer;
};
struct Coll2 {
  const char* name;
  uint64_t communicator;
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  size_t traffic_bytes;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct Coll3 {
  const char* name;
  uint64_t communicator;
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct P2p2 {
  const char* name;
  uint64_t communicator;
  const char* function;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
};
struct Coll4 {
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct P2p4 {
  const char* function;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
};
struct Coll5 : Coll4 {
  void* parent_group;
};
struct P2p5 : P2p4 {
  void* parent_group;
};
struct ProxyOp {
  int pid;
  uint8_t channel;
  int peer;
  int steps;
  int chunk;
  int is_send;
};
struct Kernel3 {
  uint8_t channel;
};
struct Kernel4 {
  uint8_t channel;
  uint64_t timer;
};
struct CopyEngine6 {
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  const char* synchronisation;
  bool intra_batch;
  uint32_t batch_size;
  uint32_t batch_count;
  uint32_t ce_sequence;
  void* stream;
};

/// A descriptor: type, parent, rank, and one of the above. NCCL's is a union of all.
template <typename Type, typename Body>
struct Descriptor {
  Type type;
  void* parent;
  int rank;
  alignas(8) Body body;  // As NCCL's union of all, which holds pointers.
};

static_assert(offsetof(Coll1, protocol) + 24 == 107 && sizeof(Descriptor<uint8_t, Coll1>) == 120);
static_assert(sizeof(Descriptor<uint8_t, Coll2>) == 128);
static_assert(sizeof(Descriptor<uint8_t, Coll3>) == 120);
static_assert(sizeof(Descriptor<uint8_t, Coll4>) == 104);
static_assert(sizeof(Descriptor<uint64_t, Coll5>) == 112);

using Start = int (*)(void*, void**, void*);
using Stop = int (*)(void*);
using State = int (*)(void*, int, void*);
using Finalize = int (*)(void*);
using Log = void (*)(int, unsigned long, const char*, int, const char*, ...);
using Init1 = int (*)(void**, int*);
using Init4 = int (*)(void**, int*, const char*, uint64_t, int, int, int, Log);
using Init5 = int (*)(void**, uint64_t, int*, const char*, int, int, int, Log);

template <typename Init>
struct Table {
  const char* name;
  Init init;
  Start start;
  Stop stop;
  State state;
  Finalize finalize;
};
static_assert(sizeof(Table<Init1>) == 48);

}  // namespace nccl_interface
