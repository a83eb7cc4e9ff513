#include "node/proc/process_end.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace lockstep::proc {
namespace {

/// A child that has ended as `end` does, and that nobody has waited for.
class Ended {
 public:
  explicit Ended(void (*end)()) {
    pid_ = ::fork();
    if (pid_ == 0) {
      const rlimit none = {};
      ::setrlimit(RLIMIT_CORE, &none);
      end();
      ::_exit(0);
    }
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd waited = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waited, 1, -1);
  }
  ~Ended() { Reap(); }
  void Reap() {
    if (!reaped_) ::waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }
  control::ProcessEnd Read() const { return ReadProcessEnd(pidfd_.get(), pid_, 77); }

 private:
  pid_t pid_ = 0;
  UniqueFd pidfd_;
  bool reaped_ = false;
};

void Crash() {
  ::signal(SIGSEGV, SIG_DFL);  // Sanitizers have a handler.
  ::raise(SIGSEGV);
}

TEST(ProcessEndTest, AZombieTellsItsSignal) {
  const Ended ended(Crash);
  EXPECT_EQ(ended.Read().signal, SIGSEGV);
  EXPECT_EQ(ended.Read().exit_status, std::nullopt);
  EXPECT_EQ(ended.Read().unix_ns, 77);
  EXPECT_TRUE(ended.Read().IsDeath());
}

TEST(ProcessEndTest, AZombieTellsItsExitStatus) {
  const Ended failed([] { ::_exit(3); });
  EXPECT_EQ(failed.Read().exit_status, 3);
  EXPECT_TRUE(failed.Read().IsDeath());
  const Ended fine([] {});
  EXPECT_EQ(fine.Read().exit_status, 0);
  EXPECT_FALSE(fine.Read().IsDeath());
}

TEST(ProcessEndTest, OneThatWasWaitedForTellsItWhereTheKernelKeepsIt) {
  Ended ended(Crash);
  ended.Reap();
  const control::ProcessEnd end = ended.Read();
  if (!end.signal) {  // Before Linux 6.15.
    EXPECT_EQ(end.exit_status, std::nullopt);
    EXPECT_FALSE(end.IsDeath());
    return;
  }
  EXPECT_EQ(end.signal, SIGSEGV);
}

TEST(ProcessEndTest, WordsSayHow) {
  EXPECT_EQ(control::EndWords(EndOfStatus(SIGSEGV, 0)), "was ended by SIGSEGV");
  EXPECT_EQ(control::EndWords(EndOfStatus(SIGABRT | 0x80, 0)), "was ended by SIGABRT");  // With a core file.
  EXPECT_EQ(control::EndWords(EndOfStatus(1 << 8, 0)), "ended with exit status 1");
  EXPECT_EQ(control::EndWords({}), "ended");
}

}  // namespace
}  // namespace lockstep::proc
