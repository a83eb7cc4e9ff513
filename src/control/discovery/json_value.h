#pragma once

#include <rapidjson/document.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep::control {

/// A command's JSON; numbers are kept as the texts that they are written as (PBS writes a variable "007" as 7).
/// `what` names it in the error. Errors: kCorruptData. Reading does not recurse, so depth needs no bound.
Result<rapidjson::Document> ParseCommandJson(std::string_view text, std::string_view what);

/// The member that `path` leads to, or nullptr.
const rapidjson::Value* FindValue(const rapidjson::Value& from, std::initializer_list<std::string_view> path);

/// The text there, or "".
std::string FindText(const rapidjson::Value& from, std::initializer_list<std::string_view> path);

}  // namespace lockstep::control
