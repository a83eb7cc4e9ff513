#include "node/control/discovery/command_json.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::control {

Result<JsonTree> ParseCommandJson(std::string_view text, std::string_view what) {
  Result<JsonTree> tree = ParseJson(text, {.numbers_as_texts = true});
  if (tree) return tree;
  Error error = std::move(tree).error();
  error.message = fmt::format("{} is not JSON: {}", what, error.message);
  return error;
}

}  // namespace lockstep::control
