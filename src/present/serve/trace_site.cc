#include "present/serve/trace_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace lockstep::serve {

http::Response TraceSite::Answer(const http::Request& request) const {
  if (request.path != "/" + name) return http::TextResponse(404, fmt::format("Only /{} is here.\n", name));
  http::Response response;
  response.content_type = "application/octet-stream";
  response.file = path;
  response.headers.emplace_back("Access-Control-Allow-Origin", origin);
  response.headers.emplace_back("Vary", "Origin");
  response.on_sent = on_fetched;
  return response;
}

std::string UrlName(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return !(std::isalnum(c) != 0 && c < 0x80) && c != '.' && c != '-' && c != '_'; }, '_');
  return name.empty() ? "trace" : name;
}

std::string ViewerLink(const std::string& origin, uint16_t port, const std::string& name) {
  return fmt::format("{}/#!/?url=http://127.0.0.1:{}/{}", origin, port, name);
}

}  // namespace lockstep::serve
