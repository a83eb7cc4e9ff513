// A program with spans, and with everything that a process may do to itself meanwhile. It prints its result, which must
// not depend on whether it is traced.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lockstep/trace.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

uint64_t Mix(uint64_t value) {
  LOCKSTEP_SPAN("mix");
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdu;
  return value ^ value >> 29;
}

uint64_t Work(int64_t count) {
  LOCKSTEP_SPAN("work");
  uint64_t sum = 1;
  for (int64_t i = 0; i < count; ++i) {
    sum = Mix(sum + static_cast<uint64_t>(i));
    if (i % 100 == 0) LOCKSTEP_COUNTER("done", static_cast<double>(i));
  }
  return sum;
}

uint64_t Steps(int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    lockstep_step();
    sum += Work(10);
  }
  lockstep_step_end();
  return sum;
}

uint64_t Threads(int64_t count) {
  std::vector<uint64_t> sums(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i) {
    threads.emplace_back([&sums, i] { sums[static_cast<size_t>(i)] = Work(3 + i % 5); });
    // Some live together, most one after the other.
    if (threads.size() == 100) {
      for (std::thread& thread : threads) thread.join();
      threads.clear();
    }
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0;
  for (const uint64_t each : sums) sum += each;
  return sum;
}

/// Forks in the middle of spans, while another thread records.
uint64_t Fork(int64_t count) {
  LOCKSTEP_SPAN("before fork");
  uint64_t other = 0;
  std::thread thread([&other, count] { other = Work(count); });
  uint64_t sum = 0;
  for (int child = 0; child < 3; ++child) {
    static lockstep::trace::Name name("across fork");
    const lockstep_span_t span = lockstep_begin(name.number());
    const pid_t pid = fork();
    lockstep_end(span);  // By both sides.
    if (pid == 0) {
      const uint64_t own = Work(100);
      exit(own == 0 ? 1 : 0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    sum += static_cast<uint64_t>(WEXITSTATUS(status));
  }
  thread.join();
  return sum + other + Work(100);
}

uint64_t Requests(int64_t count) {
  static lockstep::trace::Name name("generate");
  static lockstep::trace::Name call("call");
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    lockstep_context parent = {}, own = {};
    lockstep_context_read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &parent);
    lockstep::trace::Request request(name, &parent, &own);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const lockstep::trace::Span span(call, &own, nullptr);
    for (int token = 0; token < 4; ++token) {
      sum = Mix(sum + 1);
      request.Output();
    }
    if (i % 10 == 9) request.Fail();
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string mode = argv[1];
  const int64_t count = std::atoll(argv[2]);
  uint64_t result = 0;
  if (mode == "work") {
    result = Work(count);
  } else if (mode == "steps") {
    result = Steps(count);
  } else if (mode == "threads") {
    result = Threads(count);
  } else if (mode == "fork") {
    result = Fork(count);
  } else if (mode == "requests") {
    result = Requests(count);
  } else if (mode == "kill") {
    LOCKSTEP_SPAN("killed inside");
    result = Work(count);
    std::printf("%016llx\n", static_cast<unsigned long long>(result));
    std::fflush(stdout);
    kill(getpid(), SIGKILL);
  } else if (mode == "exec") {
    result = Work(count);
    execl("/proc/self/exe", argv[0], "work", argv[2], nullptr);
    return errno;
  } else if (mode == "_exit") {
    result = Work(count);
    std::printf("%016llx\n", static_cast<unsigned long long>(result));
    std::fflush(stdout);
    _exit(7);
  } else {
    return 2;
  }
  lockstep_trace_status status;
  lockstep_trace_get_status(&status);
  std::fprintf(stderr, "dropped %llu\n", static_cast<unsigned long long>(status.dropped_records));
  std::printf("%016llx\n", static_cast<unsigned long long>(result));
  return 0;
}
