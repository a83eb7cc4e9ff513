#include "http_requests.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace lockstep::flood {
namespace {

constexpr std::array<std::string_view, 10> kMethods = {"GET",   "GET",     "HEAD",  "POST",    "DELETE",
                                                       "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"};
constexpr std::array<std::string_view, 18> kTargets = {"/",
                                                       "/-/healthy",
                                                       "/-/ready",
                                                       "/metrics",
                                                       "/api/v1/status",
                                                       "/api/v1/processes",
                                                       "/api/v1/captures",
                                                       "/api/v1/captures/none",
                                                       "/api/v1/captures/none/events",
                                                       "/api/v1/captures/none/traces/rank0.json",
                                                       "/api/v1/captures/../../etc/passwd",
                                                       "/api/v1/captures/%2e%2e%2f%2e%2e%2fetc/shadow",
                                                       "/%00",
                                                       "/%zz",
                                                       "//",
                                                       "*",
                                                       "http://localhost/",
                                                       "/a?b=c#d"};
constexpr size_t kPlainTargetCount = 8;  // Of the first: they keep the connection.
constexpr std::array<std::string_view, 22> kFields = {"Host: localhost",
                                                      "Host: 127.0.0.1:9476",
                                                      "Host: evil.example",
                                                      "Connection: close",
                                                      "Connection: keep-alive",
                                                      "Connection: upgrade\r\nUpgrade: h2c",
                                                      "Content-Length: 0",
                                                      "Content-Length: 5",
                                                      "Content-Length: 99999999999999999999",
                                                      "Content-Length: -1",
                                                      "Transfer-Encoding: chunked",
                                                      "Transfer-Encoding: gzip, chunked",
                                                      "Transfer-Encoding: identity",
                                                      "Expect: 100-continue",
                                                      "Authorization: Bearer 0123456789abcdef",
                                                      "Origin: http://evil.example",
                                                      "Sec-Fetch-Site: cross-site",
                                                      "Range: bytes=0-,5-6",
                                                      "If-None-Match: *",
                                                      "Accept-Encoding: gzip;q=0, *",
                                                      "Content-Type: application/json",
                                                      " folded: line"};
constexpr std::array<std::string_view, 14> kPieces = {
    "\r\n", "\n",    "\r", "\r\n\r\n",         ":",        " ",       "\t", "%",
    "\x7f", "0\r\n", ";",  "FFFFFFFFFFFFFFFF", "HTTP/1.1", "HTTP/9.9"};

}  // namespace

std::string RequestMaker::Noise(size_t most_bytes) {
  std::string noise(Below(most_bytes) + 1, '\0');
  for (char& c : noise) c = static_cast<char>(Below(256));
  return noise;
}

std::string RequestMaker::Chunked() {
  std::string body;
  for (size_t i = Below(5); i > 0; --i) {
    const std::string piece(Below(200) + 1, 'x');
    body += fmt::format("{:x}{}\r\n{}\r\n", piece.size(), Below(4) == 0 ? ";extension=\"value\"" : "", piece);
  }
  return body + "0\r\n" + (Below(4) == 0 ? "Trailer: yes\r\n" : "") + "\r\n";
}

std::string RequestMaker::WellFormed() {
  const size_t kind = Below(8);
  if (kind == 0)
    return "POST /api/v1/captures HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + Chunked();
  if (kind == 1) {
    const std::string body = R"({"ranks": "0,3", "duration_ns": )" + std::to_string(Below(1'000'000)) + "}";
    return fmt::format(
        "POST /api/v1/captures HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "\r\n{}",
        body.size(), body);
  }
  if (kind < 5) return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", kTargets[Below(kTargets.size())]);
  std::string request =
      fmt::format("{} {} HTTP/1.{}\r\n", kMethods[Below(kMethods.size())], kTargets[Below(kTargets.size())], Below(2));
  for (size_t i = Below(6); i > 0; --i) request += std::string(kFields[Below(kFields.size())]) + "\r\n";
  return request + "\r\n" + (Below(3) == 0 ? "hello" : "");
}

void RequestMaker::Mutate(std::string* request) {
  for (size_t i = Below(4) + 1; i > 0 && !request->empty(); --i) {
    const size_t at = Below(request->size());
    switch (Below(7)) {
      case 0: (*request)[at] = static_cast<char>(Below(256)); break;
      case 1: request->erase(at, Below(16) + 1); break;
      case 2: request->insert(at, kPieces[Below(kPieces.size())]); break;
      case 3: request->insert(at, request->substr(Below(request->size()), Below(64))); break;
      case 4: request->insert(at, Noise(32)); break;
      case 5: request->resize(at); break;
      default: request->insert(at, std::string(Below(100) == 0 ? Below(40'000) : Below(200), 'a')); break;
    }
  }
}

std::string RequestMaker::Polite() {
  if (Below(3) == 0) {
    const std::string body = R"({"ranks": "0,3", "duration_ns": )" + std::to_string(Below(1'000'000)) + "}";
    return fmt::format("POST /api/v1/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}", body.size(),
                       body);
  }
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", kTargets[Below(kPlainTargetCount)]);
}

// What is refused ends the connection, and nobody looks at what comes behind it: one such request is the last.
std::string RequestMaker::Next(size_t count) {
  std::string bytes;
  for (size_t i = 1; i < count; ++i) bytes += Polite();
  const size_t kind = Below(10);
  std::string last = kind == 0 ? Noise(400) : WellFormed();
  if (kind >= 3) Mutate(&last);
  return bytes + last;
}

}  // namespace lockstep::flood
