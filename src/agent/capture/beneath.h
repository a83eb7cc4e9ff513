#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/unique_fd.h"

namespace lockstep::agent {

/// Opens `path` (relative) below `folder` without following any symbolic link and without leaving it: openat2 with
/// RESOLVE_BENEATH, NO_SYMLINKS and NO_MAGICLINKS, or the same component by component where the kernel (before 5.6) or
/// a filter has none. O_CLOEXEC and O_NOFOLLOW are added. Not valid on failure; errno says why (ELOOP: a link).
UniqueFd OpenBeneath(int folder, const std::string& path, int flags);

/// Calls `work` with the file system rights of `uid`, `gid` and no further groups, on a thread of its own that ends
/// with it: only the rights to files change (setfsuid), so that the user can neither signal nor trace that thread.
/// Directly when that is who we are. False: those rights cannot be had (we are neither root nor that user).
bool AsUser(uint32_t uid, uint32_t gid, const std::function<void()>& work);

/// Removes what lies below an open folder, not the folder itself: never follows a link, never leaves the file system,
/// enters folders to a depth of four, removes at most 10000 names. What is left stays.
void RemoveContents(int folder);

}  // namespace lockstep::agent
