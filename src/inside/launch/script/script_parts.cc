#include "inside/launch/script/script_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "inside/launch/shell_words.h"

namespace lockstep::launch {
namespace {

constexpr int64_t kWarning_s = 120;
constexpr size_t kMostRanksNamed = 16;

// "2 of 8: 0, 4". By blocks of ranks on nodes, as all launchers give them out without being told otherwise.
std::string ChosenRanks(const JobRequest& request) {
  const int64_t world_size = request.nodes * request.ranks_per_node;
  std::vector<int64_t> chosen;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    RankIdentity identity{.launcher = Launcher::kTorchrun};
    identity.rank = static_cast<int32_t>(rank);
    identity.local_rank = static_cast<int32_t>(rank % request.ranks_per_node);
    identity.node = static_cast<int32_t>(rank / request.ranks_per_node);
    if (request.ranks.Selects(identity, "").value_or(false)) chosen.push_back(rank);
  }
  if (request.ranks.text().find("host:") != std::string::npos)
    return fmt::format("those that --ranks {} chooses", request.ranks.text());
  const std::vector<int64_t> named(
      chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(std::min(chosen.size(), kMostRanksNamed)));
  return fmt::format("{} of {}: {}{}", chosen.size(), world_size, fmt::join(named, ", "),
                     named.size() < chosen.size() ? ", ..." : "");
}

}  // namespace

std::string ClockTime(int64_t seconds) {
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

int64_t WarningSeconds(const JobRequest& request) {
  return request.tool.empty() ? 0 : std::min(kWarning_s, request.time_s / 4);
}

std::string Purpose(const JobRequest& request, const std::string& how_to_submit) {
  std::string text = fmt::format(
      "# {} nodes x {} ranks, started by {}. Submit: {}\n", request.nodes, request.ranks_per_node,
      request.starter == RankStarter::kTorchrun ? "torchrun on each node" : "the launcher itself", how_to_submit);
  if (!request.tool.empty()) {
    text += fmt::format("# Ranks under {}: {}. Each writes a report and a manifest; the others run as they are.\n",
                        request.tool, ChosenRanks(request));
    text += "# Then: lockstep analyze the reports' folder.\n";
  }
  return text + "# Written by lockstep script; meant to be changed.\n";
}

std::string Preparation(const JobRequest& request, const std::string& job_id) {
  std::string text = "set -u  # Not -e: after a job that failed, its reports are still listed.\n\n";
  for (const std::string& module : request.modules) text += fmt::format("module load {}\n", ShellWord(module));
  for (const std::string& variable : request.environment) {
    const size_t equals = variable.find('=');
    text += fmt::format("export {}={}\n", variable.substr(0, equals), ShellWord(variable.substr(equals + 1)));
  }
  if (!request.modules.empty() || !request.environment.empty()) text += '\n';
  text += fmt::format("LOCKSTEP={}  # The same path on all nodes.\n", ShellWord(request.lockstep));
  if (request.tool.empty()) return text;
  text += "# Where reports go: a folder that all nodes see.\n";
  text += request.out.empty() ? fmt::format("OUT=lockstep-{}-{}\n", request.tool, job_id)
                              : fmt::format("OUT={}\n", ShellWord(request.out));
  text += fmt::format(
      "# {} keeps gigabytes here while it records: a disk of the node, not of the network.\nexport "
      "TMPDIR=\"${{TMPDIR:-/tmp}}\"\n",
      request.tool);
  return text;
}

std::string WrappedCommand(const JobRequest& request, Launcher starter) {
  std::string text = "\"$LOCKSTEP\" " + ShellLine(request.run_words);
  if (!request.tool.empty()) text += " --out \"$OUT\"";
  text += " -- \\\n  ";
  if (starter != Launcher::kTorchrun) {
    // PyTorch's env:// wants torchrun's names. Behind lockstep, which goes by the launcher's own.
    const launchers::LauncherRow& row = launchers::RowOf(starter);
    // In a step that the script starts SLURM_STEP_NUM_TASKS is the same; this is the one that people know.
    const std::string_view size = starter == Launcher::kSlurm ? "SLURM_NTASKS" : launchers::FirstName(row.world_size);
    text += fmt::format("bash -c 'export RANK=${} WORLD_SIZE=${} LOCAL_RANK=${}; exec \"$@\"' bash \\\n  ", row.rank,
                        size, launchers::FirstName(row.local_rank));
  }
  return text + ShellLine(request.command);
}

std::string ShellcheckLine(const JobRequest& request) {
  return request.starter == RankStarter::kDirect
             ? "# Each rank puts in its own variables.\n# shellcheck disable=SC2016\n"
             : "";
}

std::string Torchrun(const JobRequest& request, const std::string& node_count, const std::string& id) {
  return fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} \\\n  --rdzv-backend c10d --rdzv-endpoint "
      "\"$MASTER_ADDR:$MASTER_PORT\" --rdzv-id {} \\\n  --no-python ",
      node_count, request.ranks_per_node, id);
}

std::string Ending(const JobRequest& request) {
  std::string text = "status=$?\n\n";
  if (!request.tool.empty()) text += "ls -l \"$OUT\"\n";
  return text + "exit $status\n";
}

}  // namespace lockstep::launch
