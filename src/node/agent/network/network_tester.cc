#include "node/agent/network/network_tester.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "node/agent/capture/random_name.h"
#include "node/agent/network/network_exchange.h"

namespace lockstep::agent {
namespace {

constexpr int kStrangers = 8;            // Connections without the secret, after which a test gives up listening.
constexpr uint32_t kLinkLocal = 0xa9fe;  // 169.254/16: another node has the same ones.
constexpr auto kSecretNs = std::chrono::seconds(1);  // For one to say it, so that a silent one holds nobody up.
constexpr auto kConnectNs = std::chrono::seconds(2);

NetworkClock::time_point DeadlineOf(const control::NetworkTestSpec& spec) {
  return NetworkClock::now() + std::chrono::nanoseconds(spec.limit_ns);
}

/// A socket that listens on every address of the node, IPv6 where there is any, and its port.
Result<std::pair<UniqueFd, uint16_t>> Listen() {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  const int off = 0;
  bool is_bound = fd.valid() && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
                  ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof(v6)) == 0;
  if (!is_bound) {
    fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    is_bound = fd.valid() && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof(v4)) == 0;
  }
  sockaddr_in6 bound = {};
  socklen_t size = sizeof(bound);
  if (!is_bound || ::listen(fd.get(), 4) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no socket to listen on: {}", std::strerror(errno))};
  }
  const uint16_t port = ntohs(bound.sin6_port);  // At the same place for both families.
  return std::pair(std::move(fd), port);
}

}  // namespace

std::vector<control::NetworkAddress> OwnAddresses(const std::vector<std::string>& prefixes) {
  std::vector<control::NetworkAddress> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const std::string_view name = each->ifa_name;
    if (!prefixes.empty() && std::ranges::none_of(prefixes, [&](const auto& p) { return name.starts_with(p); })) {
      continue;
    }
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (each->ifa_addr->sa_family == AF_INET) {
      const in_addr& address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
      if (ntohl(address.s_addr) >> 16 != kLinkLocal) ::inet_ntop(AF_INET, &address, text.data(), text.size());
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) ::inet_ntop(AF_INET6, &address, text.data(), text.size());
    }
    if (text[0] != '\0') addresses.push_back({std::string(name), text.data()});
  }
  // IPv4 first: it is what is set up everywhere.
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const auto& a) { return a.address.find(':') == std::string::npos; });
  return addresses;
}

NetworkTester::NetworkTester(std::string host)
    : host_(std::move(host)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

NetworkTester::~NetworkTester() {
  const uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof(one)) < 0) {
    // Their time limits end them in any case.
  }
}

Result<control::NetworkTest> NetworkTester::Start(const control::NetworkTestSpec& spec, const std::string& by) {
  const MutexLock lock(mutex_);
  const auto is_done = [](const auto& entry) { return entry->test.is_done; };
  const auto done_count = static_cast<size_t>(std::ranges::count_if(entries_, is_done));
  const auto own_count = static_cast<size_t>(
      std::ranges::count_if(entries_, [&by](const auto& entry) { return !entry->test.is_done && entry->by == by; }));
  if (entries_.size() - done_count >= kAtATime || own_count >= kOfOne) {
    return Error{ErrorCode::kLimitExceeded, "too many network tests of this node are running; try again later"};
  }
  if (done_count >= kKept) entries_.erase(std::ranges::find_if(entries_, is_done));
  auto entry = std::make_unique<Entry>();
  entry->test.id = RandomName(16);
  entry->test.host = host_;
  entry->test.listens = spec.listens;
  entry->by = by;
  control::NetworkTest answer = entry->test;
  Entry* raw = entry.get();
  if (spec.listens) {
    ASSIGN_OR_RETURN(auto listening, Listen());
    entry->test.addresses = OwnAddresses(spec.interfaces);
    entry->test.port = listening.second;
    answer = entry->test;
    answer.secret = RandomName(32);
    entry->thread = std::jthread(
        [this, raw, spec, secret = answer.secret, fd = std::make_shared<UniqueFd>(std::move(listening.first))] {
          Serve(raw, spec, secret, std::move(*fd));  // Shared, as std::function-like copies must be possible.
        });
  } else {
    entry->thread = std::jthread([this, raw, spec] { Measure(raw, spec); });
  }
  entries_.push_back(std::move(entry));
  return answer;
}

Result<control::NetworkTest> NetworkTester::Get(const std::string& id, const std::string& by) const {
  const MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->test.id == id && entry->by == by) return entry->test;
  }
  return Error{ErrorCode::kNotFound, "no network test with this id; it may have expired"};
}

void NetworkTester::Finish(Entry* entry, std::vector<control::NetworkPath> paths, const std::string& problem) {
  const MutexLock lock(mutex_);
  entry->test.paths = std::move(paths);
  entry->test.problem = problem;
  entry->test.is_done = true;
}

void NetworkTester::Serve(Entry* entry, const control::NetworkTestSpec& spec, const std::string& secret,
                          UniqueFd listener) {
  const auto deadline = DeadlineOf(spec);
  std::string problem = "nobody came";
  for (int i = 0; i < kStrangers; ++i) {
    if (!WaitFor(listener.get(), POLLIN, deadline, stop_.get())) break;
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) continue;
    TimedSocket socket(std::move(fd), std::min(deadline, NetworkClock::now() + kSecretNs), stop_.get());
    if (const Status admitted = AdmitPeer(&socket, secret); !admitted) {
      problem = admitted.error().message;  // Of a stranger, a scanner of ports perhaps; the peer may still come.
      continue;
    }
    socket.set_deadline(deadline);
    const Status served = ServeExchange(&socket);
    problem = served ? "" : served.error().message;
    break;
  }
  Finish(entry, {}, problem);
}

void NetworkTester::Measure(Entry* entry, const control::NetworkTestSpec& spec) {
  const auto deadline = DeadlineOf(spec);
  const std::vector<control::NetworkAddress> own = OwnAddresses({});
  std::vector<control::NetworkPath> paths;
  for (const control::NetworkAddress& address : spec.addresses) {
    control::NetworkPath& path = paths.emplace_back();
    path.to = address;
    // As bridges of containers have on every node: that would be a talk with oneself.
    if (std::ranges::find(own, address.address, &control::NetworkAddress::address) != own.end()) {
      path.problem = "this node has that address too";
      continue;
    }
    auto socket = TimedSocket::Connect(address, spec.port, std::min(deadline, NetworkClock::now() + kConnectNs),
                                       deadline, stop_.get());
    const Status measured = socket ? MeasureExchange(&*socket, spec.secret, spec.bytes, &path) : Status(socket.error());
    if (!measured) path.problem = measured.error().message;
    if (measured || NetworkClock::now() >= deadline) break;
  }
  Finish(entry, std::move(paths), "");
}

}  // namespace lockstep::agent
