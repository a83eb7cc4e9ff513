#pragma once

#include <string>

#include "present/report/report.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// The flags that say how text is printed: --width, --color, --ascii.
class TextFlags {
 public:
  /// Into the group that the command is at.
  void Declare(CLI::App& app);
  /// `top` rows a table; the rest from the flags and the terminal.
  report::TextOptions Options(const Console& console, size_t top) const;

 private:
  int width_ = 0;
  std::string colour_ = "auto";
  bool no_colour_ = false;
  bool ascii_ = false;
};

/// Whether `path` can take a page: it ends in .html and can be written. Empty is fine.
Status CheckPagePath(const std::string& path);

}  // namespace lockstep::cli
