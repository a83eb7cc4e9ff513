#pragma once

#include <optional>
#include <string_view>

namespace lockstep::live_site {

/// A file that is part of the program: "lockstep.rules.yml" and "lockstep.alerts.yml" of packaging/prometheus, and the
/// alerts' pages of docs/runbook, "xid.md". nullopt: there is none of that name.
std::optional<std::string_view> ShippedFile(std::string_view name);

}  // namespace lockstep::live_site
