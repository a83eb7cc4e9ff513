#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::inspect {

struct RasOptions {
  std::string address =
      "127.0.0.1:28028";               ///< NCCL_RAS_ADDR's form; "localhost" and numbers only, no names to resolve.
  bool allow_remote = false;           ///< Also addresses that are not loopback.
  int64_t timeout_ns = 5'000'000'000;  ///< For one whole question.
  uint64_t max_bytes = uint64_t{64} << 20;  ///< Of one answer.
};

struct RasAnswer {
  std::string text;  ///< What ingest::ReadRasReport reads.
  bool is_json = false;
  int32_t protocol = 0;       ///< The server's.
  int64_t asked_unix_ns = 0;  ///< By this node's clock.
};

/// Asks NCCL's RAS (2.24 or newer; any process of the job answers for all) for its verbose status: JSON where it knows
/// the format (2.28.7), else text. One connection, or a second one where the first was closed over the format.
/// Its "OK" proves nothing, since it counts launches: ask twice and compare.
/// Errors: kInvalidArgument (address), kNotFound (no process listens there), kCorruptData (who answers is not RAS),
/// kLimitExceeded (too long an answer), kIo (no complete answer in time).
Result<RasAnswer> AskRas(const RasOptions& options = {});

/// Asks twice, `interval_ns` apart: counts that differ between ranks and stand still are a hang. An error of the first
/// question is the error; of the second, the first answer is returned alone.
Result<std::vector<RasAnswer>> AskRasTwice(const RasOptions& options, int64_t interval_ns);

}  // namespace lockstep::inspect
