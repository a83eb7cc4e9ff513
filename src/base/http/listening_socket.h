#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lockstep::http {

/// A listening TCP socket on an IP address, such as "127.0.0.1" or "::1", and a port; 0 = any free one. An IPv6 address
/// takes no IPv4 connections. Errors: kInvalidArgument (no IP address), kIo when the port is taken (the message says
/// what to do), kPermissionDenied for one below 1024.
Result<UniqueFd> ListenTcp(const std::string& address, uint16_t port);

/// A listening Unix stream socket, mode 0666, and its file, which is removed with this unless another has taken its
/// place.
class UnixListener {
 public:
  /// The folder must exist. A socket of ours without a listener is replaced. Errors: kIo when it has a listener, or the
  /// folder does not exist; kPermissionDenied; kInvalidArgument when the path is too long, or another file than a
  /// socket of ours is there.
  static Result<UnixListener> Open(const std::string& path);
  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  /// Hands the socket over; the file stays with this.
  UniqueFd TakeSocket() { return std::move(socket_); }
  void RemoveFile();

 private:
  UnixListener(std::string path, UniqueFd socket, dev_t device, ino_t inode)
      : path_(std::move(path)), socket_(std::move(socket)), device_(device), inode_(inode) {}

  std::string path_;  ///< Empty when there is nothing to remove.
  UniqueFd socket_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// The port that a listening TCP socket has; 0 for a Unix socket.
uint16_t PortOf(int fd);

}  // namespace lockstep::http
