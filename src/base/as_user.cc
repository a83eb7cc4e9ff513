#include "base/as_user.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace lockstep {

bool AsUser(uint32_t uid, uint32_t gid, const std::function<void()>& work) {
  if (geteuid() == uid) {
    work();
    return true;
  }
  if (geteuid() != 0) return false;
  bool done = false;
  int saved_errno = 0;
  std::thread([&] {
    // The raw call changes this thread alone; the library's would change all.
    if (syscall(SYS_setgroups, 0, nullptr) != 0) return;
    setfsgid(gid);
    setfsuid(uid);
    if (static_cast<uint32_t>(setfsuid(static_cast<uid_t>(-1))) != uid) return;  // Tells what is set.
    work();
    saved_errno = errno;
    done = true;
  }).join();
  errno = saved_errno;
  return done;
}

}  // namespace lockstep
