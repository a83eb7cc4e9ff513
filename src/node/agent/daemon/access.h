#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http/http_message.h"
#include "base/mutex.h"
#include "node/agent/capture/capture_manager.h"
#include "node/agent/daemon/config.h"
#include "node/agent/daemon/users.h"

namespace lockstep::agent {

/// The caller of a request, and what it may do.
struct Identity {
  Role role = Role::kNone;
  Caller caller;
};

/// Counts failed attempts by their source. Thread-safe. At most kSources are remembered; with more, the one
/// that failed longest ago is forgotten.
class FailureLimiter {
 public:
  static constexpr int kAttempts = 10;  ///< Failed ones within a window.
  static constexpr int64_t kWindowNs = 60'000'000'000;
  static constexpr size_t kSources = 4096;

  /// False: enough failed from there in this window.
  bool Allows(const std::string& source, int64_t now_ns);
  void Fail(const std::string& source, int64_t now_ns);

 private:
  struct Source {
    int failures = 0;
    int64_t since_ns = 0;
  };
  Mutex mutex_;
  std::map<std::string, Source> sources_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Identifies callers by one configuration. Thread-safe.
class Access {
 public:
  enum class Outcome : uint8_t {
    kKnown,
    kUnknown,  ///< No credentials, or wrong ones.
    kLimited,  ///< The same, after too many from there. Valid credentials are never delayed by others' wrong ones.
  };
  struct Decision {
    Outcome outcome = Outcome::kUnknown;
    Identity identity = {};
    std::string reason = {};  ///< Of kUnknown, for the log.
  };

  /// `users` and `limiter` are borrowed; the limiter outlives changes of the configuration.
  Access(const DaemonConfig& config, Users* users, FailureLimiter* limiter);

  /// A bearer token counts first, then a client certificate, then the kernel's credentials of a local peer.
  Decision Identify(const http::Peer& peer, std::string_view authorization, int64_t now_ns) const;
  /// A user of this host, over `how`; unset: one that is not known, and may look only.
  Identity IdentifyUser(std::optional<uint32_t> uid, std::string_view how) const;

 private:
  Decision IdentifyToken(std::string_view authorization) const;

  const std::vector<Credential> tokens_;
  const std::vector<Credential> certificates_;
  const std::string capture_group_;
  const bool insecure_no_auth_;
  Users* const users_;
  FailureLimiter* const limiter_;
};

/// What failed attempts are counted by: a peer's address without its port, or its uid.
std::string SourceOf(const http::Peer& peer);

}  // namespace lockstep::agent
