#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::agent {

/// Tells systemd how this service is, where it asked to be told ($NOTIFY_SOCKET): "READY=1". Source: sd_notify(3).
/// False: systemd did not ask, or it could not be sent; nothing depends on it.
bool NotifySystemd(std::string_view state);

/// How often systemd wants a "WATCHDOG=1" at least: half of $WATCHDOG_USEC; unset when it does not.
std::optional<int64_t> WatchdogPeriodNs();

}  // namespace lockstep::agent
