#include "node/control/client/place.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/ascii.h"

namespace lockstep::control {

Result<std::string> UrlHost(const std::string& address) {
  const auto is_plain = [](char c) { return IsAlphanumeric(c) || c == '.' || c == '-' || c == '_'; };
  const size_t zone = address.find('%');
  const std::string bare = address.substr(0, zone);
  in6_addr v6 = {};
  const bool is_v6 = ::inet_pton(AF_INET6, bare.c_str(), &v6) == 1;
  const auto is_allowed = [&](char c) { return is_plain(c) || (is_v6 && c == ':'); };
  const std::string scope = zone == std::string::npos ? "" : address.substr(zone + 1);
  if (bare.empty() || address.size() > 255 || bare.front() == '-' ||
      !std::all_of(bare.begin(), bare.end(), is_allowed) || !std::all_of(scope.begin(), scope.end(), is_plain) ||
      (zone != std::string::npos && (!is_v6 || scope.empty()))) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is not a host name or IP address", address)};
  }
  if (!is_v6) return bare;
  return fmt::format("[{}{}]", bare, scope.empty() ? "" : "%25" + scope);
}

std::string PlaceOf(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return endpoint.unix_path;
  if (!endpoint.tunnel.empty()) {
    return fmt::format("{} (through '{}')", endpoint.host.empty() ? "the node" : endpoint.host,
                       endpoint.tunnel.front());
  }
  const bool is_v6 = endpoint.address.find(':') != std::string::npos;
  std::string place = fmt::format("{}{}{}:{}", is_v6 ? "[" : "", endpoint.address, is_v6 ? "]" : "", endpoint.port);
  if (!endpoint.host.empty() && endpoint.host != endpoint.address) place = fmt::format("{} ({})", endpoint.host, place);
  return place;
}

}  // namespace lockstep::control
