#include "node/agent/kineto/unread_replies.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "node/agent/kineto/kineto_socket.h"

namespace lockstep::agent {
namespace {

constexpr int kMaxReads = 4096;

/// One socket's attributes.
void ReadSocket(const nlmsghdr* header, std::unordered_set<std::string>* unread) {
  if (header->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) return;
  const auto* socket = static_cast<const unix_diag_msg*>(NLMSG_DATA(header));
  if (socket->udiag_type != SOCK_DGRAM) return;
  auto* attribute =
      reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(socket) + NLMSG_ALIGN(sizeof(*socket)));
  auto left = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof(unix_diag_msg)));
  std::string address;
  unix_diag_rqlen queue = {};
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == UNIX_DIAG_NAME)
      address.assign(static_cast<const char*>(RTA_DATA(attribute)), RTA_PAYLOAD(attribute));
    if (attribute->rta_type == UNIX_DIAG_RQLEN && RTA_PAYLOAD(attribute) >= sizeof(queue))
      std::memcpy(&queue, RTA_DATA(attribute), sizeof(queue));
  }
  if (queue.udiag_rqueue == 0 || address.find(kClientPrefix) == std::string::npos) return;
  if (address.front() != '\0')
    address.resize(address.find('\0') == std::string::npos ? address.size() : address.find('\0'));
  unread->insert(std::move(address));
}

}  // namespace

std::unordered_set<std::string> FindUnreadClients() {
  std::unordered_set<std::string> unread;
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.valid()) return unread;
  const timeval patience = {.tv_sec = 0, .tv_usec = 100'000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } question = {};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = UINT32_MAX;
  question.request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN;
  if (::send(fd.get(), &question, sizeof(question), 0) < 0) return unread;
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  for (int reads = 0; reads < kMaxReads; ++reads) {
    const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    auto left = static_cast<unsigned>(size);
    for (auto* header = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) return unread;
      ReadSocket(header, &unread);
    }
  }
  return unread;
}

}  // namespace lockstep::agent
