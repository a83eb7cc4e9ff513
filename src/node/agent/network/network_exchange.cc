#include "node/agent/network/network_exchange.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace lockstep::agent {
namespace {

constexpr std::string_view kGreeting = "lockstep-network-test/1\n";
constexpr char kWelcome = '\n';
constexpr int kRounds = 21;  // The first one is left out: caches are cold.
constexpr size_t kPingBytes = 64;
constexpr uint32_t kChunkBytes = 64 * 1024;
constexpr uint64_t kMostBytes = uint64_t{256} << 20;

/// What was received, as the receiver says: by its own clock, from the first byte to the last.
struct Receipt {
  uint64_t bytes = 0;
  uint64_t elapsed_ns = 0;
};

Status SendNumber(TimedSocket* socket, uint64_t number) {
  const uint64_t wire = htobe64(number);
  return socket->Send(&wire, sizeof(wire));
}

Result<uint64_t> ReceiveNumber(TimedSocket* socket) {
  uint64_t wire = 0;
  RETURN_IF_ERROR(socket->Receive(&wire, sizeof(wire)));
  return be64toh(wire);
}

uint64_t NsSince(NetworkClock::time_point start) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(NetworkClock::now() - start).count());
}

/// In chunks with their length before them, and an empty one at the end: the sender may stop early.
Status SendBulk(TimedSocket* socket, uint64_t bytes, NetworkClock::time_point until) {
  std::vector<char> chunk(sizeof(uint32_t) + kChunkBytes);
  while (bytes > 0 && NetworkClock::now() < until) {
    const auto size = static_cast<uint32_t>(std::min<uint64_t>(bytes, kChunkBytes));
    const uint32_t wire = htobe32(size);
    std::memcpy(chunk.data(), &wire, sizeof(wire));
    RETURN_IF_ERROR(socket->Send(chunk.data(), sizeof(wire) + size));
    bytes -= size;
  }
  const uint32_t end = 0;
  return socket->Send(&end, sizeof(end));
}

Result<Receipt> ReceiveBulk(TimedSocket* socket) {
  std::vector<char> chunk(kChunkBytes);
  Receipt receipt;
  NetworkClock::time_point start;
  for (;;) {
    uint32_t wire = 0;
    RETURN_IF_ERROR(socket->Receive(&wire, sizeof(wire)));
    if (receipt.bytes == 0) start = NetworkClock::now();
    const uint32_t size = be32toh(wire);
    if (size == 0) break;
    if (size > kChunkBytes || receipt.bytes + size > kMostBytes) {
      return Error{ErrorCode::kCorruptData, "the other end sends more than was agreed"};
    }
    RETURN_IF_ERROR(socket->Receive(chunk.data(), size));
    receipt.bytes += size;
  }
  receipt.elapsed_ns = std::max<uint64_t>(NsSince(start), 1);
  return receipt;
}

/// Of at most kMostBytes, so that it fits however short the time is that the other end says it took.
int64_t RateOf(const Receipt& receipt) {
  return static_cast<int64_t>(static_cast<double>(std::min(receipt.bytes, kMostBytes)) * 1e9 /
                              static_cast<double>(std::max<uint64_t>(receipt.elapsed_ns, 1)));
}

bool IsSame(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

Status MeasureLatency(TimedSocket* socket, control::NetworkPath* path) {
  std::array<char, kPingBytes> ping = {};
  std::vector<int64_t> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = NetworkClock::now();
    RETURN_IF_ERROR(socket->Send(ping.data(), ping.size()));
    RETURN_IF_ERROR(socket->Receive(ping.data(), ping.size()));
    if (round > 0) times.push_back(static_cast<int64_t>(NsSince(start)));
  }
  std::ranges::sort(times);
  path->latency_ns = times[times.size() / 2];
  path->longest_latency_ns = times.back();
  return {};
}

}  // namespace

Status AdmitPeer(TimedSocket* socket, const std::string& secret) {
  RETURN_IF_ERROR(socket->Send(kGreeting.data(), kGreeting.size()));
  std::string said(secret.size(), '\0');
  RETURN_IF_ERROR(socket->Receive(said.data(), said.size()));
  if (!IsSame(said, secret)) return Error{ErrorCode::kPermissionDenied, "the other end sent a wrong secret"};
  return socket->Send(&kWelcome, 1);
}

Status ServeExchange(TimedSocket* socket) {
  ASSIGN_OR_RETURN(const uint64_t bytes, ReceiveNumber(socket));
  if (bytes > kMostBytes) return Error{ErrorCode::kCorruptData, "the other end asks for more than is allowed"};
  std::array<char, kPingBytes> ping = {};
  for (int round = 0; round < kRounds; ++round) {
    RETURN_IF_ERROR(socket->Receive(ping.data(), ping.size()));
    RETURN_IF_ERROR(socket->Send(ping.data(), ping.size()));
  }
  ASSIGN_OR_RETURN(const Receipt receipt, ReceiveBulk(socket));
  RETURN_IF_ERROR(SendNumber(socket, receipt.bytes));
  RETURN_IF_ERROR(SendNumber(socket, receipt.elapsed_ns));
  RETURN_IF_ERROR(SendBulk(socket, bytes, NetworkClock::now() + (socket->deadline() - NetworkClock::now()) / 4));
  const auto segments = socket->CountSegments();
  RETURN_IF_ERROR(SendNumber(socket, segments ? segments->sent : 0));
  return SendNumber(socket, segments ? segments->retransmitted : 0);
}

Status MeasureExchange(TimedSocket* socket, const std::string& secret, uint64_t bytes, control::NetworkPath* path) {
  std::string greeting(kGreeting.size(), '\0');
  RETURN_IF_ERROR(socket->Receive(greeting.data(), greeting.size()));
  if (greeting != kGreeting) return Error{ErrorCode::kCorruptData, "a program other than the daemon listens there"};
  RETURN_IF_ERROR(socket->Send(secret.data(), secret.size()));
  char welcome = 0;
  RETURN_IF_ERROR(socket->Receive(&welcome, 1));
  RETURN_IF_ERROR(SendNumber(socket, bytes));
  RETURN_IF_ERROR(MeasureLatency(socket, path));
  RETURN_IF_ERROR(SendBulk(socket, bytes, NetworkClock::now() + (socket->deadline() - NetworkClock::now()) / 4));
  Receipt sent;
  ASSIGN_OR_RETURN(sent.bytes, ReceiveNumber(socket));
  ASSIGN_OR_RETURN(sent.elapsed_ns, ReceiveNumber(socket));
  if (sent.bytes > bytes) return Error{ErrorCode::kCorruptData, "the other end reports more bytes than were sent"};
  ASSIGN_OR_RETURN(const Receipt received, ReceiveBulk(socket));
  if (sent.bytes > 0) path->sent_bytes_per_s = RateOf(sent);
  if (received.bytes > 0) path->received_bytes_per_s = RateOf(received);
  ASSIGN_OR_RETURN(const uint64_t their_segments, ReceiveNumber(socket));
  ASSIGN_OR_RETURN(const uint64_t their_retransmitted, ReceiveNumber(socket));
  if (const auto ours = socket->CountSegments()) {
    constexpr uint64_t kPlausible = uint64_t{1} << 40;
    path->segment_count = static_cast<int64_t>(ours->sent + std::min(their_segments, kPlausible));
    path->retransmitted_count = static_cast<int64_t>(ours->retransmitted + std::min(their_retransmitted, kPlausible));
  }
  return {};
}

}  // namespace lockstep::agent
