#pragma once

#include <string>

#include "base/as_user.h"
#include "base/unique_fd.h"

namespace lockstep::agent {

/// Opens `path` (relative) below `folder` without following any symbolic link and without leaving it: openat2 with
/// RESOLVE_BENEATH, NO_SYMLINKS and NO_MAGICLINKS, or the same component by component where the kernel (before 5.6) or
/// a filter has none. O_CLOEXEC and O_NOFOLLOW are added. Not valid on failure; errno says why (ELOOP: a link).
UniqueFd OpenBeneath(int folder, const std::string& path, int flags);

/// Removes what lies below an open folder, not the folder itself: never follows a link, never leaves the file system,
/// enters folders to a depth of four, removes at most 10000 names. What is left stays.
void RemoveContents(int folder);

}  // namespace lockstep::agent
