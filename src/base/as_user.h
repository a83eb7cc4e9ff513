#pragma once

#include <cstdint>
#include <functional>

namespace lockstep {

/// Calls `work` with the file system rights of `uid`, `gid` and no further groups, on a thread of its own that ends
/// with it: only the rights to files change (setfsuid), so that the user can neither signal nor trace that thread.
/// Directly when that is who we are. False: those rights cannot be had (we are neither root nor that user).
bool AsUser(uint32_t uid, uint32_t gid, const std::function<void()>& work);

}  // namespace lockstep
