#pragma once

#include <string>
#include <unordered_set>

namespace lockstep::agent {

/// Addresses (as in Sender) of Kineto's clients in this network namespace that have a datagram which they have not
/// read, by the kernel's socket diagnostics. Empty where those are not to be had. Cost: a pass over all Unix sockets.
std::unordered_set<std::string> FindUnreadClients();

}  // namespace lockstep::agent
