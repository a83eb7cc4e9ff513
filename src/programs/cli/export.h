#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/rank_context.h"
#include "present/export/flame/flame.h"
#include "programs/cli/live/follow_job.h"
#include "programs/cli/live/follow_otlp.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep export FORMAT PATH...`: a run in the words of other tools, one nested command per format.
class ExportCommand : public Subcommand {
 public:
  const char* name() const override { return "export"; }
  const char* purpose() const override {
    return "Write a run for other tools: TensorBoard, CSV, speedscope, flame graphs, OTLP";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;

  CLI::App* Add(CLI::App& app, const char* name, const char* purpose, const char* examples);
  void DeclareSelection(CLI::App& app);
  void DeclareStacks(CLI::App& app);
  Status ReadSelection(Ranges* ranks, Ranges* steps) const;
  Result<int> RunTensorBoard(Console& console);
  Result<int> FollowTensorBoard(Console& console);
  Result<int> RunCsv(Console& console);
  using WriteStacks = Status (*)(const model::Run&, const analysis::AnalysisOptions&, const flame::Options&,
                                 std::ostream&);
  Result<int> RunStacks(const char* format, WriteStacks write, Console& console);

  Result<int> RunOtlp(Console& console);

  CLI::App* app_ = nullptr;  // the parser's, which outlives the commands' runs
  std::vector<std::string> paths_;
  std::string folder_;
  std::string output_;
  std::string ranks_;
  std::string steps_;
  std::string by_ = "host";
  std::vector<std::string> tables_;
  uint64_t top_ = 20;
  uint64_t limit_bytes_ = uint64_t{4} << 30;
  bool force_ = false;
  bool per_rank_ = false;
  bool quiet_ = false;
  RunInput input_;
  FollowJob board_follow_;
  FollowOtlp otlp_follow_;
};

}  // namespace lockstep::cli
