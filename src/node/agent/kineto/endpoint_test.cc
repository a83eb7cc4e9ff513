#include "node/agent/kineto/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "node/agent/kineto/testing/kineto_client.h"

namespace lockstep::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::KinetoClient;
using ::testing::Optional;
using ::testing::SizeIs;
using testing::UniqueName;

/// Waits for a condition that another thread or process brings about.
bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 240s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// Polls until there is an answer. On a machine that is busy enough a poll is handled too late, and stays without one.
std::optional<std::string> Ask(const KinetoClient& client) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (!client.SendPoll()) return std::nullopt;
    if (auto reply = client.ReadWithin(200ms)) return reply;
  }
  return std::nullopt;
}

std::optional<std::string> AnswerOrAsk(const KinetoClient& client) {
  auto reply = client.ReadWithin(200ms);
  return reply ? reply : Ask(client);
}

class Folder {
 public:
  Folder() {
    std::string path = "/tmp/lsk-XXXXXX";
    path_ = ::mkdtemp(path.data());
    std::filesystem::permissions(path_, std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class KinetoEndpointTest : public ::testing::Test {
 protected:
  void Open(std::vector<std::string> directories = {}, bool abstract_socket = true) {
    auto endpoint = KinetoEndpoint::Create(
        {.name = name_, .abstract_socket = abstract_socket, .directories = std::move(directories), .host = "n001"});
    ASSERT_TRUE(endpoint) << endpoint.error().message;
    endpoint_ = std::move(*endpoint);
    endpoint_->Listen([this](const RegistryEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    });
  }
  void TearDown() override {
    if (endpoint_) endpoint_->Listen(nullptr);
  }
  std::optional<RegistryEvent> FindEvent(RegistryEvent::Kind kind) {
    const std::lock_guard lock(mutex_);
    for (const RegistryEvent& event : events_)
      if (event.kind == kind) return event;
    return std::nullopt;
  }
  bool WaitFor(RegistryEvent::Kind kind) {
    return Eventually([&] { return FindEvent(kind).has_value(); });
  }
  std::string OnlyId() {
    EXPECT_TRUE(Eventually([&] { return endpoint_->Processes().size() == 1; }));
    return endpoint_->Processes().at(0).id;
  }

  std::string name_ = UniqueName();
  std::unique_ptr<KinetoEndpoint> endpoint_;
  std::mutex mutex_;
  std::vector<RegistryEvent> events_;
};

TEST_F(KinetoEndpointTest, KernelShowsTheNameWithItsTrailingZero) {
  Open();
  std::ifstream sockets("/proc/net/unix");
  bool found = false;
  for (std::string line; std::getline(sockets, line);) {
    if (line.find("lockstep-test") == std::string::npos) continue;
    found = found || line.ends_with(" @" + name_ + "@");
    EXPECT_FALSE(line.ends_with("@" + name_)) << "a name without the zero is one that no client sends to";
  }
  EXPECT_TRUE(found);
}

TEST_F(KinetoEndpointTest, PollIsAnsweredAndTheProcessIsKnown) {
  Open();
  const KinetoClient client(name_, "");
  ASSERT_TRUE(client.bound());
  EXPECT_THAT(client.address(), SizeIs(54));
  EXPECT_THAT(Ask(client), Optional(std::string()));
  const auto process = endpoint_->Find(OnlyId());
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, ::getpid());
  EXPECT_EQ(process->uid, ::getuid());
  EXPECT_GT(process->start_ticks, 0u);
  EXPECT_EQ(process->id, fmt::format("{}-{}", process->pid, process->start_ticks));
  EXPECT_EQ(process->host, "n001");
  EXPECT_EQ(process->device, "cpu");
  EXPECT_THAT(process->command, HasSubstr("lockstep_node_agent_kineto_test"));
  EXPECT_TRUE(WaitFor(RegistryEvent::Kind::kRegistered));
}

TEST_F(KinetoEndpointTest, OfferReachesTheProcessOnce) {
  Open();
  const KinetoClient client(name_, "");
  ASSERT_TRUE(Ask(client));
  const std::string id = OnlyId();
  ASSERT_TRUE(endpoint_->Place(id, {.token = "t1", .text = "ACTIVITIES_DURATION_MSECS=5\n"}));
  EXPECT_THAT(Ask(client), Optional(std::string("ACTIVITIES_DURATION_MSECS=5\n")));
  EXPECT_THAT(Ask(client), Optional(std::string()));
  ASSERT_TRUE(WaitFor(RegistryEvent::Kind::kDelivered));
  EXPECT_EQ(FindEvent(RegistryEvent::Kind::kDelivered)->token, "t1");
  ASSERT_TRUE(client.SendPoll(1));
  EXPECT_TRUE(WaitFor(RegistryEvent::Kind::kBusy));
  ASSERT_TRUE(client.SendPoll(3));
  EXPECT_TRUE(WaitFor(RegistryEvent::Kind::kFree));
}

TEST_F(KinetoEndpointTest, SixtyFourClientsAtOnceAreAllAnswered) {
  Open();
  // Four addresses of a process are its limit: the burst comes from sixteen.
  std::vector<pid_t> children;
  for (int child = 0; child < 16; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool good = true;
      std::vector<std::unique_ptr<KinetoClient>> clients;
      for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<KinetoClient>(name_, ""));
      for (int round = 0; round < 3; ++round) {
        for (const auto& client : clients) good = client->SendPoll() && good;
        for (const auto& client : clients) good = AnswerOrAsk(*client) == std::string() && good;
      }
      for (const auto& client : clients) good = !client->Read() && good;
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(endpoint_->Counters().registrations, 64u);
  EXPECT_TRUE(Eventually([&] { return endpoint_->Counters().ended == 64; })) << "they have ended, and are forgotten";
}

TEST_F(KinetoEndpointTest, ClientThatClosesBeforeTheReplyHoldsNobodyUp) {
  Open();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(KinetoClient(name_, "").SendPoll());
  const KinetoClient client(name_, "");
  // All of them share this process's four places, which dead addresses leave.
  EXPECT_TRUE(Ask(client));
}

TEST_F(KinetoEndpointTest, EndedProcessIsForgotten) {
  Open();
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const KinetoClient client(name_, "");
    client.SendPoll();
    char wait;
    [[maybe_unused]] const ssize_t size = ::read(gate[0], &wait, 1);
    ::_exit(0);
  }
  EXPECT_EQ(endpoint_->Find(OnlyId())->pid, pid);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(WaitFor(RegistryEvent::Kind::kEnded));
  EXPECT_EQ(FindEvent(RegistryEvent::Kind::kEnded)->end.signal, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_THAT(endpoint_->Processes(), IsEmpty());
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST_F(KinetoEndpointTest, SecondEndpointOnOneNameIsRefusedAndToldWhoHasIt) {
  Open();
  const auto second = KinetoEndpoint::Create({.name = name_});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("process {} ", ::getpid())));
}

TEST_F(KinetoEndpointTest, MalformedAndNamelessDatagramsAreCounted) {
  Open();
  const KinetoClient client(name_, "");
  client.Send({std::byte{1}});
  client.Send(WriteMessage("model_status", {}));
  const UniqueFd nameless(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t length = WriteAddress(std::string(1, '\0') + name_ + '\0', &address);
  const auto bytes = WritePoll({.mask = 3, .job_id = 0, .pids = {1}});
  ASSERT_GT(::sendto(nameless.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_TRUE(Eventually([&] { return endpoint_->Counters().datagrams == 3; }));
  const KinetoCounters counters = endpoint_->Counters();
  EXPECT_EQ(counters.malformed, 1u);
  EXPECT_EQ(counters.unknown_tags, 1u);
  EXPECT_EQ(counters.unanswerable, 1u);
  EXPECT_EQ(counters.registrations, 0u);
}

TEST_F(KinetoEndpointTest, DescriptorsThatCameAlongAreNotKept) {
  Open();
  const KinetoClient client(name_, "");
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const auto bytes = WritePoll({.mask = 3, .job_id = 0, .pids = {1}});
  iovec part = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  sockaddr_un address;
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = WriteAddress(std::string(1, '\0') + name_ + '\0', &address);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &pipe_ends[1], sizeof(int));
  ASSERT_GT(::sendmsg(client.fd(), &message, 0), 0);
  ASSERT_TRUE(Eventually([&] { return endpoint_->Counters().registrations == 1; }));
  ::close(pipe_ends[1]);
  // The last writing end is gone, unless the endpoint kept its copy.
  pollfd waited = {.fd = pipe_ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waited, 1, 5000), 1);
  EXPECT_NE(waited.revents & POLLHUP, 0);
  ::close(pipe_ends[0]);
}

TEST_F(KinetoEndpointTest, DirectoryClientIsAnsweredAndItsFileRemovedAfterIt) {
  const Folder folder;
  Open({folder.path()});
  EXPECT_THAT(endpoint_->Sockets(), ElementsAre("abstract:" + name_, folder.path() + "/" + name_));
  const auto mode = std::filesystem::status(folder.path() + "/" + name_).permissions();
  EXPECT_EQ(mode, static_cast<std::filesystem::perms>(0666));
  std::string file;
  const pid_t pid = ::fork();
  if (pid == 0) {
    const KinetoClient client(name_, folder.path());
    ::_exit(Ask(client) == std::string() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Eventually([&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()) ==
           1;
  }));
}

TEST_F(KinetoEndpointTest, ClientWithAnotherPathOfTheDirectoryGetsSilence) {
  const Folder folder;
  const Folder links;
  const std::string link = links.path() + "/d";
  std::filesystem::create_directory_symlink(folder.path(), link);
  Open({folder.path()}, false);
  for (const std::string& path : {link, folder.path() + "/", "/tmp/../" + folder.path().substr(1)}) {
    const KinetoClient client(name_, path);
    ASSERT_TRUE(client.bound()) << path;
    const uint64_t before = endpoint_->Counters().unanswerable;
    ASSERT_TRUE(client.SendPoll());
    ASSERT_TRUE(Eventually([&] { return endpoint_->Counters().unanswerable > before; }));
    EXPECT_FALSE(client.ReadWithin(100ms)) << path << ": an answer aborts this process";
    ::unlink(client.address().c_str());
  }
  EXPECT_THAT(endpoint_->Problems(), SizeIs(3));
  EXPECT_THAT(endpoint_->Problems(), ::testing::Contains(HasSubstr(link)));
  EXPECT_THAT(endpoint_->Processes(), IsEmpty());
}

TEST_F(KinetoEndpointTest, DirectoryAliasWithItsOwnSocketIsAnswered) {
  const Folder folder;
  const Folder links;
  std::filesystem::create_directory_symlink(folder.path(), links.path() + "/d");
  // Two strings for one file: the second finds the first's socket there, alive.
  const auto both = KinetoEndpoint::Create(
      {.name = name_, .abstract_socket = false, .directories = {folder.path(), links.path() + "/d"}});
  EXPECT_FALSE(both);
  Open({links.path() + "/d"}, false);
  const KinetoClient client(name_, links.path() + "/d");
  EXPECT_THAT(Ask(client), Optional(std::string()));
}

TEST_F(KinetoEndpointTest, DeadSocketIsTakenOverAndALivingOneIsNot) {
  const Folder folder;
  { const KinetoClient dead(name_, folder.path()); }
  std::filesystem::create_directories(folder.path());
  std::filesystem::rename(std::filesystem::directory_iterator(folder.path())->path(), folder.path() + "/" + name_);
  Open({folder.path()}, false);
  const auto second = KinetoEndpoint::Create({.name = name_, .abstract_socket = false, .directories = {folder.path()}});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
  const KinetoClient client(name_, folder.path());
  EXPECT_TRUE(Ask(client)) << "the first one still answers";
}

TEST_F(KinetoEndpointTest, UnusableDirectoriesAreRefused) {
  const auto refused = [&](const std::string& directory) {
    const auto endpoint = KinetoEndpoint::Create({.name = name_, .abstract_socket = false, .directories = {directory}});
    EXPECT_FALSE(endpoint) << directory;
    return endpoint ? ErrorCode::kCancelled : endpoint.error().code;
  };
  EXPECT_EQ(refused("/tmp/no-such-directory-here"), ErrorCode::kNotFound);
  EXPECT_EQ(refused("tmp"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused(""), ErrorCode::kInvalidArgument);
  const Folder folder;
  const std::string long_path = folder.path() + "/" + std::string(54 - folder.path().size(), 'a');
  std::filesystem::create_directories(long_path);
  EXPECT_EQ(refused(long_path), ErrorCode::kInvalidArgument);
  EXPECT_EQ(KinetoEndpoint::Create({.abstract_socket = false}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(KinetoEndpointTest, StoppedDaemonDoesNotShiftItsClientsReplies) {
  // The endpoint is in a process of its own, that can be stopped.
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto endpoint = KinetoEndpoint::Create({.name = name_});
    while (endpoint) ::pause();
    ::_exit(1);
  }
  const KinetoClient client(name_, "");
  ASSERT_TRUE(Eventually([&] { return client.Poll(3, 9).has_value(); }));
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  ASSERT_EQ(::waitpid(pid, nullptr, WUNTRACED), pid);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(client.Poll());
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
  // A poll after it is answered once, and nothing of the old ones comes before or behind.
  ASSERT_TRUE(Eventually([&] { return client.Poll(3, 9).has_value(); }));
  EXPECT_FALSE(client.ReadWithin(200ms));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_F(KinetoEndpointTest, PollsAreAnsweredWithinKinetosBudget) {
  Open();
  const KinetoClient client(name_, "");
  // The looks of Kineto to 2.9. On a busy machine a poll may be unlucky, and an answer may come after the looks, which
  // the next poll takes for its own; but then that one has no other, and the client is in step again.
  int answered = 0;
  for (int i = 0; i < 200 && answered < 10; ++i) {
    answered += client.Poll() ? 1 : 0;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(answered, 10);
  EXPECT_TRUE(Eventually([&] {
    client.Poll();
    std::this_thread::sleep_for(150ms);
    int waiting_bytes = -1;
    return ::ioctl(client.fd(), FIONREAD, &waiting_bytes) == 0 && waiting_bytes == 0;
  }));
}

TEST_F(KinetoEndpointTest, ClientThatHoldsTheLastDaemonsReplyIsBroughtIntoStep) {
  const KinetoClient client(name_, "");
  {
    // Two replies that came too late, of a daemon that is gone.
    const KinetoClient old_daemon(name_, "");
    sockaddr_un address;
    const socklen_t length = WriteAddress(client.address(), &address);
    const auto reply = WriteMessage(kPollTag, {});
    for (int i = 0; i < 2; ++i)
      ASSERT_GT(::sendto(old_daemon.fd(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&address), length),
                0);
  }
  Open();
  // Each poll reads an old one first, as Kineto does, until the endpoint has seen that there is one.
  EXPECT_TRUE(Eventually([&] {
    client.Poll();
    std::this_thread::sleep_for(150ms);
    int waiting_bytes = -1;
    return ::ioctl(client.fd(), FIONREAD, &waiting_bytes) == 0 && waiting_bytes == 0;
  }));
  EXPECT_GE(endpoint_->Counters().withheld, 2u);
}

TEST_F(KinetoEndpointTest, UsersAreToldApart) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to start a process of another user";
  Open();
  const KinetoClient own(name_, "");
  ASSERT_TRUE(own.SendPoll());
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    const KinetoClient client(name_, "");
    client.SendPoll();
    char wait;
    [[maybe_unused]] const ssize_t size = ::read(gate[0], &wait, 1);
    ::_exit(0);
  }
  ASSERT_TRUE(Eventually([&] { return endpoint_->Processes().size() == 2; }));
  for (const auto& process : endpoint_->Processes()) EXPECT_EQ(process.uid, process.pid == pid ? 65534u : 0u);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(gate[0]);
  ::close(gate[1]);
}

}  // namespace
}  // namespace lockstep::agent
