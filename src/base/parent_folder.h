#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// The folder that a path's last part is in, as the path says it: "/run/lockstep" of "/run/lockstep/lockstepd.sock".
inline std::string ParentFolder(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

}  // namespace lockstep
