#pragma once

#include <string>
#include <vector>

#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep open TRACE`: hands a timeline to Perfetto's page in the browser.
class OpenCommand : public Subcommand {
 public:
  const char* name() const override { return "open"; }
  const char* purpose() const override {
    return "Open a trace, or a job's merged timeline, in Perfetto in the browser";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  /// The one file that Perfetto can read as it is, or empty.
  std::string SingleFile() const;
  Result<std::string> Merge(const std::string& folder, bool* partial, Console& console);
  Result<int> Serve(const std::string& file, bool partial, Console& console) const;

  std::vector<std::string> paths_;
  uint16_t port_ = 9001;
  std::string origin_ = "https://ui.perfetto.dev";
  bool keep_ = false;
  bool browser_ = false;
  bool quiet_ = false;
  RunInput input_;
};

}  // namespace lockstep::cli
