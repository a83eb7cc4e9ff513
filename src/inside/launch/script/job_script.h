#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inside/launch/rank_filter.h"

namespace lockstep::launch {

enum class ScriptKind : uint8_t { kSlurm, kPbs, kMpi, kKubernetes };
enum class RankStarter : uint8_t { kTorchrun, kDirect };  ///< torchrun on each node, or the launcher itself.
enum class MpiFlavour : uint8_t { kPals, kOpenMpi, kMpich };

/// A job to write a script for.
struct JobRequest {
  ScriptKind kind = ScriptKind::kSlurm;
  std::string name = {};
  int64_t nodes = 1;
  int64_t gpus_per_node = 0;
  int64_t ranks_per_node = 1;
  int64_t cpus_per_rank = 0;  ///< 0: the site's own choice.
  int64_t time_s = 0;
  std::string queue = {};
  std::string account = {};
  std::string filesystems = {};  ///< "home:eagle", of PBS sites that ask for them.
  std::string constraint = {};   ///< SLURM's, or a part of PBS' select ("system=polaris").
  std::string image = {};        ///< Kubernetes: with lockstep, the tool and the program in it.
  std::string claim = {};        ///< Kubernetes: a claim of storage that all pods can write.
  std::vector<std::string> modules = {};
  std::vector<std::string> environment = {};  ///< "NAME=value".
  RankStarter starter = RankStarter::kTorchrun;
  MpiFlavour mpi = MpiFlavour::kPals;
  std::string lockstep = {};  ///< Its path.
  std::string tool = {};      ///< "nsys", "ncu"; empty: no reports come.
  std::string out = {};       ///< Folder of the reports; empty: by the job's id.
  RankFilter ranks;
  std::vector<std::string> run_words = {};  ///< "run", "--profile", "nsys", ..., without --out.
  std::vector<std::string> command = {};
};

/// The whole script, commented. Errors: kInvalidArgument for what this kind of job cannot have.
Result<std::string> WriteJobScript(const JobRequest& request);

// Its kinds: slurm_script.cc, pbs_script.cc, mpi_script.cc, kubernetes_script.cc.
std::string SlurmScript(const JobRequest& request);
std::string PbsScript(const JobRequest& request);
std::string MpiScript(const JobRequest& request);
std::string KubernetesScript(const JobRequest& request);

}  // namespace lockstep::launch
