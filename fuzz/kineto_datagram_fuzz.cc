// What any local process may send to the daemon's Kineto sockets: a series of datagrams through the whole registry, in
// memory. Each begins with a byte for its sender, one for its age, one for what else happens, and two for its length.
#include <cstring>
#include <string>
#include <string_view>

#include "base/nanoseconds.h"
#include "fuzz.h"
#include "node/agent/kineto/process_table.h"

namespace {

using namespace lockstep::agent;

constexpr int64_t kStart = 1'700'000'000'000 * lockstep::kMillisecondNs;
constexpr size_t kMaxDatagrams = 256;

/// Replies must be whole messages, go to the sender of the poll, and hold a text only where one was placed.
class CheckingSink : public ReplySink {
 public:
  Outcome Send(const Sender& to, std::span<const std::byte> header, std::string_view payload) override {
    FUZZ_CHECK(header.size() == kHeaderBytes);
    uint64_t size = 0;
    std::memcpy(&size, header.data(), sizeof(size));
    FUZZ_CHECK(size == payload.size());
    FUZZ_CHECK(to.address == expected_address);
    ++count;
    return outcome;
  }

  Outcome outcome = Outcome::kSent;
  std::string expected_address;
  int count = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int64_t now_ns = kStart;
  ProcessTable table({.host = "n", .client_limit = 24, .uid_client_limit = 8, .wall_clock_ns = [&] { return now_ns; }});
  CheckingSink sink;
  uint64_t placed = 0;
  for (size_t round = 0; round < kMaxDatagrams && size >= 5; ++round) {
    const uint8_t who = data[0];
    const uint8_t age = data[1];
    const uint8_t action = data[2];
    const size_t length = std::min<size_t>(static_cast<size_t>(data[3]) | static_cast<size_t>(data[4]) << 8, size - 5);
    now_ns += (action & 0x0f) * 100 * lockstep::kMillisecondNs;
    Arrival arrival;
    arrival.bytes = std::as_bytes(std::span(data + 5, length));
    arrival.sender = {.socket_idx = 0,
                      .address = std::string("\0c", 2) + static_cast<char>('a' + who % 40),
                      .pid = who % 5 == 0 ? 0 : who % 11,
                      .uid = static_cast<uint32_t>(who % 3)};
    arrival.sent_unix_ns = now_ns - (age - 2) * lockstep::kMillisecondNs;
    arrival.now_unix_ns = now_ns;
    arrival.now_monotonic_ns = now_ns - kStart;
    sink.expected_address = arrival.sender.address;
    sink.outcome = static_cast<ReplySink::Outcome>((action >> 4) % 3);
    sink.count = 0;
    const ProcessTable::Next next = table.Handle(arrival, &sink);
    FUZZ_CHECK(sink.count <= 1);
    if (age > 40) FUZZ_CHECK(sink.count == 0);
    if (next.new_client != 0)
      table.SetDetails(next.new_client, {.start_ticks = 1, .ancestors = {who % 7}}, (action & 0x80) != 0);
    if ((action & 0x40) != 0) table.Sweep(now_ns - kStart);
    FUZZ_CHECK(table.client_count() <= 24);
    for (const auto& process : table.Processes()) {
      FUZZ_CHECK(!process.id.empty());
      FUZZ_CHECK(process.client_pids.size() <= kMaxPids);
      if (table.Place(process.id, {.token = "t", .text = "A=1\n"})) ++placed;
    }
    data += 5 + length;
    size -= 5 + length;
  }
  uint64_t delivered = 0;
  for (const RegistryEvent& event : table.TakeEvents()) delivered += event.kind == RegistryEvent::Kind::kDelivered;
  FUZZ_CHECK(delivered <= placed);
  return 0;
}
