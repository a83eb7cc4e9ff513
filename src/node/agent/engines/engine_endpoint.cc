#include "node/agent/engines/engine_endpoint.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

#include "base/text_scan.h"

namespace lockstep::agent {
namespace {

struct UrlDelete {
  void operator()(CURLU* url) const { ::curl_url_cleanup(url); }
};

std::string PartOf(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  std::string kept;
  if (::curl_url_get(url, part, &text, flags) == CURLUE_OK) kept = text;
  ::curl_free(text);
  return kept;
}

}  // namespace

bool EngineUrl::is_loopback() const { return host == "localhost" || host == "::1" || host.starts_with("127."); }

Result<EngineUrl> ParseEngineUrl(const std::string& text) {
  const auto fail = [&](std::string_view what) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' {}; write it as http://127.0.0.1:8000/metrics", text, what)};
  };
  const std::unique_ptr<CURLU, UrlDelete> url(::curl_url());
  if (url == nullptr || ::curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return fail("is not a URL");
  }
  const std::string scheme = PartOf(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return fail("is neither http nor https");
  if (!PartOf(url.get(), CURLUPART_USER).empty() || !PartOf(url.get(), CURLUPART_PASSWORD).empty()) {
    return fail("contains a user or password; use a token file");
  }
  if (PartOf(url.get(), CURLUPART_PATH) == "/") ::curl_url_set(url.get(), CURLUPART_PATH, "/metrics", 0);
  EngineUrl parsed;
  parsed.url = PartOf(url.get(), CURLUPART_URL);
  parsed.host = PartOf(url.get(), CURLUPART_HOST);
  if (parsed.host.starts_with('[') && parsed.host.ends_with(']')) {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  parsed.port = WholeNumber<uint16_t>(PartOf(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT)).value_or(0);
  parsed.is_encrypted = scheme == "https";
  if (parsed.url.empty() || parsed.host.empty() || parsed.port == 0) return fail("has no host and port");
  return parsed;
}

std::string DefaultEngineJob(const EngineUrl& url, const std::string& this_host) {
  return fmt::format("{}:{}", url.is_loopback() ? this_host : url.host, url.port);
}

}  // namespace lockstep::agent
