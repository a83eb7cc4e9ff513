#include <fmt/format.h>

#include "inside/launch/script/script_parts.h"

namespace lockstep::launch {

std::string SlurmScript(const JobRequest& request) {
  const bool is_torchrun = request.starter == RankStarter::kTorchrun;
  const int64_t tasks_per_node = is_torchrun ? 1 : request.ranks_per_node;
  std::string text = "#!/bin/bash\n";
  const auto directive = [&text](const std::string& line) { text += "#SBATCH " + line + "\n"; };
  directive("--job-name=" + request.name);
  directive(fmt::format("--nodes={}", request.nodes));
  directive(fmt::format("--ntasks-per-node={}", tasks_per_node));
  if (request.gpus_per_node > 0) directive(fmt::format("--gpus-per-node={}", request.gpus_per_node));
  if (request.cpus_per_rank > 0) {
    directive(fmt::format("--cpus-per-task={}", request.cpus_per_rank * request.ranks_per_node / tasks_per_node));
  }
  directive("--time=" + ClockTime(request.time_s));
  if (!request.queue.empty()) directive("--partition=" + request.queue);
  if (!request.account.empty()) directive("--account=" + request.account);
  if (!request.constraint.empty()) directive("--constraint=" + request.constraint);
  directive("--output=%x-%j.out");
  if (const int64_t warning_s = WarningSeconds(request); warning_s > 0) {
    text += "# Before the limit, ranks are told to end: a killed tool writes no report.\n";
    directive(fmt::format("--signal=INT@{}", warning_s));
  }
  text += Purpose(request, "sbatch FILE") + "\n" + Preparation(request, "$SLURM_JOB_ID");
  text += "\n# srun sets neither of these.\n";
  text += "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n";
  text += "MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))\nexport MASTER_ADDR MASTER_PORT\n\n";
  text += "# --kill-on-bad-exit: where one task fails, the others wait for it for ever.\n";
  text += ShellcheckLine(request);
  text += fmt::format("srun --kill-on-bad-exit=1 --ntasks-per-node={} \\\n  ", tasks_per_node);
  if (is_torchrun) text += Torchrun(request, "\"$SLURM_JOB_NUM_NODES\"", "\"$SLURM_JOB_ID\"");
  return text + WrappedCommand(request, is_torchrun ? Launcher::kTorchrun : Launcher::kSlurm) + "\n" + Ending(request);
}

}  // namespace lockstep::launch
