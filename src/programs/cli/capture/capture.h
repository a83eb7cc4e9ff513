#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/control/client/dynolog_client.h"
#include "node/control/client/job_capture.h"
#include "programs/cli/capture/capture_output.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep capture`: traces a running job on all its nodes, brings the traces here and analyses them.
class CaptureCommand : public Subcommand {
 public:
  const char* name() const override { return "capture"; }
  const char* purpose() const override { return "Trace a running PyTorch job on every node, and say what it does"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Status ReadWindow();
  Status ReadStart();
  Status ReadSelection();
  Status ReadNodes();
  Status ReadDynologNodes();
  Result<std::string> MakeFolder(const std::string& folder) const;
  Result<CaptureReport> CaptureOnce(const std::string& folder, Console& console);
  /// Reads the traces that were kept; what is damaged is noted, and with `analyse` the first screen is printed.
  Status ReadTraces(std::vector<CaptureReport>& reports, bool analyse, Console& console);

  std::string dynolog_hosts_;
  std::vector<control::DynologNode> dynolog_nodes_;  ///< Empty: the nodes' daemons are ours.
  NodeFlags node_flags_;

  std::vector<int32_t> pids_;
  std::string ranks_;
  std::string duration_ = "500ms";
  int32_t iterations_ = 0;
  std::string roundup_ = "auto";
  std::optional<int64_t> start_iteration_;
  std::string warmup_;
  std::string start_in_ = "auto";
  std::string timeout_;
  uint32_t repeat_ = 1;
  std::string every_;
  int64_t every_ns_ = 0;
  std::string folder_;
  bool no_analyze_ = false;
  bool no_compress_ = false;
  bool json_ = false;
  bool quiet_ = false;
  control::JobCaptureRequest request_;
  RunInput input_;
};

}  // namespace lockstep::cli
