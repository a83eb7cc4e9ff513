// What the profiler plugin takes on NCCL's threads once it is initialised: no memory, no lock, no system call, and no
// more of its file. The program's own malloc and pthread_mutex_lock count calls of the thread that asks for it, and
// pass them on; the kernel hands it the thread's system calls (Syscall User Dispatch, Linux 5.11), which it counts and
// makes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "nccl_driver.h"

#ifdef LOCKSTEP_SANITIZED
#include <sanitizer/allocator_interface.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define LOCKSTEP_OWN_LOCKS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOCKSTEP_OWN_LOCKS 0
#endif
#endif
#ifndef LOCKSTEP_OWN_LOCKS
#define LOCKSTEP_OWN_LOCKS 1
#endif

namespace {

// Without a constructor, and in storage that needs no memory when it is first touched.
__attribute__((tls_model("initial-exec"))) __thread bool is_counting = false;
__attribute__((tls_model("initial-exec"))) __thread uint64_t allocation_count = 0;
__attribute__((tls_model("initial-exec"))) __thread uint64_t lock_count = 0;
__attribute__((tls_model("initial-exec"))) __thread uint64_t system_call_count = 0;
__attribute__((tls_model("initial-exec"))) __thread int last_system_call = -1;
__attribute__((tls_model("initial-exec"))) __thread volatile char system_calls_go = SYSCALL_DISPATCH_FILTER_ALLOW;

void CountAllocation() { allocation_count += is_counting ? 1 : 0; }

/// In place of the kernel, on x86-64: counts the call and makes it.
void OnSystemCall(int /*signal*/, siginfo_t* info, void* context) {
  system_calls_go = SYSCALL_DISPATCH_FILTER_ALLOW;
  ++system_call_count;
  last_system_call = info->si_syscall;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const int saved = errno;
  const long result = ::syscall(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                registers[REG_R10], registers[REG_R8], registers[REG_R9]);
  registers[REG_RAX] = result == -1 ? -errno : result;
  errno = saved;
}

/// From here to StopCounting(), of the calling thread. System calls: up to the first, whose return from the handler
/// needs one itself.
void StartCounting() {
  struct sigaction action = {};
  action.sa_sigaction = OnSystemCall;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGSYS, &action, nullptr), 0);
  ASSERT_EQ(::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &system_calls_go), 0) << "needs Linux 5.11";
  is_counting = true;
  system_calls_go = SYSCALL_DISPATCH_FILTER_BLOCK;
}

void StopCounting() {
  system_calls_go = SYSCALL_DISPATCH_FILTER_ALLOW;
  is_counting = false;
}

}  // namespace

extern "C" {

#ifdef LOCKSTEP_SANITIZED  // Whose malloc is its own.
static void OnAllocation(const volatile void*, size_t) { CountAllocation(); }
static void OnFree(const volatile void*) {}
__attribute__((constructor)) static void Install() { __sanitizer_install_malloc_and_free_hooks(OnAllocation, OnFree); }
#else
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  CountAllocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  CountAllocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  CountAllocation();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  CountAllocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  CountAllocation();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
#endif

#if LOCKSTEP_OWN_LOCKS
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Function = int (*)(pthread_mutex_t*);
  static Function real = nullptr;
  lock_count += is_counting ? 1 : 0;
  if (real == nullptr) real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}
#endif

}  // extern "C"

namespace lockstep {
namespace {

constexpr uint64_t kCommunicator = 0xFEEDBEEF12345678;

/// Every callback that NCCL makes of a thread of its own.
void CallAll(NcclDriver& nccl, void* context, uint64_t sequence) {
  nccl.Whole(context, kCommunicator, 1, sequence, 4096, 2);
  void* const send = nccl.Send(context, kCommunicator, 1, 0, 77);
  nccl.Stop(send);
  void* const proxy = nccl.Proxy(context, send, 0, true);
  void* const step = nccl.Step(context, proxy, 0);
  for (const int change : {8, 20, 9}) nccl.State(step, change, nullptr);
  nccl.Stop(step);
  nccl.Stop(proxy);
  if (nccl.version() >= 6) nccl.Stop(nccl.CopyEngine(context, sequence, 4096));
}

/// Memory that no file backs, by the page tables. All that is resident has code in it, which comes by many pages at
/// once and when it is first run.
uint64_t AnonymousBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Anonymous:")) return std::stoull(line.substr(10)) << 10;
  }
  return 0;
}

class NcclMemoryTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { ASSERT_TRUE(folder_.made()); }

  /// `work` in a process of its own, whose expectations count.
  template <typename Work>
  void InProcess(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("LOCKSTEP_NCCL_DIR", folder_.path().c_str(), 1);
      ::setenv("LOCKSTEP_NCCL_OPERATIONS", "1024", 1);
      ::setenv("LOCKSTEP_NCCL_STEPS", "1", 1);
      NcclDriver driver(LOCKSTEP_NCCL_PROFILER, GetParam());
      EXPECT_TRUE(driver.loaded());
      if (driver.loaded()) work(driver);
      std::_Exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  struct stat FileStatus() const {
    struct stat status = {};
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) ::stat(entry.path().c_str(), &status);
    return status;
  }

  const TemporaryFolder folder_{"lockstep-nccl"};
};

TEST_P(NcclMemoryTest, CountersSeeWhatTheyCount) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const uint64_t allocations = allocation_count, locks = lock_count, calls = system_call_count;
  StartCounting();
  void* const volatile memory = std::malloc(100);
  pthread_mutex_lock(&mutex);
  const long self = ::syscall(SYS_getpid);
  StopCounting();
  pthread_mutex_unlock(&mutex);
  std::free(memory);
  EXPECT_EQ(allocation_count, allocations + 1);
  EXPECT_EQ(lock_count, locks + LOCKSTEP_OWN_LOCKS);
  EXPECT_EQ(system_call_count, calls + 1);
  EXPECT_EQ(self, ::getpid());
}

TEST_P(NcclMemoryTest, NoCallbackAfterInitTakesMemoryOrALockOrCallsTheKernel) {
  InProcess([](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "dp0", 1, 2);
    uint64_t allocations[2] = {1, 1}, locks[2] = {1, 1}, calls[2] = {1, 1};
    int call_numbers[2] = {};
    // Two threads that have never called it before, as NCCL's are.
    const auto run = [&](int thread) {
      StartCounting();
      for (uint64_t i = 0; i < 5'000; ++i) CallAll(nccl, context, i);
      StopCounting();
      allocations[thread] = allocation_count;
      locks[thread] = lock_count;
      calls[thread] = system_call_count;
      call_numbers[thread] = last_system_call;
    };
    std::thread first(run, 0), second(run, 1);
    first.join();
    second.join();
    for (int thread = 0; thread < 2; ++thread) {
      EXPECT_EQ(allocations[thread], 0u) << thread;
      EXPECT_EQ(locks[thread], 0u) << thread;
      EXPECT_EQ(calls[thread], 0u) << thread << ", system call number " << call_numbers[thread];
    }
  });
}

TEST_P(NcclMemoryTest, OnceTheRingIsFullFurtherEventsTakeNeitherFileNorMemory) {
  InProcess([this](NcclDriver& nccl) {
    void* const context = nccl.Init(kCommunicator, "dp0", 1, 2);
    uint64_t sequence = 0;
    while (sequence < 5'000) CallAll(nccl, context, sequence++);  // The ring holds 1024 operations.
    const struct stat before = FileStatus();
    const uint64_t bytes_before = AnonymousBytes();
    while (sequence < 55'000) CallAll(nccl, context, sequence++);
    const uint64_t bytes_after = AnonymousBytes();
    const struct stat after = FileStatus();
    EXPECT_GT(before.st_size, 0);
    EXPECT_EQ(after.st_size, before.st_size);
    // Half a million callbacks of 1 byte each would be beyond it: in memory, what this test itself touches for the
    // first time; on disk, what the file system adds for its own when it writes the blocks.
    constexpr uint64_t kUnrelated = uint64_t{128} << 10;
    EXPECT_LE(static_cast<uint64_t>(after.st_blocks) * 512, static_cast<uint64_t>(before.st_blocks) * 512 + kUnrelated);
    EXPECT_GT(bytes_before, 0u);
    EXPECT_LE(bytes_after, bytes_before + kUnrelated);
  });
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclMemoryTest, testing::Range(1, 7));

}  // namespace
}  // namespace lockstep
