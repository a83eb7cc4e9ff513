#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "node/jobs/live_job.h"
#include "programs/cli/live_flags.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep hang [PATH...]`: from a stuck job, or its dumps, stacks and logs, to the rank, the collective and the
/// line.
class HangCommand : public Subcommand {
 public:
  const char* name() const override { return "hang"; }
  const char* purpose() const override { return "Say which rank holds a stuck job up, in which collective and line"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  /// Looks at the running job and keeps what it finds: the folder that is read then.
  Result<std::string> Collect(Console& console);
  bool IsFinding(hang::VerdictKind kind) const;

  std::vector<std::string> paths_;
  LiveFlags live_;
  std::string keep_;  ///< Where live evidence goes; "": a fresh folder here.
  bool json_ = false;
  std::string page_file_;
  bool all_ = false;
  bool quiet_ = false;
  int32_t world_size_ = 0;  ///< 0: what the evidence says.
  unsigned thread_count_ = 0;
  std::vector<std::string> fail_on_;
  std::vector<hang::VerdictKind> findings_;  ///< What fail_on_ names.
  TextFlags text_;
};

}  // namespace lockstep::cli
