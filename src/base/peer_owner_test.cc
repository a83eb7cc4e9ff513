#include "base/peer_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace lockstep {
namespace {

constexpr uid_t kOtherUid = 54321;

/// Connects from a process of its own, under another user where the test may: only root's.
class Child {
 public:
  enum class Then { kWait, kCloseAtOnce };

  Child(const std::string& address, uint16_t port, Then then) : uid_(::getuid() == 0 ? kOtherUid : ::getuid()) {
    int pipe[2] = {};
    EXPECT_EQ(0, ::pipe(pipe));
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(pipe[1]);
      if (::getuid() == 0 && ::setuid(kOtherUid) != 0) ::_exit(2);
      const bool is_v6 = address.find(':') != std::string::npos;
      const int fd = ::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
      sockaddr_in6 v6 = {};
      sockaddr_in v4 = {};
      v6.sin6_family = AF_INET6;
      v4.sin_family = AF_INET;
      v6.sin6_port = v4.sin_port = htons(port);
      ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr);
      ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
      const int failed = is_v6 ? ::connect(fd, reinterpret_cast<const sockaddr*>(&v6), sizeof(v6))
                               : ::connect(fd, reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
      if (failed) ::_exit(3);
      char end = 0;
      if (then == Then::kWait) [[maybe_unused]]
        const ssize_t count = ::read(pipe[0], &end, 1);  // Until the parent closes.
      ::_exit(0);
    }
    ::close(pipe[0]);
    hold_ = UniqueFd(pipe[1]);
  }
  ~Child() { Wait(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  uint32_t uid() const { return uid_; }
  void Wait() {
    if (pid_ <= 0) return;
    hold_ = UniqueFd();
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    EXPECT_EQ(0, status);
  }

 private:
  uid_t uid_;
  pid_t pid_ = 0;
  UniqueFd hold_;
};

/// Listens on a free port of a loopback address; no socket where there is none.
class Listener {
 public:
  explicit Listener(const char* address) {
    sockaddr_storage storage = {};
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    const bool is_v6 = ::inet_pton(AF_INET, address, &v4.sin_addr) != 1;
    if (is_v6) ::inet_pton(AF_INET6, address, &v6.sin6_addr);
    storage.ss_family = is_v6 ? AF_INET6 : AF_INET;
    socklen_t bytes = is_v6 ? sizeof(v6) : sizeof(v4);
    UniqueFd socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) != 0) return;
    if (::listen(socket.get(), 8) != 0) return;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &bytes);
    port_ = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    socket_ = std::move(socket);
  }
  bool valid() const { return socket_.valid(); }
  uint16_t port() const { return port_; }
  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  uint16_t port_ = 0;
};

/// Accepts what has come; waits for it.
UniqueFd Accept(const Listener& listener) { return UniqueFd(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)); }

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Ends {
  explicit Ends(int fd) {
    socklen_t bytes = sizeof(client);
    ::getpeername(fd, reinterpret_cast<sockaddr*>(&client), &bytes);
    bytes = sizeof(server);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&server), &bytes);
  }
  sockaddr_storage client = {};
  sockaddr_storage server = {};
};

TEST(OwnerOfPeerTest, IsTheUserWhoConnected) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const Listener listener(address);
    if (!listener.valid() && std::string(address) == "::1") continue;  // No IPv6 here.
    const Child child(address, listener.port(), Child::Then::kWait);
    const UniqueFd accepted = Accept(listener);
    ASSERT_TRUE(accepted.valid());
    EXPECT_EQ(child.uid(), OwnerOfPeer(accepted.get())) << address;
  }
}

TEST(OwnerOfPeerTest, BothTablesSayTheSame) {
  const Listener listener("127.0.0.1");
  ASSERT_TRUE(listener.valid());
  const Child child("127.0.0.1", listener.port(), Child::Then::kWait);
  const UniqueFd accepted = Accept(listener);
  const Ends ends(accepted.get());
  if (const auto asked = OwnerBySockDiag(ends.client, ends.server)) {
    EXPECT_EQ(child.uid(), *asked);
  }
  EXPECT_EQ(child.uid(), OwnerByProcTable(ReadFile("/proc/self/net/tcp"), ends.client, ends.server));
}

TEST(OwnerOfPeerTest, AnIpv4ConnectionOfAnIpv6SocketIsFound) {
  const Listener listener("127.0.0.1");
  ASSERT_TRUE(listener.valid());
  const Child child("::ffff:127.0.0.1", listener.port(), Child::Then::kWait);
  const UniqueFd accepted = Accept(listener);
  const Ends ends(accepted.get());
  EXPECT_EQ(child.uid(), OwnerOfPeer(accepted.get()));
  EXPECT_EQ(child.uid(), OwnerByProcTable(ReadFile("/proc/self/net/tcp6"), ends.client, ends.server));
}

// The kernel says "root" of a socket that no process holds any more: whoever connects and leaves would be root.
TEST(OwnerOfPeerTest, WhoHasLeftIsNobodyAndNotRoot) {
  const Listener listener("127.0.0.1");
  ASSERT_TRUE(listener.valid());
  Child child("127.0.0.1", listener.port(), Child::Then::kCloseAtOnce);
  child.Wait();
  const UniqueFd accepted = Accept(listener);
  ASSERT_TRUE(accepted.valid());
  const Ends ends(accepted.get());
  EXPECT_EQ(std::nullopt, OwnerOfPeer(accepted.get()));
  EXPECT_EQ(std::nullopt, OwnerByProcTable(ReadFile("/proc/self/net/tcp"), ends.client, ends.server));
}

TEST(OwnerOfPeerTest, AUnixSocketHasNone) {
  int pair[2] = {};
  ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  const UniqueFd one(pair[0]);
  const UniqueFd other(pair[1]);
  EXPECT_EQ(std::nullopt, OwnerOfPeer(one.get()));
}

TEST(OwnerByProcTableTest, LinesThatAreNoneAreSkippedAndOtherStatesAreNotBelieved) {
  Ends ends(-1);
  auto& client = reinterpret_cast<sockaddr_in&>(ends.client);
  auto& server = reinterpret_cast<sockaddr_in&>(ends.server);
  client.sin_family = server.sin_family = AF_INET;
  client.sin_addr.s_addr = server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  client.sin_port = htons(0x1000);
  server.sin_port = htons(0x2000);
  const std::string host = "0100007F";
  const auto line = [&](const char* state, const char* uid, const char* inode) {
    return "  1: " + host + ":1000 " + host + ":2000 " + state + " 00000000:00000000 00:00000000 00000000  " + uid +
           "        0 " + inode + " 1 0 20 4 30 10 -1\n";
  };
  const auto owner = [&](const std::string& table) { return OwnerByProcTable(table, ends.client, ends.server); };
  EXPECT_EQ(1000U, owner("  sl  local_address rem_address\n\n: : :\n1: zz:1 zz:2\n" + line("01", "1000", "77")));
  EXPECT_EQ(std::nullopt, owner(line("01", "0", "0")));
  EXPECT_EQ(std::nullopt, owner(line("06", "0", "77")));
  EXPECT_EQ(std::nullopt, owner(line("01", "-1", "77")));
  EXPECT_EQ(std::nullopt, owner(line("01", "1000", "77").substr(0, 60)));
  EXPECT_EQ(std::nullopt, owner(""));
}

}  // namespace
}  // namespace lockstep
