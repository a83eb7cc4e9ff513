#include "evidence/parse_json.h"

#include <utility>

namespace lockstep::evidence {

Result<JsonTree> ParseJson(std::string_view text) {
  Result<JsonTree> tree = lockstep::ParseJson(text, {.most_bytes = kMaxJsonBytes});
  if (tree || tree.error().code != ErrorCode::kCorruptData) return tree;
  Error error = std::move(tree).error();
  error.message = "no JSON: " + error.message;
  return error;
}

}  // namespace lockstep::evidence
