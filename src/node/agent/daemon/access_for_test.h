#pragma once

#include <openssl/sha.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "node/agent/daemon/users.h"

namespace lockstep::agent {

/// User 1000 is alice, 1001 is in the group "lockstep".
class FakeUsers : public Users {
 public:
  std::string Name(uint32_t uid) override { return uid == 1000 ? "alice" : ""; }
  bool IsMember(uint32_t uid, const std::string& group) override { return uid == 1001 && group == "lockstep"; }
};

/// As a configuration holds it.
inline std::string Digest(std::string_view token) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  ::SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace lockstep::agent
