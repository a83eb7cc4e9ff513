#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/agent/kineto/process_table.h"

namespace lockstep::agent {

/// One address that polls.
struct ProcessTable::Client {
  uint64_t serial = 0;
  Sender sender;
  std::string id = {};  ///< Empty until it is published.
  std::vector<int32_t> client_pids = {};
  int64_t job_id = 0;
  std::optional<int32_t> context_device = {};  ///< Of its `ctxt`.
  std::shared_ptr<const proc::ProcessDetails> details = {};

  int64_t first_poll_unix_ns = 0;
  int64_t last_poll_unix_ns = 0;       ///< When it was sent.
  int64_t last_poll_monotonic_ns = 0;  ///< When it was handled.
  uint64_t poll_count = 0;
  std::array<int64_t, 5> intervals_ns = {};  ///< The last ones, round about.
  uint64_t next_refresh_poll = 2;            ///< Poll at which its details are looked up again.

  bool is_tracer = false;  ///< lockstep's own in the process, beside Kineto's client.
  bool has_steps = false;  ///< Of a tracer: would serve a request.
  std::string note = {};   ///< Of a tracer: PollRequest::note.
  std::string stop = {};   ///< Of a tracer: what it is to stop, told at its next poll.

  bool busy = false;
  bool silent = false;
  int32_t owed_silence = 0;  ///< Polls that stay unanswered because it holds as many older replies.
  double rate_tokens = 0;
  int64_t rate_monotonic_ns = 0;

  std::optional<Offer> offer = {};
  std::string delivered_token = {};  ///< Handed over, and neither begun nor given up.
  int64_t pending_until_unix_ns = 0;

  bool published() const { return !id.empty(); }
  int64_t PollPeriodNs() const;
};

}  // namespace lockstep::agent
