#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Protobuf messages for tests, byte by byte.
namespace lockstep::ingest::perfetto::test {

class Message {
 public:
  Message& Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    return Varint(value);
  }
  Message& Fixed(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3 | 1);
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  Message& Text(uint32_t field, std::string_view value) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& Sub(uint32_t field, const Message& value) { return Text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  Message& Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7F) | 0x80));
    bytes_.push_back(static_cast<char>(value));
    return *this;
  }
  std::string bytes_;
};

/// A trace: packets, one behind the other.
class TraceBytes {
 public:
  TraceBytes& Packet(const Message& packet) {
    trace_.Sub(1, packet);
    return *this;
  }
  TraceBytes& Process(uint64_t uuid, int32_t pid, std::string_view name) {
    return Packet(Message().Sub(
        60, Message().Number(1, uuid).Sub(3, Message().Number(1, static_cast<uint64_t>(pid)).Text(6, name))));
  }
  TraceBytes& Thread(uint64_t uuid, uint64_t parent, int32_t pid, int32_t tid, std::string_view name) {
    const Message thread =
        Message().Number(1, static_cast<uint64_t>(pid)).Number(2, static_cast<uint64_t>(tid)).Text(5, name);
    return Packet(Message().Sub(60, Message().Number(1, uuid).Number(5, parent).Sub(4, thread)));
  }
  TraceBytes& Begin(int64_t time_ns, uint64_t track, std::string_view name, const Message& more = {}) {
    Message event = Message().Number(9, 1).Number(11, track).Text(23, name);
    return Packet(Message().Number(8, static_cast<uint64_t>(time_ns)).Text(11, event.bytes() + more.bytes()));
  }
  TraceBytes& End(int64_t time_ns, uint64_t track) {
    return Packet(
        Message().Number(8, static_cast<uint64_t>(time_ns)).Sub(11, Message().Number(9, 2).Number(11, track)));
  }
  const std::string& bytes() const { return trace_.bytes(); }

 private:
  Message trace_;
};

/// A debug annotation of an event.
inline Message Arg(std::string_view name, std::string_view value) {
  return Message().Sub(4, Message().Text(10, name).Text(6, value));
}
inline Message Arg(std::string_view name, int64_t value) {
  return Message().Sub(4, Message().Text(10, name).Number(4, static_cast<uint64_t>(value)));
}

}  // namespace lockstep::ingest::perfetto::test
