// A program with spans, and with everything that a process may do to itself meanwhile. It prints its result, which must
// not depend on whether it is traced.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
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

/// Eight threads that record from the first to the last.
uint64_t Crowd(int64_t count) {
  std::vector<uint64_t> sums(8);
  std::vector<std::thread> threads;
  for (uint64_t& sum : sums) threads.emplace_back([&sum, count] { sum = Work(count); });
  for (std::thread& thread : threads) thread.join();
  uint64_t all = 0;
  for (const uint64_t each : sums) all += each;
  return all;
}

/// Forks in the middle of spans, while another thread records.
uint64_t Fork(int64_t count) {
  LOCKSTEP_SPAN("before fork");
  uint64_t other = 0;
  // It is there before the first fork and after the last: a sanitizer's locks of threads that begin and end do not
  // survive one.
  std::atomic<bool> has_begun = false, may_end = false;
  std::thread thread([&, count] {
    has_begun = true;
    other = Work(count);
    while (!may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!has_begun) std::this_thread::yield();
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
  may_end = true;
  thread.join();
  return sum + other + Work(100);
}

/// Killed while each of eight threads records spans of its own name, and has recorded `count`.
uint64_t KillThreads(int64_t count) {
  std::atomic<int> ready = 0;
  std::atomic<uint64_t> sum = 0;
  for (int i = 0; i < 8; ++i) {
    std::thread([&ready, &sum, i, count] {
      const lockstep_name_t own = lockstep_name(("thread" + std::to_string(i)).c_str());
      for (uint64_t value = 1, done = 0;; ++done) {
        const lockstep_span_t span = lockstep_begin(own);
        value = value * 31 + 7;
        lockstep_end(span);
        if (done != static_cast<uint64_t>(count)) continue;
        sum += value;
        ++ready;
      }
    }).detach();
  }
  while (ready < 8) std::this_thread::yield();
  std::printf("%016llx\n", static_cast<unsigned long long>(sum.load()));
  std::fflush(stdout);
  return static_cast<uint64_t>(kill(getpid(), SIGKILL));
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

/// Serves requests by another process, which it starts as rank 1 and tells whose part the work is.
uint64_t Serve(int64_t count, const char* program) {
  static lockstep::trace::Name kind("generate");
  static lockstep::trace::Name send("send");
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  const pid_t worker = fork();
  if (worker == 0) {
    dup2(pipe_ends[0], STDIN_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    setenv("RANK", "1", 1);
    execl("/proc/self/exe", program, "worker", "0", nullptr);
    _exit(127);
  }
  close(pipe_ends[0]);
  for (int64_t i = 0; i < count; ++i) {
    lockstep_context own = {}, sent = {};
    lockstep::trace::Request request(kind, nullptr, &own);
    const lockstep::trace::Span span(send, &own, &sent);
    char line[LOCKSTEP_TRACEPARENT_BYTES];
    lockstep_context_write(&sent, line);
    const std::string text = std::string(line) + "\n";
    if (write(pipe_ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) return 1;
    request.Output();
  }
  close(pipe_ends[1]);
  int status = 0;
  waitpid(worker, &status, 0);
  return static_cast<uint64_t>(WEXITSTATUS(status));
}

/// What Serve starts: a line is a traceparent, and gets two spans on this thread and one on another.
uint64_t Worker() {
  static lockstep::trace::Name prefill("prefill");
  static lockstep::trace::Name inside("inside prefill");
  static lockstep::trace::Name beside("beside prefill");
  uint64_t count = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    line[strcspn(line, "\n")] = 0;
    lockstep_context parent = {}, own = {};
    lockstep_context_read(line, &parent);
    const lockstep::trace::Span span(prefill, &parent, &own);
    { const lockstep::trace::Span nested(inside, &own, nullptr); }
    std::thread([&own] { const lockstep::trace::Span other(beside, &own, nullptr); }).join();
    ++count;
  }
  std::exit(static_cast<int>(count));
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
  } else if (mode == "crowd") {
    result = Crowd(count);
  } else if (mode == "fork") {
    result = Fork(count);
  } else if (mode == "requests") {
    result = Requests(count);
  } else if (mode == "serve") {
    result = Serve(count, argv[0]);
  } else if (mode == "worker") {
    result = Worker();
  } else if (mode == "kill") {
    LOCKSTEP_SPAN("killed inside");
    result = Work(count);
    std::printf("%016llx\n", static_cast<unsigned long long>(result));
    std::fflush(stdout);
    kill(getpid(), SIGKILL);
  } else if (mode == "kill_threads") {
    result = KillThreads(count);
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
