#pragma once

#include <string>
#include <vector>

#include "bench_program/bench_program.h"
#include "cli/subcommand.h"
#include "collective_bench/plan.h"
#include "launch/rank_environment.h"

namespace lockstep::cli {

/// `lockstep bench collectives`: becomes the program that measures, once per rank where a launcher started us so, else
/// what starts the ranks. `lockstep bench show FILE -o PAGE` draws what was measured.
class BenchCommand : public Subcommand {
 public:
  const char* name() const override { return "bench"; }
  const char* purpose() const override { return "Measure collectives by size: time, algbw, busbw, slow links"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Result<collective_bench::Plan> MakePlan() const;
  Result<bench_program::Words> MakeWords() const;
  /// Whether this process is a rank that its launcher's variables bring to the others, rather than MPI.
  Result<bool> MeetsByEnvironment(const launch::RankIdentity& identity) const;
  /// What to become.
  Result<std::vector<std::string>> CommandLine() const;

  std::vector<std::string> words_;
  int rank_count_ = 0;
  std::string launcher_;
  std::string backend_ = "mpi";
  std::string bootstrap_;
  std::string nccl_library_;
  int timeout_seconds_ = 300;
  std::string sizes_;
  std::string least_;
  std::string most_;
  double factor_ = 2;
  std::string type_ = "float32";
  std::string reduction_ = "sum";
  int root_ = 0;
  int iterations_ = 20;
  int warmup_ = 5;
  bool no_check_ = false;
  bool no_in_place_ = false;
  bool pairs_ = false;
  bool json_ = false;
  std::string csv_file_;
  std::string page_file_;
};

}  // namespace lockstep::cli
