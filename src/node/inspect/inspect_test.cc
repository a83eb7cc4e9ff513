#include "node/inspect/inspect.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/subprocess.h"
#include "base/testing/checkout.h"
#include "base/unique_fd.h"
#include "node/inspect/syscall_name.h"
#include "node/inspect/testing/target_process.h"
#include "node/inspect/thread_snapshot.h"

extern "C" {
// Names to be found again on a stack; no tail calls, so that each has a frame.
[[gnu::noinline]] void lockstep_test_reads(int fd) {
  char byte = 0;
  while (::read(fd, &byte, 1) < 0) {
  }
  asm volatile("");
}
[[gnu::noinline]] void lockstep_test_waits(int fd) {
  lockstep_test_reads(fd);
  asm volatile("");
}
[[gnu::noinline]] void lockstep_test_spins(std::atomic<uint64_t>* counter) {
  while (true) *counter += 1;
}
}

namespace lockstep::inspect {
namespace {

using evidence::InspectedProcess;
using evidence::Liveness;
using evidence::StackFrame;
using evidence::ThreadStack;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

const InspectOptions kQuick = {.devices = false, .state_window_ns = 50'000'000};

std::vector<std::string> Functions(const std::vector<StackFrame>& frames) {
  std::vector<std::string> names;
  for (const StackFrame& frame : frames) names.push_back(frame.function);
  return names;
}

/// Until the main thread is in the call that its program ends with: it says that it is ready before that.
bool AwaitSleep(pid_t pid) {
  return TargetProcess::WaitUntil([&] {
    const auto call = ParseBlockedCall(ReadProcFile(pid, "syscall").value_or(""));
    return call && SyscallName(call->number).ends_with("nanosleep");
  });
}

const ThreadStack* MainThread(const InspectedProcess& process) {
  for (const ThreadStack& thread : process.stacks) {
    if (thread.is_main) return &thread;
  }
  return nullptr;
}

std::vector<std::string> MissingOf(const InspectedProcess& process) {
  std::vector<std::string> what;
  for (const auto& missing : process.missing) what.push_back(missing.what);
  return what;
}

/// A child with a pipe from its standard output, which says a line when it is where the test wants it.
class TalkingChild {
 public:
  explicit TalkingChild(const std::vector<std::string>& arguments,
                        const std::optional<std::vector<std::string>>& environment = std::nullopt) {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    output_ = UniqueFd(ends[0]);
    const UniqueFd to_child(ends[1]);
    auto child = ChildProcess::Start(arguments, {.output = to_child.get()}, environment);
    if (child) child_ = std::move(*child);
  }
  std::string ReadLine() {
    std::string line;
    char c = 0;
    while (::read(output_.get(), &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  pid_t pid() const { return child_.pid(); }

 private:
  UniqueFd output_;
  ChildProcess child_;
};

TEST(InspectTest, SleepingThreadsAreSeenWithoutBeingHeld) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  TargetProcess target([](SharedCounters* counters) {
    std::array<int, 2> pipe = {};
    if (::pipe(pipe.data()) != 0) return;
    counters->ready = true;
    lockstep_test_waits(pipe[0]);
  });
  ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.State() == 'S'; }));
  const auto process = InspectProcess(target.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  EXPECT_EQ(process->liveness, Liveness::kRunning);
  EXPECT_GT(process->start_ticks, 0u);
  const ThreadStack* main = MainThread(*process);
  ASSERT_NE(main, nullptr);
#ifndef LOCKSTEP_SANITIZED  // Its own read() lies between, whose frame needs registers that are unknown without a stop.
  EXPECT_THAT(Functions(main->native), IsSupersetOf({"lockstep_test_reads", "lockstep_test_waits"}));
#endif
  EXPECT_EQ(main->syscall, "read");
  EXPECT_EQ(main->state, 'S');
  EXPECT_THAT(MissingOf(*process), Not(Contains("native_stacks")));
  EXPECT_EQ(process->longest_pause_ns, 0);
  ASSERT_TRUE(process->state);
  EXPECT_EQ(process->state->cpu_ns, 0);
  EXPECT_EQ(process->state->context_switches, 0);
  EXPECT_GT(process->state->resident_bytes.value_or(0), 0u);
}

TEST(InspectTest, RunningThreadIsHeldForItsStack) {
  if (!CanTakeSnapshots()) GTEST_SKIP() << "no native stacks on this machine";
  TargetProcess target([](SharedCounters* counters) {
    counters->ready = true;
    lockstep_test_spins(&counters->main);
  });
  ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.counters().main > 0; }));
  InspectOptions options = kQuick;
  // On a busy machine who runs has no processor for a while, and needs one to be held.
  options.state_window_ns = 1'000'000'000;
  options.longest_pause_ns = 1'000'000'000;
  const auto process = InspectProcess(target.pid(), options);
  ASSERT_TRUE(process) << process.error().ToString();
  const ThreadStack* main = MainThread(*process);
  ASSERT_NE(main, nullptr);
  EXPECT_THAT(Functions(main->native), Contains("lockstep_test_spins"));
  EXPECT_GT(process->longest_pause_ns, 0);
  ASSERT_TRUE(process->state);
  EXPECT_GT(process->state->cpu_ns.value_or(0), 0);
}

TEST(InspectTest, StoppedProcessIsSaidToBeStopped) {
  TargetProcess target([](SharedCounters* counters) {
    counters->ready = true;
    while (true) ::pause();
  });
  ::kill(target.pid(), SIGSTOP);
  ASSERT_TRUE(TargetProcess::WaitUntil([&] { return target.State() == 'T'; }));
  const auto process = InspectProcess(target.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  ASSERT_TRUE(process->state);
  EXPECT_EQ(process->state->state, 'T');
  EXPECT_THAT(process->missing, Contains(Field(&evidence::MissingEvidence::reason, "it is stopped")));
}

TEST(InspectTest, ProcessThatHasEndedIsNotFound) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_TRUE(TargetProcess::WaitUntil([&] {
    const auto stat = ParseProcStat(ReadProcFile(child, "stat").value_or(""));
    return stat && stat->state == 'Z';
  }));
  auto process = InspectProcess(child, kQuick);
  ASSERT_FALSE(process) << "a zombie has nothing to look at";
  EXPECT_EQ(process.error().code, ErrorCode::kNotFound);
  ::waitpid(child, nullptr, 0);
  process = InspectProcess(child, kQuick);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(InspectProcess(-1, kQuick).error().code, ErrorCode::kNotFound);
  const std::vector<InspectedProcess> several = InspectProcesses({child, 0}, kQuick);
  ASSERT_EQ(several.size(), 2u);
  EXPECT_EQ(several[0].liveness, Liveness::kGone);
  EXPECT_EQ(several[0].pid, child);
  EXPECT_FALSE(several[0].missing.empty());
}

TEST(InspectTest, AnotherUsersProcessIsRefused) {
  TargetProcess target([](SharedCounters* counters) {
    counters->ready = true;
    while (true) ::pause();
  });
  const pid_t other = ::geteuid() == 0 ? target.pid() : 1;
  const pid_t asker = ::fork();
  if (asker == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(100);
    const auto process = InspectProcess(other, kQuick);
    ::_exit(process ? 101 : static_cast<int>(process.error().code));
  }
  int status = 0;
  ::waitpid(asker, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorCode::kPermissionDenied));
}

TEST(InspectTest, RootLooksAtAnotherUsersProcess) {
  if (::geteuid() != 0 || !CanTakeSnapshots()) GTEST_SKIP() << "not root, or no native stacks on this machine";
  TargetProcess target([](SharedCounters* counters) {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return;
    ::prctl(PR_SET_DUMPABLE, 1);
    counters->ready = true;
    while (true) ::pause();
  });
  const auto process = InspectProcess(target.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  ASSERT_NE(MainThread(*process), nullptr);
  EXPECT_THAT(MainThread(*process)->native, Not(IsEmpty()));
}

TEST(InspectTest, SocketsAreThoseOfTheProcess) {
  TargetProcess target([](SharedCounters* counters) {
    const int server = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(server, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(server, 1) != 0) return;
    ::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size);
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(client, reinterpret_cast<sockaddr*>(&address), size) != 0) return;
    if (::write(client, "unread", 6) != 6) return;
    counters->main = ntohs(address.sin_port);
    const int accepted = ::accept(server, nullptr, nullptr);
    counters->ready = accepted >= 0;
    while (true) ::pause();
  });
  const auto process = InspectProcess(target.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  ASSERT_TRUE(process->state);
  const std::string end = fmt::format("127.0.0.1:{}", target.counters().main.load());
  ASSERT_EQ(process->state->sockets.size(), 3u);
  bool is_listening = false;
  bool has_unread = false;
  for (const evidence::SocketState& socket : process->state->sockets) {
    is_listening |= socket.state == "LISTEN" && socket.local == end;
    has_unread |= socket.state == "ESTABLISHED" && socket.local == end && socket.receive_queue_bytes == 6;
  }
  EXPECT_TRUE(is_listening);
  EXPECT_TRUE(has_unread);
}

TEST(InspectTest, EnvironmentAndLogAreRead) {
  const std::string log = ::testing::TempDir() + fmt::format("/inspect-log-{}", ::getpid());
  const UniqueFd file(::open(log.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  const std::vector<std::string> environment = {"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8", "SLURM_JOB_ID=77",
                                                "PATH=" + std::string(std::getenv("PATH"))};
  auto child = ChildProcess::Start({"sh", "-c", "echo something went wrong >&2; sleep 100"},
                                   {.output = file.get(), .error = file.get()}, environment);
  ASSERT_TRUE(child);
  ASSERT_TRUE(TargetProcess::WaitUntil([&] { return std::filesystem::file_size(log) > 0; }));
  const auto process = InspectProcess(child->pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  EXPECT_EQ(process->rank, 3);
  EXPECT_EQ(process->local_rank, 1);
  EXPECT_EQ(process->world_size, 8);
  EXPECT_EQ(process->job_id, "77");
  EXPECT_EQ(process->log_path, std::filesystem::canonical(log).string());
  EXPECT_EQ(process->log_tail, "something went wrong\n");
  EXPECT_THAT(MissingOf(*process), Contains("flight_recorder"));
  std::filesystem::remove(log);
}

std::string HelperScript(const std::string& body) {
  return fmt::format(
      "import sys, threading, time, os\n"
      "sys.path.insert(0, '{}/python/lockstep')\n"
      "import _hang\n"
      "{}",
      Checkout().string(), body);
}

std::vector<std::string> EnvironmentWithHangFolder(const std::string& folder) {
  std::vector<std::string> environment = EnvironmentWithout({"LOCKSTEP_HANG_DIR"});
  environment.push_back("LOCKSTEP_HANG_DIR=" + folder);
  return environment;
}

TEST(InspectTest, PythonHelperTellsWhereEachThreadIs) {
  const std::string folder = ::testing::TempDir() + fmt::format("/hang-folder-{}", ::getpid());
  TalkingChild child({"python3", "-c",
                      HelperScript("assert _hang.enable_hang_dumps()\n"
                                   "lock = threading.Lock()\n"
                                   "begun = threading.Semaphore(0)\n"
                                   "def waits_for_lock():\n"
                                   "    lock.acquire()\n"
                                   "    begun.release(); lock.acquire()\n"
                                   "def reads():\n"
                                   "    begun.release(); os.read(os.pipe()[0], 1)\n"
                                   "def sleeps():\n"
                                   "    print('ready', flush=True)\n"
                                   "    time.sleep(1000)\n"
                                   "for work in (waits_for_lock, reads):\n"
                                   "    threading.Thread(target=work, daemon=True).start()\n"
                                   "    begun.acquire()\n"
                                   "sleeps()\n")},
                     EnvironmentWithHangFolder(folder));
  ASSERT_EQ(child.ReadLine(), "ready");
  const auto process = InspectProcess(child.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  const ThreadStack* main = MainThread(*process);
  ASSERT_NE(main, nullptr);
  ASSERT_THAT(main->python, Not(IsEmpty()));
  EXPECT_EQ(main->python[0].function, "sleeps");
  EXPECT_GT(main->python[0].line, 0);
  std::vector<std::string> all;
  for (const ThreadStack& thread : process->stacks) {
    for (const StackFrame& frame : thread.python) all.push_back(frame.function);
  }
  EXPECT_THAT(all, IsSupersetOf({"waits_for_lock", "reads", "sleeps"}));
  EXPECT_EQ(process->record_bytes, "") << "it has no PyTorch";
  std::filesystem::remove_all(folder);
}

TEST(InspectTest, PythonFramesNeedNoHelperAndNoStop) {
  TalkingChild child({"python3", "-c",
                      "import threading, time, os\n"
                      "lock, begun = threading.Lock(), threading.Semaphore(0)\n"
                      "def waits_for_lock():\n"
                      "    lock.acquire()\n"
                      "    begun.release(); lock.acquire()\n"
                      "class Reader:\n"
                      "    def reads(self):\n"
                      "        begun.release(); os.read(os.pipe()[0], 1)\n"
                      "def sleeps():\n"
                      "    print('ready', flush=True)\n"
                      "\n"
                      "    time.sleep(1000)\n"
                      "for work in (waits_for_lock, Reader().reads):\n"
                      "    threading.Thread(target=work, daemon=True).start()\n"
                      "begun.acquire(), begun.acquire()\n"
                      "list(map(lambda work: work(), [sleeps]))\n"});
  ASSERT_EQ(child.ReadLine(), "ready");
  ASSERT_TRUE(AwaitSleep(child.pid()));
  const auto process = InspectProcess(child.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  EXPECT_THAT(MissingOf(*process), Not(Contains("python_stacks")));
  std::vector<std::string> all;
  for (const ThreadStack& thread : process->stacks) {
    for (const StackFrame& frame : thread.python) all.push_back(fmt::format("{}:{}", frame.function, frame.line));
  }
  EXPECT_THAT(all, IsSupersetOf({"waits_for_lock:5", "Reader.reads:8", "sleeps:12", "<lambda>:16", "<module>:16"}));
  const ThreadStack* main = MainThread(*process);
  ASSERT_NE(main, nullptr);
  EXPECT_THAT(Functions(main->python), ::testing::ElementsAre("sleeps", "<lambda>", "<module>"));
  EXPECT_EQ(main->source, "cpython");
  EXPECT_FALSE(main->holds_gil);
}

TEST(InspectTest, HelperThatCannotAnswerCostsItsPartOnly) {
  const std::string folder = ::testing::TempDir() + fmt::format("/hang-folder-locked-{}", ::getpid());
  // A call that keeps the interpreter's lock: no other Python thread runs meanwhile.
  TalkingChild child({"python3", "-c",
                      HelperScript("import ctypes\n"
                                   "assert _hang.enable_hang_dumps()\n"
                                   "def keeps_the_lock():\n"
                                   "    print('ready', flush=True)\n"
                                   "    ctypes.PyDLL(None).sleep(1000)\n"
                                   "keeps_the_lock()\n")},
                     EnvironmentWithHangFolder(folder));
  ASSERT_EQ(child.ReadLine(), "ready");
  ASSERT_TRUE(AwaitSleep(child.pid()));
  InspectOptions options = kQuick;
  options.deadline_ns = 10'000'000'000;
  const auto process = InspectProcess(child.pid(), options);
  ASSERT_TRUE(process) << process.error().ToString();
  EXPECT_THAT(process->missing, Contains(Field(&evidence::MissingEvidence::reason, HasSubstr("interpreter's lock"))));
  const ThreadStack* main = MainThread(*process);
  ASSERT_NE(main, nullptr);
  if (CanTakeSnapshots()) {
    EXPECT_THAT(main->native, Not(IsEmpty()));
  }
  // From outside its frames are seen all the same, and who keeps the lock.
  EXPECT_THAT(Functions(main->python), Contains("keeps_the_lock"));
  EXPECT_TRUE(main->holds_gil);
  EXPECT_EQ(main->source, "cpython");
  std::filesystem::remove_all(folder);
}

TEST(InspectTest, RecordComesThroughThePipeThatTheEnvironmentNames) {
  const std::string folder = ::testing::TempDir() + fmt::format("/pipe-{}", ::getpid());
  std::filesystem::create_directories(folder);
  ASSERT_EQ(::mkfifo((folder + "/fr_2.pipe").c_str(), 0600), 0);
  const std::vector<std::string> environment = {"PATH=" + std::string(std::getenv("PATH")),
                                                "RANK=2",
                                                "LOCAL_RANK=0",
                                                "WORLD_SIZE=4",
                                                "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + folder + "/fr_",
                                                "TORCH_FR_DUMP_TEMP_FILE=" + folder + "/trace_"};
  // What stands for the recorder's thread: it reads the pipe, and writes its dump when a byte comes.
  TalkingChild child({"python3", "-c",
                      fmt::format("import os\n"
                                  "pipe = os.open('{0}/fr_2.pipe', os.O_RDONLY | os.O_NONBLOCK)\n"
                                  "print('ready', flush=True)\n"
                                  "import select\n"
                                  "select.select([pipe], [], [])\n"
                                  "open('{0}/trace_2', 'wb').write(b'a dump')\n"
                                  "import time; time.sleep(1000)\n",
                                  folder)},
                     environment);
  ASSERT_EQ(child.ReadLine(), "ready");
  const auto process = InspectProcess(child.pid(), kQuick);
  ASSERT_TRUE(process) << process.error().ToString();
  EXPECT_EQ(process->record_bytes, "a dump");
  EXPECT_EQ(process->record_source, "pipe");
  EXPECT_EQ(process->record_format, "pickle");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::inspect
