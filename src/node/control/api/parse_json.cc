#include "node/control/api/parse_json.h"

#include <fmt/format.h>

namespace lockstep::control {

Result<JsonTree> ParseJson(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {  // The parser would take it for the end.
    return Error{ErrorCode::kCorruptData, "not JSON: holds a zero byte"};
  }
  Result<JsonTree> tree = lockstep::ParseJson(text, {.most_depth = kJsonDepth, .checks_encoding = true});
  if (tree || tree.error().code != ErrorCode::kCorruptData) return tree;
  return Error{ErrorCode::kCorruptData,
               fmt::format("not JSON: byte {}: {}", tree.error().byte_offset.value_or(0), tree.error().message)};
}

}  // namespace lockstep::control
