#include "node/control/discovery/command_words.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep::control {

std::string Shortened(std::string_view text) {
  constexpr size_t kShown = 200;
  std::string shown(text.substr(0, kShown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return text.size() > kShown ? shown + "..." : shown;
}

bool IsInPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string file = fmt::format("{}/{}", rest.substr(0, colon), program);
    struct stat facts = {};
    if (::stat(file.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && ::access(file.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return false;
}

Error CommandFailed(std::string_view program, const CommandOutput& output) {
  std::string_view words = output.error.empty() ? output.output : output.error;
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.remove_suffix(1);
  // The last line says what it came to; those before it (kubectl's log) what was tried.
  if (const size_t end = words.rfind('\n'); end != std::string_view::npos) words.remove_prefix(end + 1);
  return Error{.code = ErrorCode::kIo,
               .message = fmt::format("{} failed with status {}{}{}", program, output.exit_status,
                                      words.empty() ? "" : ": ", Shortened(words))};
}

}  // namespace lockstep::control
