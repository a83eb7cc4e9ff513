// From the environment to a recording, and through fork and exit.
#include <errno.h>
#include <lockstep/trace.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "inside/trace/recorder.h"

using lockstep::instrument::recorder;

namespace {

constexpr uint64_t kDefaultLimitMebibytes = 1024;
constexpr uint64_t kMostMebibytes = uint64_t{32} << 10;  // As many segments as the file can have.

uint64_t LimitBytes() {
  const char* const text = getenv("LOCKSTEP_TRACE_LIMIT_MIB");
  uint64_t mebibytes = kDefaultLimitMebibytes;
  if (text != nullptr && *text >= '0' && *text <= '9') {
    const unsigned long long wanted = strtoull(text, nullptr, 10);
    if (wanted > 0) mebibytes = wanted < kMostMebibytes ? wanted : kMostMebibytes;
  }
  // Beyond the shell's `ulimit -f` a write would end the process.
  rlimit most = {};
  const bool is_limited = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY;
  const uint64_t wanted = mebibytes << 20;
  return is_limited && most.rlim_cur < wanted ? most.rlim_cur : wanted;
}

bool KeepsNewest() {
  const char* const text = getenv("LOCKSTEP_TRACE_RING");
  return text != nullptr && *text != '\0' && strcmp(text, "0") != 0;
}

void BeforeFork() { recorder.BeforeFork(); }
void AfterForkInParent() { recorder.AfterFork(false); }
void AfterForkInChild() { recorder.AfterFork(true); }

bool watches_fork = false;

void Start(const char* folder) {
  recorder.Configure(folder, LimitBytes(), KeepsNewest());
  if (!__atomic_exchange_n(&watches_fork, true, __ATOMIC_ACQ_REL)) {
    pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  }
  __atomic_store_n(&lockstep_recording, 1, __ATOMIC_RELEASE);
}

__attribute__((constructor)) void StartFromEnvironment() {
  const int error = errno;
  const char* const folder = getenv("LOCKSTEP_TRACE");
  if (folder != nullptr && *folder != '\0') Start(folder);
  errno = error;
}

__attribute__((destructor)) void EndInOrder() { recorder.Close(); }

}  // namespace

extern "C" {

int lockstep_trace_start(const char* folder) {
  if (folder == nullptr || *folder == '\0') return 0;
  Start(folder);
  // The file is made by the first record; this one says at once whether it can be.
  lockstep_mark(lockstep_name("lockstep_trace_start"));
  return __atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) != 0 ? 1 : 0;
}

void lockstep_trace_stop(void) { __atomic_store_n(&lockstep_recording, 0, __ATOMIC_RELAXED); }

}  // extern "C"
