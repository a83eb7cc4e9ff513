#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "programs/cli/run/foreground.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep run --logs DIR`: what CMD writes, into a log of its rank. Nothing that goes wrong with the log changes how
/// CMD runs or ends.
class RunLogs {
 public:
  void Declare(CLI::App& app);
  /// Errors: kInvalidArgument for flags that mean nothing together.
  Status Read();
  bool is_asked_for() const { return !folder_.empty(); }

  /// RunInForeground, with the log where it is asked for.
  Result<int> Run(ForegroundCommand command, Console& console) const;

 private:
  const CLI::App* app_ = nullptr;
  std::string folder_;
  std::string console_ = "rank0";
  bool is_json_ = false;
  uint64_t max_bytes_ = 100'000'000;
  int file_count_ = 5;
  bool is_plain_ = false;
};

}  // namespace lockstep::cli
