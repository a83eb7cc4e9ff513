#include "node/agent/daemon/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/letter_case.h"
#include "base/utf8.h"
#include "node/control/api/json.h"

namespace lockstep::agent {
namespace {

constexpr size_t kDetailBytes = 512;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : Printable(text.substr(0, kDetailBytes))) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

http::Response JsonAnswer(int status, std::string json) {
  http::Response response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::make_shared<const std::string>(std::move(json));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

http::Response ErrorAnswer(int status, const Error& error) { return JsonAnswer(status, control::ToJson(error)); }

http::Response ErrorAnswer(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCorruptData: return ErrorAnswer(400, error);
    case ErrorCode::kPermissionDenied: return ErrorAnswer(403, error);
    case ErrorCode::kNotFound: return ErrorAnswer(404, error);
    case ErrorCode::kFailedPrecondition: return ErrorAnswer(409, error);
    case ErrorCode::kLimitExceeded: return ErrorAnswer(413, error);
    case ErrorCode::kUnsupported: return ErrorAnswer(501, error);
    case ErrorCode::kIo:
    case ErrorCode::kCancelled: return ErrorAnswer(500, error);
  }
  return ErrorAnswer(500, error);
}

ErrorCode CodeOfStatus(int status) {
  switch (status) {
    case 401:
    case 403: return ErrorCode::kPermissionDenied;
    case 404: return ErrorCode::kNotFound;
    case 413:
    case 429:
    case 431:
    case 503: return ErrorCode::kLimitExceeded;
    default: return status >= 500 ? ErrorCode::kIo : ErrorCode::kInvalidArgument;
  }
}

std::string AuditLine(std::string_view action, std::string_view by, std::string_view result, std::string_view detail) {
  return fmt::format("audit action={} by={} result={} detail={}", action, Quoted(by), result, Quoted(detail));
}

// "application/json", with parameters or without.
bool IsJson(std::string_view content_type) {
  constexpr std::string_view kJson = "application/json";
  std::string lower = Lowered(content_type.substr(0, content_type.find(';')));
  while (!lower.empty() && lower.back() == ' ') lower.pop_back();
  return lower == kJson;
}

}  // namespace lockstep::agent
