#include "node/local/kineto_sockets.h"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/command_name.h"
#include "base/text_scan.h"
#include "base/unique_fd.h"

namespace lockstep::local {
namespace {

// The kernel's list of Unix sockets. Abstract names are written with '@' for each NUL. Of several sockets with one path
// (a file that was replaced) the last one counts.
std::optional<uint32_t> InodeOf(const std::string& shown_name) {
  std::ifstream sockets("/proc/net/unix");
  std::optional<uint32_t> inode;
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 7; ++i) words >> word;  // Num RefCount Protocol Flags Type St Inode
    std::string name;
    std::getline(words >> std::ws, name);
    const auto number = WholeNumber<uint32_t>(word);
    if (name == shown_name && number) inode = *number;
  }
  return inode;
}

// Who made a Unix socket, asked of the kernel by its inode; needs no right over that user's processes (Linux 5.3).
std::optional<uid_t> UidOf(uint32_t inode) {
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.valid()) return std::nullopt;
  struct Request {
    nlmsghdr header;
    unix_diag_req body;
  } request = {};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = ~0U;
  request.body.udiag_ino = inode;
  request.body.udiag_show = UDIAG_SHOW_UID;
  request.body.udiag_cookie[0] = request.body.udiag_cookie[1] = ~0U;  // Any.
  const timeval patience = {1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::send(fd.get(), &request, sizeof request, 0) < 0) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 8192> reply = {};
  const ssize_t got = ::recv(fd.get(), reply.data(), reply.size(), 0);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(unix_diag_msg)))) return std::nullopt;
  const auto* header = reinterpret_cast<const nlmsghdr*>(reply.data());
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len > static_cast<size_t>(got)) return std::nullopt;
  int left = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof(unix_diag_msg)));
  const char* at = reply.data() + NLMSG_LENGTH(sizeof(unix_diag_msg));
  for (const auto* attribute = reinterpret_cast<const rtattr*>(at); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    uint32_t uid = 0;
    if (attribute->rta_type != UNIX_DIAG_UID || RTA_PAYLOAD(attribute) < sizeof uid) continue;
    std::memcpy(&uid, RTA_DATA(attribute), sizeof uid);
    return uid;
  }
  return std::nullopt;
}

std::optional<pid_t> HolderOf(uint32_t inode) {
  const std::string link = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = WholeNumber<pid_t>(process.path().filename().string());
    if (!pid) continue;
    std::error_code gone;  // Not ours to look at, or ended.
    std::filesystem::directory_iterator descriptors(process.path() / "fd", gone);
    for (; !gone && descriptors != std::filesystem::directory_iterator(); descriptors.increment(gone)) {
      if (std::filesystem::read_symlink(descriptors->path(), gone) == link) return pid;
    }
  }
  return std::nullopt;
}

SocketOwner OwnerOf(const std::string& shown_name) {
  SocketOwner owner;
  const std::optional<uint32_t> inode = InodeOf(shown_name);
  if (!inode) return owner;
  owner.bound = true;
  owner.uid = UidOf(*inode);
  owner.pid = HolderOf(*inode);
  if (owner.pid) owner.program = CommandName(*owner.pid);
  return owner;
}

}  // namespace

SocketOwner OwnerOfAbstractSocket(const std::string& name) { return OwnerOf("@" + name + "@"); }

SocketOwner OwnerOfSocket(const std::string& path) { return OwnerOf(path); }

std::string UserName(uid_t uid) {
  std::array<char, 4096> space = {};
  passwd entry = {};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, space.data(), space.size(), &found) == 0 && found != nullptr) return found->pw_name;
  return fmt::format("{}", uid);
}

std::string OwnerText(const SocketOwner& owner) {
  std::string text = owner.pid ? fmt::format("process {} ({})", *owner.pid, owner.program) : "a process";
  if (owner.uid) text += fmt::format(" of user {}", UserName(*owner.uid));
  return text;
}

}  // namespace lockstep::local
