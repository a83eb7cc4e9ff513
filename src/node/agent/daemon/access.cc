#include "node/agent/daemon/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cctype>

namespace lockstep::agent {
namespace {

// "Bearer TOKEN"; the scheme in any case. Source: RFC 6750, 2.1.
bool ReadBearer(std::string_view header, std::string_view* token) {
  constexpr std::string_view kScheme = "bearer ";
  if (header.size() <= kScheme.size() || header.size() > kMostTokenBytes) return false;
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(header[i])) != kScheme[i]) return false;
  }
  *token = header.substr(kScheme.size());
  return true;
}

Identity FromCredential(const Credential& credential, std::string_view kind) {
  Identity identity;
  identity.role = credential.role;
  identity.caller.uid = credential.uid;
  identity.caller.may_trace_all = credential.role == Role::kAdmin;
  identity.caller.name = credential.user.empty() ? fmt::format("{} {}", kind, credential.name)
                                                 : fmt::format("{} {} for {}", kind, credential.name, credential.user);
  return identity;
}

}  // namespace

bool FailureLimiter::Allows(const std::string& source, int64_t now_ns) {
  const MutexLock lock(mutex_);
  const auto found = sources_.find(source);
  if (found == sources_.end()) return true;
  if (now_ns - found->second.since_ns >= kWindowNs) {
    sources_.erase(found);
    return true;
  }
  return found->second.failures < kAttempts;
}

void FailureLimiter::Fail(const std::string& source, int64_t now_ns) {
  const MutexLock lock(mutex_);
  if (sources_.size() >= kSources && !sources_.contains(source)) {
    sources_.erase(std::min_element(sources_.begin(), sources_.end(), [](const auto& a, const auto& b) {
      return a.second.since_ns < b.second.since_ns;
    }));
  }
  Source& entry = sources_[source];
  if (entry.failures == 0) entry.since_ns = now_ns;
  ++entry.failures;
}

std::string SourceOf(const http::Peer& peer) {
  if (peer.kind == http::Peer::Kind::kUnixSocket) return peer.uid ? fmt::format("uid {}", *peer.uid) : "unix";
  return peer.address.substr(0, peer.address.rfind(':'));
}

Access::Access(const DaemonConfig& config, Users* users, FailureLimiter* limiter)
    : tokens_(config.tokens),
      certificates_(config.certificates),
      capture_group_(config.capture_group),
      insecure_no_auth_(config.insecure_no_auth),
      users_(users),
      limiter_(limiter) {}

Access::Decision Access::IdentifyToken(std::string_view authorization) const {
  std::string_view token;
  if (!ReadBearer(authorization, &token)) return {Outcome::kUnknown, {}, "an Authorization header of another kind"};
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest);
  // All are compared, each in constant time, so the time does not reveal which one was close.
  const Credential* match = nullptr;
  for (const Credential& credential : tokens_) {
    if (credential.token_digest.size() == sizeof(digest) &&
        ::CRYPTO_memcmp(credential.token_digest.data(), digest, sizeof(digest)) == 0) {
      match = &credential;
    }
  }
  if (match == nullptr) return {Outcome::kUnknown, {}, "an unknown token"};
  return {Outcome::kKnown, FromCredential(*match, "token")};
}

Identity Access::IdentifyUser(std::optional<uint32_t> uid, std::string_view how) const {
  Identity identity;
  if (!uid) {
    // A namespace or a proxy hides the owner: enough to look, not to trace.
    identity.role = Role::kRead;
    identity.caller.name = fmt::format("an unknown user over {}", how);
    return identity;
  }
  const std::string name = users_->Name(*uid);
  identity.caller.uid = uid;
  identity.caller.may_trace_all = *uid == 0 || (!capture_group_.empty() && users_->IsMember(*uid, capture_group_));
  identity.role = identity.caller.may_trace_all ? Role::kAdmin : Role::kCapture;
  identity.caller.name =
      name.empty() ? fmt::format("uid {} over {}", *uid, how) : fmt::format("{} (uid {}) over {}", name, *uid, how);
  return identity;
}

Access::Decision Access::Identify(const http::Peer& peer, std::string_view authorization, int64_t now_ns) const {
  const std::string source = SourceOf(peer);
  Decision decision;
  if (!authorization.empty()) {
    decision = IdentifyToken(authorization);
  } else if (!peer.certificate_name.empty()) {
    const auto found = std::find_if(certificates_.begin(), certificates_.end(), [&](const Credential& certificate) {
      return certificate.name == peer.certificate_name;
    });
    if (found != certificates_.end()) {
      decision = {Outcome::kKnown, FromCredential(*found, "certificate")};
    } else {
      decision.reason = fmt::format("a certificate of '{}', which is not in the configuration", peer.certificate_name);
    }
  } else if (peer.kind != http::Peer::Kind::kNetwork) {
    const bool is_unix = peer.kind == http::Peer::Kind::kUnixSocket;
    return {Outcome::kKnown, IdentifyUser(peer.uid, is_unix ? "the local socket" : "loopback")};
  } else if (insecure_no_auth_) {
    decision.outcome = Outcome::kKnown;
    decision.identity.role = Role::kAdmin;
    decision.identity.caller.may_trace_all = true;
    decision.identity.caller.name = "anyone (insecure_no_auth)";
  } else {
    decision.reason = "no credentials";
  }
  if (decision.outcome == Outcome::kKnown) {
    decision.identity.caller.name += fmt::format(" from {}", peer.address);
  } else if (!limiter_->Allows(source, now_ns)) {
    decision.outcome = Outcome::kLimited;
  } else {
    limiter_->Fail(source, now_ns);
  }
  return decision;
}

}  // namespace lockstep::agent
