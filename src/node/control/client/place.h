#pragma once

#include <string>

#include "base/result.h"
#include "node/control/client/node_client.h"

namespace lockstep::control {

/// "n001:9476", "/run/lockstep/lockstepd.sock", "n001 (through 'srun')": where an endpoint is, for messages.
std::string PlaceOf(const Endpoint& endpoint);

/// A name or IP address as the host of a URL ("[fe80::1%25eth0]"): what is neither must not become another part of the
/// URL. Errors: kInvalidArgument.
Result<std::string> UrlHost(const std::string& address);

}  // namespace lockstep::control
