#include "programs/cli/run/log_level.h"

#include <fmt/format.h>

#include "programs/cli/run_input.h"

namespace lockstep::cli {

Result<std::optional<logs::Level>> ParseLevel(const std::string& text, const char* flag) {
  if (text.empty()) return std::optional<logs::Level>();
  const std::optional<logs::Level> level = logs::LevelOfName(text);
  if (!level) return Misuse(fmt::format("{} {}: expected trace, debug, info, warning, error or fatal", flag, text));
  return level;
}

}  // namespace lockstep::cli
