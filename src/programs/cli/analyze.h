#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "present/page/page_limits.h"
#include "present/report/report.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep analyze PATH...`: reads the traces of a job, runs the passes, prints the report.
class AnalyzeCommand : public Subcommand {
 public:
  const char* name() const override { return "analyze"; }
  const char* purpose() const override {
    return "Say where the time of a training job went, and which rank holds it up";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  void DeclareOutput(CLI::App& app);
  void DeclareAnalysis(CLI::App& app);
  Status CheckNames() const;
  Status CheckPageFile() const;
  Status WritePage(const model::Run& run, const analysis::AnalysisResult& result, bool partial, Console& console);
  int ListPasses(Console& console) const;
  Status CheckSelection(const model::Run& run, const analysis::AnalysisResult& result) const;
  Status Write(const model::Run& run, const analysis::AnalysisResult& result, bool partial, Console& console) const;
  void WriteTimings(const model::Run& run, const analysis::AnalysisResult& result, Console& console) const;
  int ExitStatusOf(const analysis::AnalysisResult& result, bool partial) const;

  std::vector<std::string> paths_;
  bool json_ = false;
  std::string format_ = "text";
  std::string page_file_;
  uint64_t page_bytes_ = page::kDefaultPageBytes;
  std::string csv_folder_;
  std::vector<std::string> sections_;
  uint64_t top_ = 10;
  std::optional<int32_t> rank_;
  std::optional<int64_t> step_;
  int width_ = 0;
  std::string colour_ = "auto";
  bool no_colour_ = false;
  bool ascii_ = false;
  bool quiet_ = false;
  bool timings_ = false;
  bool list_ = false;
  std::string fabric_file_;
  bool what_if_ = false;
  double what_if_speedup_ = 2;
  std::vector<std::string> passes_;
  std::optional<std::string> range_name_;
  int64_t range_instance_ = 0;
  std::string fail_on_;
  double analysis_wall_s_ = 0;
  double ingest_wall_s_ = 0;
  double page_wall_s_ = 0;
  RunInput input_;
};

}  // namespace lockstep::cli
