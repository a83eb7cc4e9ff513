#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inside/launch/script/job_script.h"
#include "programs/cli/run/profile_flags.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

/// `lockstep script slurm|pbs|mpi|k8s [flags] -- CMD...`: a job script around `lockstep run`, on standard output.
class ScriptCommand : public Subcommand {
 public:
  const char* name() const override { return "script"; }
  const char* purpose() const override {
    return "Write a job script that runs a job under a profiler: SLURM, PBS, MPI, Kubernetes";
  }
  void Declare(CLI::App& app) override;
  bool TakesCommandLine() const override { return true; }
  void SetCommandLine(std::vector<std::string> words) override { command_ = std::move(words); }
  Result<int> Run(Console& console) override;

 private:
  Result<launch::JobRequest> ReadFlags() const;

  ProfileFlags profile_flags_;
  launch::JobRequest request_;
  std::string kind_;
  std::string time_;
  std::string starter_;
  std::string mpi_;
  int64_t ranks_per_node_ = 0;
  std::vector<std::string> command_;
};

}  // namespace lockstep::cli
