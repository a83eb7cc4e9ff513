#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace lockstep::agent {

/// Users and groups of this host.
class Users {
 public:
  virtual ~Users() = default;
  /// "alice"; empty when the host has no name for it.
  virtual std::string Name(uint32_t uid) = 0;
  /// Whether the user is in the group, by its own entry or the group's list.
  virtual bool IsMember(uint32_t uid, const std::string& group) = 0;
};

/// Asks the system's name service, which may go over the network: answers are kept for 30 s. Thread-safe.
class SystemUsers : public Users {
 public:
  std::string Name(uint32_t uid) override;
  bool IsMember(uint32_t uid, const std::string& group) override;

 private:
  struct User {
    int64_t asked_ns = 0;
    std::string name;
    std::vector<uint32_t> groups;
  };
  User Find(uint32_t uid);

  Mutex mutex_;
  std::map<uint32_t, User> users_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::agent
