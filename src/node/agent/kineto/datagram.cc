#include "node/agent/kineto/datagram.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/utf8.h"

namespace lockstep::agent {
namespace {

static_assert(std::endian::native == std::endian::little, "the protocol is in native order; only tested little endian");

constexpr size_t kTagOffset = 8;
constexpr size_t kTagBytes = kHeaderBytes - kTagOffset;
constexpr size_t kPollFixedBytes = 16;
constexpr size_t kContextBytes = 16;

/// Reads an integer at an offset that is known to be inside.
template <typename T>
T ReadAt(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <typename T>
void Append(std::vector<std::byte>* bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes->insert(bytes->end(), raw.begin(), raw.end());
}

Message ReadPoll(std::span<const std::byte> payload, bool is_tracer) {
  Message message;
  if (payload.size() < kPollFixedBytes) return message;
  const auto count = ReadAt<int32_t>(payload, 4);
  if (count < 1 || count > static_cast<int32_t>(kMaxPids)) return message;
  const size_t pid_bytes = sizeof(int32_t) * static_cast<size_t>(count);
  if (payload.size() < kPollFixedBytes + pid_bytes) return message;
  const auto rest = payload.subspan(kPollFixedBytes + pid_bytes);
  if (rest.size() > (is_tracer ? kMaxNoteBytes : 0)) return message;
  message.kind = Message::Kind::kPoll;
  message.poll.mask = ReadAt<int32_t>(payload, 0);
  message.poll.job_id = ReadAt<int64_t>(payload, 8);
  message.poll.pids.resize(static_cast<size_t>(count));
  std::memcpy(message.poll.pids.data(), payload.data() + kPollFixedBytes, pid_bytes);
  message.poll.is_tracer = is_tracer;
  message.poll.note = Printable({reinterpret_cast<const char*>(rest.data()), rest.size()});
  return message;
}

Message ReadContext(std::span<const std::byte> payload) {
  Message message;
  if (payload.size() != kContextBytes) return message;
  message.kind = Message::Kind::kContext;
  message.context.device_ordinal = ReadAt<int32_t>(payload, 0);
  message.context.pid = ReadAt<int32_t>(payload, 4);
  message.context.job_id = ReadAt<int64_t>(payload, 8);
  return message;
}

}  // namespace

Message ReadDatagram(std::span<const std::byte> bytes) {
  Message message;
  if (bytes.size() < kHeaderBytes || bytes.size() > kMaxDatagramBytes) return message;
  if (ReadAt<uint64_t>(bytes, 0) != bytes.size() - kHeaderBytes) return message;
  const auto* tag_begin = reinterpret_cast<const char*>(bytes.data()) + kTagOffset;
  const auto* tag_end = std::find(tag_begin, tag_begin + kTagBytes, '\0');
  if (tag_end == tag_begin + kTagBytes) return message;
  const std::string_view tag(tag_begin, static_cast<size_t>(tag_end - tag_begin));
  const std::span<const std::byte> payload = bytes.subspan(kHeaderBytes);
  if (tag == kPollTag || tag == kTracerTag) return ReadPoll(payload, tag == kTracerTag);
  if (tag == kContextTag) return ReadContext(payload);
  message.kind = Message::Kind::kUnknownTag;
  return message;
}

std::array<std::byte, kHeaderBytes> WriteHeader(std::string_view tag, uint64_t payload_bytes) {
  std::array<std::byte, kHeaderBytes> header = {};
  std::memcpy(header.data(), &payload_bytes, sizeof(payload_bytes));
  std::memcpy(header.data() + kTagOffset, tag.data(), std::min(tag.size(), kTagBytes - 1));
  return header;
}

std::vector<std::byte> WriteMessage(std::string_view tag, std::span<const std::byte> payload) {
  const auto header = WriteHeader(tag, payload.size());
  std::vector<std::byte> message(header.size() + payload.size());
  std::copy(header.begin(), header.end(), message.begin());
  std::copy(payload.begin(), payload.end(), message.begin() + kHeaderBytes);
  return message;
}

std::vector<std::byte> WritePoll(const PollRequest& request) {
  std::vector<std::byte> payload;
  Append(&payload, request.mask);
  Append(&payload, static_cast<int32_t>(request.pids.size()));
  Append(&payload, request.job_id);
  for (const int32_t pid : request.pids) Append(&payload, pid);
  for (const char c : request.note) payload.push_back(static_cast<std::byte>(c));
  return WriteMessage(request.is_tracer ? kTracerTag : kPollTag, payload);
}

std::vector<std::byte> WriteContext(const ContextRequest& request) {
  std::vector<std::byte> payload;
  Append(&payload, request.device_ordinal);
  Append(&payload, request.pid);
  Append(&payload, request.job_id);
  return WriteMessage(kContextTag, payload);
}

}  // namespace lockstep::agent
