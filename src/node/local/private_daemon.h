#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/control/api/node.h"

namespace lockstep::local {

struct PrivateDaemonOptions {
  std::string runtime_folder;        ///< MakeRuntimeFolder().
  std::string socket_folder;         ///< Kineto's sockets go there too; empty: only where nothing else can be had.
  int64_t wait_ns = 20'000'000'000;  ///< For the daemon's first answer, and for others who are starting it.
};

/// A daemon that answers on this node, and our part in keeping it.
struct NodeDaemon {
  std::string socket;  ///< Of its HTTP.
  control::NodeStatus status;
  bool started = false;  ///< By us, just now.
  std::string note;      ///< What its user should know of how it was started; empty: nothing.
  UniqueFd lease;        ///< While this is open a private daemon stays; two seconds after the last one it ends.
};

/// The node's daemon if one answers; else starts one that ends with the last `lockstep run` on this node that uses it.
/// Several may ask at a time: one starts it. The daemon is a child of this process in a session of its own.
/// Errors: kNotFound (no lockstepd beside this program or in PATH), kFailedPrecondition (it ended at once; its last
/// line says why), kCancelled (no answer in time), kIo, kPermissionDenied.
Result<NodeDaemon> ObtainDaemon(const PrivateDaemonOptions& options);

/// The daemon that answers on this node, without starting one. Errors: those of control::ConnectLocal.
Result<NodeDaemon> AnsweringDaemon();

/// The folder that processes must be told of to reach this daemon: KINETO_IPC_SOCKET_DIR. Empty: none needed.
std::string SocketFolderOf(const control::NodeStatus& status);

}  // namespace lockstep::local
