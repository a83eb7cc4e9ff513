// What NCCL looks for in libnccl-profiler-lockstep.so: a table of functions per version of its interface, of which it
// takes its newest. All of them answer success always: a profiler that fails may end the job's communicator.
#include <pthread.h>

#include <new>

#include "inside/nccl_profiler/profiler.h"

namespace {

using namespace lockstep::instrument;  // NOLINT(google-build-using-namespace)

constexpr int kSuccess = 0;

/// Constructed when the library is loaded, and never destroyed: NCCL's threads may be inside when the program ends.
alignas(Profiler) char profiler_memory[sizeof(Profiler)];
Profiler& TheProfiler() { return *reinterpret_cast<Profiler*>(profiler_memory); }

__attribute__((constructor)) void Construct() {
  new (profiler_memory) Profiler;
  pthread_atfork(nullptr, nullptr, [] { TheProfiler().Disable(); });
}

__attribute__((destructor)) void AtExit() { TheProfiler().AtExit(); }

using LogFunction = void (*)(int, unsigned long, const char*, int, const char*, ...);

int BeginByOperation(const Layout& layout, void** context, int* mask) {
  *context = TheProfiler().Begin(layout, 0, nullptr, 0, 0, 0, mask);
  return kSuccess;
}
int Begin1(void** context, int* mask) { return BeginByOperation(kLayout1, context, mask); }
int Begin2(void** context, int* mask) { return BeginByOperation(kLayout2, context, mask); }
int Begin3(void** context, int* mask) { return BeginByOperation(kLayout3, context, mask); }
int Begin4(void** context, int* mask, const char* name, uint64_t id, int nodes, int ranks, int rank,
           LogFunction /*log*/) {
  *context = TheProfiler().Begin(kLayout4, id, name, rank, ranks, nodes, mask);
  return kSuccess;
}
int Begin5(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
           LogFunction /*log*/) {
  *context = TheProfiler().Begin(kLayout5, id, name, rank, ranks, nodes, mask);
  return kSuccess;
}
int Begin6(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
           LogFunction /*log*/) {
  *context = TheProfiler().Begin(kLayout6, id, name, rank, ranks, nodes, mask);
  return kSuccess;
}

template <const Layout& kLayout>
int Start(void* context, void** handle, void* descriptor) {
  *handle = TheProfiler().Start(kLayout, context, descriptor);
  return kSuccess;
}
int Stop(void* handle) {
  TheProfiler().Stop(handle);
  return kSuccess;
}
template <const Layout& kLayout>
int State(void* handle, int state, void* args) {
  TheProfiler().State(kLayout, handle, state, args);
  return kSuccess;
}
int End(void* context) {
  TheProfiler().End(context);
  return kSuccess;
}

template <typename Init>
struct Table {
  const char* name;
  Init init;
  int (*start)(void*, void**, void*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
};

constexpr const char* kName = "lockstep";

}  // namespace

#define LOCKSTEP_SHOWN __attribute__((visibility("default")))
extern "C" {
LOCKSTEP_SHOWN extern const Table<decltype(&Begin1)> ncclProfiler_v1;
LOCKSTEP_SHOWN extern const Table<decltype(&Begin2)> ncclProfiler_v2;
LOCKSTEP_SHOWN extern const Table<decltype(&Begin3)> ncclProfiler_v3;
LOCKSTEP_SHOWN extern const Table<decltype(&Begin4)> ncclProfiler_v4;
LOCKSTEP_SHOWN extern const Table<decltype(&Begin5)> ncclProfiler_v5;
LOCKSTEP_SHOWN extern const Table<decltype(&Begin6)> ncclProfiler_v6;
const Table<decltype(&Begin1)> ncclProfiler_v1 = {kName, Begin1, Start<kLayout1>, Stop, State<kLayout1>, End};
const Table<decltype(&Begin2)> ncclProfiler_v2 = {kName, Begin2, Start<kLayout2>, Stop, State<kLayout2>, End};
const Table<decltype(&Begin3)> ncclProfiler_v3 = {kName, Begin3, Start<kLayout3>, Stop, State<kLayout3>, End};
const Table<decltype(&Begin4)> ncclProfiler_v4 = {kName, Begin4, Start<kLayout4>, Stop, State<kLayout4>, End};
const Table<decltype(&Begin5)> ncclProfiler_v5 = {kName, Begin5, Start<kLayout5>, Stop, State<kLayout5>, End};
const Table<decltype(&Begin6)> ncclProfiler_v6 = {kName, Begin6, Start<kLayout6>, Stop, State<kLayout6>, End};
}
