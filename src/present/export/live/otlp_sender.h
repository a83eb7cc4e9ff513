#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "present/export/live/otlp_metrics.h"

namespace lockstep::export_live {

/// Delivers payloads to an OpenTelemetry collector by HTTP, on a thread of its own. What the collector cannot take now
/// (429, 502, 503, 504, no connection) is sent again, after what its Retry-After says or twice as long each time; what
/// it refuses is dropped. Payloads wait in a queue that drops the oldest. All that is dropped is counted, and told.
class OtlpSender {
 public:
  struct Options {
    std::string url;                   ///< Whole: http://localhost:4318/v1/metrics.
    std::vector<std::string> headers;  ///< "Name: value"
    std::string authority_file;        ///< CAs for https; empty: the system's.
    std::string certificate_file;      ///< To show to the collector.
    std::string key_file;
    size_t most_waiting = 1000;
    uint64_t most_waiting_bytes = uint64_t{64} << 20;
    std::function<void(const std::string& line)> tell;  ///< By the thread.
  };
  struct Counts {
    uint64_t delivered = 0;  ///< Points, as those below.
    uint64_t dropped = 0;    ///< No room, refused, or time was over.
    uint64_t rejected = 0;   ///< The collector took the payload and not these.
  };

  /// Errors: kIo.
  static Result<std::unique_ptr<OtlpSender>> Start(Options options);
  virtual ~OtlpSender() = default;

  /// Does not wait. Thread-safe.
  virtual void Push(OtlpPayload payload) = 0;
  /// Delivers what waits, within this time; what is left is dropped. Once.
  virtual Counts Finish(int64_t deadline_ns) = 0;
};

}  // namespace lockstep::export_live
