#pragma once

#include <string>
#include <vector>

#include "inside/launch/rank_environment.h"
#include "measure/runner/bench_flags.h"
#include "measure/runner/bench_program.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep bench collectives`: becomes the program that measures, once per rank where a launcher started us so, else
/// what starts the ranks. `lockstep bench show FILE -o PAGE` draws what was measured before.
class BenchCommand : public Subcommand {
 public:
  const char* name() const override { return "bench"; }
  const char* purpose() const override { return "Measure collectives by size: time, algbw, busbw, slow links"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
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
  bench_program::BenchFlags flags_;
};

}  // namespace lockstep::cli
