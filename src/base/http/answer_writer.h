#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/http/connection.h"
#include "base/http/event_stream.h"
#include "base/http/file_part.h"
#include "base/http/server_limits.h"

namespace lockstep::http {

/// Called once, on the connection's strand, with no error when all has left. Keeps alive what the connection lives in.
using WriteDone = std::function<void(boost::system::error_code error)>;

/// Sends a header and what follows it: `body` (may be null), or `part` of a file (its `file` may be null). The limit
/// ServerLimits::write_seconds is on progress, not on the whole.
void WriteAnswer(Connection& connection, const ServerLimits& limits, std::string header,
                 std::shared_ptr<const std::string> body, FilePart part, WriteDone done);

enum class EventFraming : uint8_t { kChunked, kPlain };

/// Sends what comes out of `events` until it is closed, and a comment line while nothing comes. Ends with an error when
/// the client goes away, sends more than it may, does not read for write_seconds, or lets too much queue up; the stream
/// is abandoned then.
void WriteEvents(Connection& connection, const ServerLimits& limits, std::shared_ptr<EventStream> events,
                 EventFraming framing, WriteDone done);

}  // namespace lockstep::http
