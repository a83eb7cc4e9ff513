#include "node/agent/daemon/users.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <chrono>

#include "base/now.h"

namespace lockstep::agent {
namespace {

constexpr int64_t kKeepNs = 30'000'000'000;
constexpr size_t kKept = 1024;
constexpr size_t kBufferBytes = 64 * 1024;
constexpr int kMostGroups = 4096;

}  // namespace

SystemUsers::User SystemUsers::Find(uint32_t uid) {
  const int64_t now = SteadyNow();
  {
    const MutexLock lock(mutex_);
    const auto found = users_.find(uid);
    if (found != users_.end() && now - found->second.asked_ns < kKeepNs) return found->second;
  }
  // Asked without the lock: a slow name service holds up this caller alone.
  User user;
  user.asked_ns = now;
  std::vector<char> buffer(kBufferBytes);
  struct passwd entry = {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    user.name = found->pw_name;
    std::vector<gid_t> groups(64);
    auto count = static_cast<int>(groups.size());
    while (::getgrouplist(found->pw_name, found->pw_gid, groups.data(), &count) < 0) {
      if (count <= static_cast<int>(groups.size()) || count > kMostGroups) {
        count = 0;
        break;
      }
      groups.resize(static_cast<size_t>(count));
    }
    user.groups.assign(groups.begin(), groups.begin() + count);
  }
  const MutexLock lock(mutex_);
  if (users_.size() >= kKept) users_.clear();
  users_[uid] = user;
  return user;
}

std::string SystemUsers::Name(uint32_t uid) { return Find(uid).name; }

bool SystemUsers::IsMember(uint32_t uid, const std::string& group) {
  std::vector<char> buffer(kBufferBytes);
  struct group entry = {};
  struct group* found = nullptr;
  if (::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return false;
  const User user = Find(uid);
  return std::find(user.groups.begin(), user.groups.end(), found->gr_gid) != user.groups.end();
}

}  // namespace lockstep::agent
