#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "analysis/rank_context.h"
#include "present/live_site/own_prometheus.h"
#include "programs/cli/node_flags.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/ending_signals.h"

namespace lockstep::cli {

/// `lockstep serve --host ... | --job ID`: what jobs do now, in the browser.
class ServeLive {
 public:
  void Declare(CLI::App& app);
  /// Whether nodes were named.
  bool is_given() const { return nodes_.is_given(); }

  struct Options {
    uint16_t port = 0;
    bool browser = false;
    bool quiet = false;
    analysis::AnalysisOptions analysis = {};  ///< Of captures.
  };
  Result<int> Run(const Options& options, Console& console);

 private:
  Status ReadFlags();
  Result<std::unique_ptr<live_site::OwnPrometheus>> StartPrometheus(const jobs::Nodes& nodes,
                                                                    const EndingSignals& signals) const;

  NodeFlags nodes_;
  std::string folder_ = ".";
  bool with_prometheus_ = false;
  std::string prometheus_url_;
  std::string prometheus_data_;
  std::string prometheus_rules_;
  std::string prometheus_interval_ = "15s";
  int64_t prometheus_interval_ns_ = 0;
};

}  // namespace lockstep::cli
