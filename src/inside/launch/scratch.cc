#include "inside/launch/scratch.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace lockstep::launch {
namespace {

constexpr uint64_t kWantedBytes = uint64_t{4} << 30;

struct NetworkFileSystem {
  unsigned long type;
  const char* name;
};
constexpr auto kNetworkFileSystems = std::to_array<NetworkFileSystem>({{0x6969, "NFS"},
                                                                       {0x0BD00BD0, "Lustre"},
                                                                       {0x47504653, "GPFS"},
                                                                       {0xff534d42, "CIFS"},
                                                                       {0xfe534d42, "SMB"},
                                                                       {0x00c36400, "Ceph"},
                                                                       {0x19830326, "BeeGFS"},
                                                                       {0x65735546, "FUSE"}});

const char* NetworkName(unsigned long type) {
  for (const NetworkFileSystem& known : kNetworkFileSystems) {
    if (known.type == type) return known.name;
  }
  return nullptr;
}

}  // namespace

void PrepareScratch(const std::string& tool, const std::string& given, const Environment& environment,
                    ToolCommand* command) {
  std::string folder = given.empty() ? std::string(environment.Get("TMPDIR")) : given;
  const bool is_default = folder.empty();
  if (is_default) folder = "/tmp";
  if (!given.empty() || (tool == "ncu" && is_default)) {
    const std::string own = fmt::format("{}/lockstep-{}", folder, ::geteuid());
    if (::mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) {
      command->warnings.push_back(fmt::format("{}: {}; {} uses {} instead", own, std::strerror(errno), tool, folder));
    } else {
      struct stat status = {};
      if (::lstat(own.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) {
        command->warnings.push_back(fmt::format("{}: belongs to another user; {} uses {} instead", own, tool, folder));
      } else {
        folder = own;
      }
    }
    command->environment.emplace_back("TMPDIR", folder);
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    command->warnings.push_back(
        fmt::format("{} writes to {} while the job runs (TMPDIR), but cannot: {}; --tmp chooses another folder", tool,
                    folder, std::strerror(errno)));
    return;
  }
  struct statfs facts = {};
  if (::statfs(folder.c_str(), &facts) != 0) return;
  if (const char* name = NetworkName(static_cast<unsigned long>(facts.f_type) & 0xffffffffUL)) {
    command->warnings.push_back(
        fmt::format("{} writes gigabytes to {} while the job runs (TMPDIR), which is on {}; --tmp chooses a local disk",
                    tool, folder, name));
  }
  const uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize);
  if (free_bytes < kWantedBytes) {
    command->warnings.push_back(fmt::format(
        "{} has {:.1f} GB left, and {} may need more while the job runs (TMPDIR); --tmp chooses another folder", folder,
        static_cast<double>(free_bytes) / 1e9, tool));
  }
}

}  // namespace lockstep::launch
