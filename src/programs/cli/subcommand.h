#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "programs/cli/terminal/console.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

/// One command of the program. A file each; cli.cc lists them.
class Subcommand {
 public:
  virtual ~Subcommand() = default;
  virtual const char* name() const = 0;
  /// One line, no full stop: what it is for.
  virtual const char* purpose() const = 0;
  /// Adds flags, arguments and the closing examples (footer). Called once, before parsing.
  virtual void Declare(CLI::App& app) = 0;
  /// Whether what follows "--" is a command line of its own, which is not parsed but handed to SetCommandLine. Called
  /// before parsing; what comes before "--" is parsed as ever.
  virtual bool TakesCommandLine() const { return false; }
  virtual void SetCommandLine(std::vector<std::string> /*words*/) {}
  /// After parsing. Returns an ExitStatus; an Error is printed by Main as one line and becomes kFailed,
  /// or kMisused for kInvalidArgument.
  virtual Result<int> Run(Console& console) = 0;
};

}  // namespace lockstep::cli
