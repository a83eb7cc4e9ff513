#include "model/evidence/parse_json.h"

#include <utility>

namespace lockstep::evidence {

Result<JsonTree> ParseJson(std::string_view text) {
  Result<JsonTree> tree = lockstep::ParseJson(text, {.most_bytes = kMaxJsonBytes});
  if (tree || tree.error().code != ErrorCode::kCorruptData) return tree;
  Error error = std::move(tree).error();
  error.message = "no JSON: " + error.message;
  return error;
}

Result<JsonTree> ParseObject(std::string_view text) {
  Result<JsonTree> tree = ParseJson(text);
  if (tree && !tree->root().IsObject()) {
    return Error{.code = ErrorCode::kCorruptData, .message = "document: expected an object"};
  }
  return tree;
}

}  // namespace lockstep::evidence
