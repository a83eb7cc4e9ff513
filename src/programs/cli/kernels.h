#pragma once

#include <string>
#include <vector>

#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {

/// `lockstep kernels PATH...`: what Nsight Compute measured of kernels, and what `nsys stats` sums up, over ranks.
class KernelsCommand : public Subcommand {
 public:
  const char* name() const override { return "kernels"; }
  const char* purpose() const override { return "Say what bounds kernels, from tables of ncu and nsys stats"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
  std::string page_file_;
  bool all_ = false;
  TextFlags text_;
};

}  // namespace lockstep::cli
