#include "inside/launch/tool_command.h"

namespace lockstep::launch {

std::string WithoutPatterns(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    escaped += c;
    if (c == '%') escaped += c;
  }
  return escaped;
}

std::string OptionName(const std::string& option) { return option.substr(0, option.find('=')); }

}  // namespace lockstep::launch
