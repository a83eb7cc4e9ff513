#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "inside/launch/script/job_script.h"
#include "programs/cli/cli.h"
#include "programs/cli/run/profile_flags.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {
namespace {

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

constexpr int64_t kMostNodes = 100'000;
constexpr int64_t kMostPerNode = 1024;

constexpr const char* kScriptFooter =
    "The script goes to standard output: redirect it, read it, change it. It starts torchrun on\n"
    "each node if CMD is Python, else CMD itself, with 'lockstep run' and its profiler flags\n"
    "in front of each rank (docs/launch.md#scripts).\n"
    "Exit status: 0 written; 2 misused.\n"
    "\n"
    "Examples:\n"
    "  lockstep script slurm --nodes 2 --gpus-per-node 4 --time 0:05:00 --profile nsys \\\n"
    "    --ranks per-node:1 -- python train.py > job.sh && sbatch job.sh\n"
    "  lockstep script pbs --nodes 2 --gpus-per-node 4 --time 0:05:00 --queue debug \\\n"
    "    --account proj --filesystems home:eagle --profile nsys -- python train.py > job.pbs";

const std::map<std::string, launch::ScriptKind> kKinds = {{"slurm", launch::ScriptKind::kSlurm},
                                                          {"pbs", launch::ScriptKind::kPbs},
                                                          {"mpi", launch::ScriptKind::kMpi},
                                                          {"k8s", launch::ScriptKind::kKubernetes}};
const std::map<std::string, launch::RankStarter> kStarters = {{"torchrun", launch::RankStarter::kTorchrun},
                                                              {"direct", launch::RankStarter::kDirect}};
const std::map<std::string, launch::MpiFlavour> kFlavours = {{"pals", launch::MpiFlavour::kPals},
                                                             {"openmpi", launch::MpiFlavour::kOpenMpi},
                                                             {"mpich", launch::MpiFlavour::kMpich}};

template <typename T>
Result<T> FoundByName(const std::map<std::string, T>& known, const char* flag, const std::string& name) {
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  std::string list;
  for (const auto& [each, value] : known) {
    names.push_back(each);
    list += (list.empty() ? "" : ", ") + each;
  }
  return Misuse(fmt::format("{}'{}': expected one of {}{}", flag, name, list, DidYouMean(name, names)));
}

// "0:05:00", "5:00", "90:00": hours, minutes, seconds; the last two always.
std::optional<int64_t> ClockSeconds(std::string_view text) {
  int64_t seconds = 0;
  int parts = 0;
  while (true) {
    const std::string_view part = text.substr(0, text.find(':'));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (part.empty() || error != std::errc() || end != part.data() + part.size() || number < 0 || number > 100'000)
      return std::nullopt;
    if (parts > 0 && number > 59) return std::nullopt;
    seconds = seconds * 60 + number;
    ++parts;
    if (part.size() == text.size()) break;
    text.remove_prefix(part.size() + 1);
  }
  return parts == 2 || parts == 3 ? std::optional(seconds) : std::nullopt;
}

bool IsPython(const std::string& program) {
  return std::filesystem::path(program).filename().string().starts_with("python");
}

void ScriptCommand::Declare(CLI::App& app) {
  app.option_defaults()->group("Job");
  app.add_option("kind", kind_, "The kind of job script")->type_name("slurm|pbs|mpi|k8s")->required();
  app.add_option("--nodes", request_.nodes, "Number of nodes (1)")->type_name("N");
  app.add_option("--gpus-per-node", request_.gpus_per_node, "GPUs of each node (0)")->type_name("N");
  app.add_option("--ranks-per-node", ranks_per_node_, "Ranks on each node (as many as GPUs; 1 without)")
      ->type_name("N");
  app.add_option("--cpus-per-rank", request_.cpus_per_rank, "Processor cores of each rank (the site's default)")
      ->type_name("N");
  app.add_option("--time", time_, "Time limit, as [H:]MM:SS (0:10:00)")->type_name("TIME");
  app.add_option("--queue", request_.queue, "Queue; SLURM: partition; Kubernetes: Kueue's")->type_name("NAME");
  app.add_option("--account", request_.account, "Who pays")->type_name("NAME");
  app.add_option("--filesystems", request_.filesystems, "PBS: the file systems that the job needs, as in home:eagle")
      ->type_name("LIST");
  app.add_option("--constraint", request_.constraint,
                 "SLURM: features of nodes; PBS: a part of select, as in system=polaris")
      ->type_name("TEXT");
  app.add_option("--module", request_.modules, "A module to load (repeatable)")->type_name("NAME");
  app.add_option("--env", request_.environment, "A variable to set (repeatable)")->type_name("NAME=VALUE");
  app.add_option("--job-name", request_.name, "Name of the job (the program's)")->type_name("NAME");
  app.add_option("--start", starter_, "How ranks are started (torchrun where CMD is Python)")
      ->type_name("torchrun|direct");
  app.add_option("--mpi", mpi_, "PBS, MPI: which mpiexec (PBS: pals; mpi: openmpi)")->type_name("pals|openmpi|mpich");
  app.add_option("--image", request_.image, "Kubernetes: the container's image")->type_name("NAME");
  app.add_option("--claim", request_.claim, "Kubernetes: a persistent volume claim for the reports")->type_name("NAME");
  app.add_option("--lockstep", request_.lockstep, "Path of lockstep on the nodes (this program's)")->type_name("PATH");
  profile_flags_.Declare(app);
  app.footer(kScriptFooter);
}

Result<launch::JobRequest> ScriptCommand::ReadFlags() const {
  launch::JobRequest request = request_;
  request.command = command_;
  if (command_.empty()) return Misuse("script needs the job's command: lockstep script slurm [flags] -- CMD [ARG...]");
  ASSIGN_OR_RETURN(request.kind, FoundByName(kKinds, "", kind_));
  ASSIGN_OR_RETURN(const ProfileRequest profile, profile_flags_.Read());
  request.ranks = profile.filter;
  request.out = profile.out;
  if (profile.profiler == Profiler::kNsys || profile.profiler == Profiler::kNcu) request.tool = profile.tool_name();
  request.run_words = {"run"};
  for (std::string& word : profile_flags_.WordsWithoutOut()) request.run_words.push_back(std::move(word));

  if (request.nodes < 1 || request.nodes > kMostNodes)
    return Misuse(fmt::format("--nodes {}: expected 1 to {}", request.nodes, kMostNodes));
  if (request.gpus_per_node < 0 || request.gpus_per_node > kMostPerNode)
    return Misuse(fmt::format("--gpus-per-node {}: expected 0 to {}", request.gpus_per_node, kMostPerNode));
  if (request.cpus_per_rank < 0 || request.cpus_per_rank > kMostPerNode)
    return Misuse(fmt::format("--cpus-per-rank {}: expected 1 to {}", request.cpus_per_rank, kMostPerNode));
  request.ranks_per_node = ranks_per_node_ != 0 ? ranks_per_node_ : std::max<int64_t>(1, request.gpus_per_node);
  if (request.ranks_per_node < 1 || request.ranks_per_node > kMostPerNode)
    return Misuse(fmt::format("--ranks-per-node {}: expected 1 to {}", request.ranks_per_node, kMostPerNode));
  const auto seconds = ClockSeconds(time_.empty() ? "0:10:00" : time_);
  if (!seconds || *seconds < 1) return Misuse(fmt::format("--time {}: expected [H:]MM:SS", time_));
  request.time_s = *seconds;

  const bool is_python = IsPython(command_[0]);
  ASSIGN_OR_RETURN(request.starter,
                   FoundByName(kStarters, "--start ",
                               !starter_.empty()                                              ? starter_
                               : is_python || request.kind == launch::ScriptKind::kKubernetes ? "torchrun"
                                                                                              : "direct"));
  ASSIGN_OR_RETURN(request.mpi, FoundByName(kFlavours, "--mpi ",
                                            !mpi_.empty()                              ? mpi_
                                            : request.kind == launch::ScriptKind::kPbs ? "pals"
                                                                                       : "openmpi"));
  if (!mpi_.empty() && request.kind != launch::ScriptKind::kPbs && request.kind != launch::ScriptKind::kMpi)
    return Misuse("--mpi is for pbs and mpi");
  if (request.name.empty()) {
    const std::string program =
        is_python && command_.size() > 1 && !command_[1].starts_with("-") ? command_[1] : command_[0];
    for (const char c : std::filesystem::path(program).stem().string())
      request.name += std::isalnum(static_cast<unsigned char>(c)) != 0
                          ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                          : '-';
  }
  if (request.lockstep.empty()) {
    std::error_code error;
    request.lockstep = request.kind == launch::ScriptKind::kKubernetes
                           ? "lockstep"
                           : std::filesystem::read_symlink("/proc/self/exe", error).string();
    if (request.lockstep.empty()) request.lockstep = "lockstep";
  }
  return request;
}

Result<int> ScriptCommand::Run(Console& console) {
  ASSIGN_OR_RETURN(const launch::JobRequest request, ReadFlags());
  ASSIGN_OR_RETURN(const std::string script, launch::WriteJobScript(request));
  console.out << script;
  return kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeScript() { return std::make_unique<ScriptCommand>(); }

}  // namespace lockstep::cli
