#include "measure/rendezvous/hello.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::rendezvous {
namespace {

// "lkstpjob": a client of another protocol does not begin with this.
constexpr uint64_t kMagic = 0x626f6a7074736b6c;
constexpr uint32_t kVersion = 1;

template <typename T>
void Put(T value, std::byte* to) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

template <typename T>
T Get(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  return value;
}

Error Foreign() { return {.code = ErrorCode::kCorruptData, .message = "not a rank of lockstep bench"}; }

}  // namespace

std::array<std::byte, kHelloBytes> ToBytes(const Hello& hello) {
  std::array<std::byte, kHelloBytes> bytes = {};
  Put(kMagic, bytes.data());
  Put(kVersion, bytes.data() + 8);
  Put(hello.world_size, bytes.data() + 12);
  Put(hello.rank, bytes.data() + 16);
  Put(hello.job, bytes.data() + 24);
  return bytes;
}

Result<Hello> ParseHello(std::span<const std::byte> bytes) {
  if (bytes.size() != kHelloBytes || Get<uint64_t>(bytes.data()) != kMagic) return Foreign();
  if (const auto version = Get<uint32_t>(bytes.data() + 8); version != kVersion) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = fmt::format("a rank of another lockstep (protocol {}, here {})", version, kVersion)};
  }
  return Hello{.job = Get<uint64_t>(bytes.data() + 24),
               .world_size = Get<uint32_t>(bytes.data() + 12),
               .rank = Get<uint32_t>(bytes.data() + 16)};
}

std::array<std::byte, kAnswerBytes> ToBytes(Answer answer) {
  std::array<std::byte, kAnswerBytes> bytes = {};
  Put(kMagic, bytes.data());
  Put(static_cast<uint32_t>(answer), bytes.data() + 8);
  return bytes;
}

Result<Answer> ParseAnswer(std::span<const std::byte> bytes) {
  if (bytes.size() != kAnswerBytes || Get<uint64_t>(bytes.data()) != kMagic) return Foreign();
  const auto answer = Get<uint32_t>(bytes.data() + 8);
  if (answer > static_cast<uint32_t>(Answer::kRankIsThere)) return Foreign();
  return static_cast<Answer>(answer);
}

std::array<std::byte, kHeaderBytes> LengthBytes(uint64_t length) {
  std::array<std::byte, kHeaderBytes> bytes = {};
  Put(length, bytes.data());
  return bytes;
}

Result<uint64_t> ParseLength(std::span<const std::byte> bytes) {
  const uint64_t length = bytes.size() == kHeaderBytes ? Get<uint64_t>(bytes.data()) : UINT64_MAX;
  if (length > kMostMessageBytes) {
    return Error{.code = ErrorCode::kLimitExceeded, .message = "sent a message that is too large"};
  }
  return length;
}

}  // namespace lockstep::rendezvous
