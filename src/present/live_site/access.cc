#include "present/live_site/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace lockstep::live_site {

bool IsSame(std::string_view given, std::string_view expected) {
  if (given.size() != expected.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected[i]);
  }
  return difference == 0;
}

std::string RandomName() {
  std::array<unsigned char, 16> bytes = {};
  // So few bytes come completely or not at all; without them it is not safe to continue.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) std::abort();
  }
  std::string name;
  for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
  return name;
}

std::optional<std::string_view> QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) return pair.substr(equals + 1);
    if (end == std::string_view::npos) break;
    query.remove_prefix(end + 1);
  }
  return std::nullopt;
}

bool HasToken(const http::Request& request, std::string_view token) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view header = request.authorization;
  if (!header.empty()) return header.starts_with(kBearer) && IsSame(header.substr(kBearer.size()), token);
  const std::optional<std::string_view> given = QueryValue(request.query, "token");
  return given && IsSame(*given, token);
}

}  // namespace lockstep::live_site
