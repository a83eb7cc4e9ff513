#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "cli/text_flags.h"
#include "hang/diagnosis.h"

namespace lockstep::cli {

/// `lockstep hang PATH...`: from dumps, stacks and logs of a stuck job to the rank, the collective and the line.
class HangCommand : public Subcommand {
 public:
  const char* name() const override { return "hang"; }
  const char* purpose() const override { return "Say which rank holds a stuck job up, in which collective and line"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadFlags();
  bool IsFinding(hang::VerdictKind kind) const;

  std::vector<std::string> paths_;
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
