#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/http/http_message.h"

namespace lockstep::agent {

http::Response JsonAnswer(int status, std::string json);
/// With the status that belongs to the error's code.
http::Response ErrorAnswer(const Error& error);
http::Response ErrorAnswer(int status, const Error& error);
ErrorCode CodeOfStatus(int status);
/// Whether a Content-Type is that of JSON. A web page cannot send it elsewhere without asking first.
bool IsJson(std::string_view content_type);

/// `audit action=capture by="alice (uid 1000)" result=refused detail="..."`: one line, whatever the texts hold.
std::string AuditLine(std::string_view action, std::string_view by, std::string_view result, std::string_view detail);

}  // namespace lockstep::agent
