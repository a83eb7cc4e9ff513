#include "programs/cli/terminal/console.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace lockstep::cli {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool Console::UseColour(ColourMode mode) const {
  if (mode != ColourMode::kAuto) return mode == ColourMode::kAlways;
  if (!Environment("NO_COLOR").empty()) return false;
  const std::string_view force = Environment("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return out_is_terminal && Environment("TERM") != "dumb";
}

int Console::Width() const { return std::min(TerminalWidth(), 120); }

int Console::TerminalWidth() const {
  winsize size{};
  if (!out_is_terminal || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max(static_cast<int>(size.ws_col), 40);
}

bool LocaleIsUtf8() {
  const char* charset = ::nl_langinfo(CODESET);
  return charset != nullptr && std::strcmp(charset, "UTF-8") == 0;
}

}  // namespace lockstep::cli
