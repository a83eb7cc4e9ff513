#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep::launch {

/// One option of a profiler, as it is given, and what it is there for.
struct ToolOption {
  std::string text;
  std::string why;
};

/// How a profiler is called for one rank; the job's own command follows the options.
struct ToolCommand {
  std::vector<ToolOption> options = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< To be set,
  std::vector<std::string> unset = {};                                ///< and to be taken out, if there.
  std::vector<std::string> warnings = {};                             ///< What the user should know; a sentence each.
};

/// A file's name for nsys's or ncu's --output, which take % for the beginning of a pattern.
std::string WithoutPatterns(const std::string& path);

/// The name of an option: "--trace" of "--trace=cuda".
std::string OptionName(const std::string& option);

}  // namespace lockstep::launch
