#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

/// Kineto's messages, one a datagram: a header of 40 bytes (payload length in 8, a type tag in 32) and the payload, all
/// in the byte order of the machine. docs/formats/kineto-ipc.md.
inline constexpr size_t kHeaderBytes = 40;
/// Process ids in one request; clients send 1 .. 11.
inline constexpr size_t kMaxPids = 1024;
/// The longest datagram that can be valid. A receive buffer of one byte more tells longer ones.
inline constexpr size_t kMaxDatagramBytes = kHeaderBytes + 16 + 4 * kMaxPids;

/// A client's poll (`req`): "is there a configuration for me?" Or that of lockstep's own tracer in a process (`lsreq`),
/// which says more: whether its steps go on, and what became of the last request.
struct PollRequest {
  static constexpr int32_t kEvents = 1;
  static constexpr int32_t kActivities = 2;
  static constexpr int32_t kSteps = 4;  ///< Of a tracer: steps are ending, so that a request would be served.

  int32_t mask = 0;  ///< What the client could start just now; without kActivities its profiler is in use.
  int64_t job_id = 0;
  std::vector<int32_t> pids;  ///< As the client sees them: its own, then its ancestors'. Never empty.
  bool is_tracer = false;
  std::string note = {};  ///< Of a tracer: "TRACE_ID waits WHY" or "TRACE_ID refused WHY"; valid UTF-8, printable.

  bool free() const { return (mask & kActivities) != 0; }
};

/// A client's announcement (`ctxt`); only old event profilers send it.
struct ContextRequest {
  int32_t device_ordinal = 0;
  int32_t pid = 0;
  int64_t job_id = 0;
};

/// One datagram, read.
struct Message {
  enum class Kind : uint8_t {
    kMalformed,   ///< Too short or too long, a length that lies, a tag without an end, a count that does not fit.
    kUnknownTag,  ///< Well formed, and not for us.
    kPoll,
    kContext,
  };
  Kind kind = Kind::kMalformed;
  PollRequest poll = {};        ///< kPoll.
  ContextRequest context = {};  ///< kContext.
};

/// Reads one datagram. Allocates only for a valid poll, and then for its process ids alone.
Message ReadDatagram(std::span<const std::byte> bytes);

inline constexpr std::string_view kPollTag = "req";
inline constexpr std::string_view kTracerTag = "lsreq";
inline constexpr std::string_view kStopTag = "lsstop";  ///< To a tracer: the request with this REQUEST_TRACE_ID.
inline constexpr size_t kMaxNoteBytes = 2048;
inline constexpr std::string_view kContextTag = "ctxt";

/// The header of a message. `tag` has at most 31 characters.
std::array<std::byte, kHeaderBytes> WriteHeader(std::string_view tag, uint64_t payload_bytes);

/// Whole messages, as a client sends them (tests, the flood program) and as the daemon replies.
std::vector<std::byte> WriteMessage(std::string_view tag, std::span<const std::byte> payload);
std::vector<std::byte> WritePoll(const PollRequest& request);
std::vector<std::byte> WriteContext(const ContextRequest& request);

}  // namespace lockstep::agent
