#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/http/http_message.h"

namespace lockstep::live_site {

/// 32 random hexadecimal digits that cannot be guessed.
std::string RandomName();

/// The value of `name` in a query ("a=1&token=x"), as it is sent; nullopt: not there.
std::optional<std::string_view> QueryValue(std::string_view query, std::string_view name);

/// Whether two secrets are the same; the time that this takes does not reveal how much of them is equal.
bool IsSame(std::string_view given, std::string_view expected);

/// Whether a request carries the token: `Authorization: Bearer TOKEN`, or `?token=TOKEN`, since a browser lets a page
/// set no header of an event stream. The time that this takes does not reveal how much of it is right.
bool HasToken(const http::Request& request, std::string_view token);

}  // namespace lockstep::live_site
