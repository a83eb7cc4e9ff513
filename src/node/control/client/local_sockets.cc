#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "node/control/client/node_client.h"

namespace lockstep::control {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  const auto add = [&](std::string path) {
    for (const std::string& known : paths) {
      if (known == path) return;
    }
    paths.push_back(std::move(path));
  };
  if (const std::string named = Environment("LOCKSTEP_SOCKET"); !named.empty()) add(named);
  add("/run/lockstep/lockstepd.sock");
  if (const std::string runtime = Environment("XDG_RUNTIME_DIR"); !runtime.empty()) {
    add(runtime + "/lockstep/lockstepd.sock");
  }
  std::array<char, HOST_NAME_MAX + 1> host = {};
  if (::gethostname(host.data(), host.size() - 1) == 0) {
    add(fmt::format("/tmp/lockstep-{}/{}/lockstepd.sock", ::getuid(), host.data()));
  }
  return paths;
}

bool IsOurs(const struct stat& info) { return info.st_uid == 0 || info.st_uid == ::geteuid(); }

/// True for a socket of root or ours in a directory of root or ours that others cannot write. In /tmp any user may make
/// a directory with the name that we look for, and use a link to lead us to another service's socket.
bool IsTrusted(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode) || !IsOurs(info)) return false;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::stat(folder.empty() ? "." : folder.c_str(), &info) != 0) return false;
  return IsOurs(info) && ((info.st_mode & 022U) == 0 || (info.st_mode & S_ISVTX) != 0);
}

}  // namespace

std::vector<std::string> LocalSockets() {
  std::vector<std::string> sockets;
  for (std::string& path : Candidates()) {
    if (IsTrusted(path)) sockets.push_back(std::move(path));
  }
  return sockets;
}

Error NoLocalDaemon() {
  return {ErrorCode::kNotFound,
          fmt::format("no lockstepd answers on this node (looked for {}); start it with 'systemctl start lockstepd', "
                      "or the job with 'lockstep run --with-daemon'",
                      fmt::join(Candidates(), ", "))};
}

Result<std::unique_ptr<NodeClient>> ConnectLocal(int64_t deadline_ns) {
  Error last = NoLocalDaemon();
  for (const std::string& path : LocalSockets()) {
    Endpoint endpoint;
    endpoint.unix_path = path;
    ASSIGN_OR_RETURN(std::unique_ptr<NodeClient> client, NodeClient::Create(endpoint));
    const Result<NodeStatus> status = client->Status(deadline_ns);
    if (status) return client;
    // A socket that a dead daemon left behind only means that there is no daemon.
    if (status.error().code != ErrorCode::kNotFound) last = status.error();
  }
  return last;
}

}  // namespace lockstep::control
