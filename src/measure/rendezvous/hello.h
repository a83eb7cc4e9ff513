#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace lockstep::rendezvous {

/// The first bytes of a rank to rank 0. All numbers are little-endian.
struct Hello {
  uint64_t job = 0;  ///< What the job's ranks have in common (JobPlace::job).
  uint32_t world_size = 0;
  uint32_t rank = 0;
};
inline constexpr size_t kHelloBytes = 32;
std::array<std::byte, kHelloBytes> ToBytes(const Hello& hello);
/// Errors: kCorruptData when they are not of this program, kUnsupported for another version of it.
Result<Hello> ParseHello(std::span<const std::byte> bytes);

/// Rank 0's answer.
enum class Answer : uint32_t {
  kWelcome,
  kOtherJob,
  kOtherWorldSize,
  kNoSuchRank,  ///< 0, or outside of the world.
  kRankIsThere,
};
inline constexpr size_t kAnswerBytes = 16;
std::array<std::byte, kAnswerBytes> ToBytes(Answer answer);
Result<Answer> ParseAnswer(std::span<const std::byte> bytes);

/// Before each message: its length.
inline constexpr size_t kHeaderBytes = 8;
inline constexpr uint64_t kMostMessageBytes = uint64_t{64} << 20;
std::array<std::byte, kHeaderBytes> LengthBytes(uint64_t length);
/// Errors: kLimitExceeded above kMostMessageBytes.
Result<uint64_t> ParseLength(std::span<const std::byte> bytes);

}  // namespace lockstep::rendezvous
