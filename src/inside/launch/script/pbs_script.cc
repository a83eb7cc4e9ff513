#include <fmt/format.h>

#include "inside/launch/script/mpi_launch.h"

namespace lockstep::launch {

std::string PbsScript(const JobRequest& request) {
  std::string text = "#!/bin/bash -l\n";
  const auto directive = [&text](const std::string& line) { text += "#PBS " + line + "\n"; };
  directive("-N " + request.name);
  std::string select = fmt::format("select={}", request.nodes);
  if (request.cpus_per_rank > 0) select += fmt::format(":ncpus={}", request.cpus_per_rank * request.ranks_per_node);
  select += fmt::format(":mpiprocs={}", request.ranks_per_node);
  if (request.gpus_per_node > 0) select += fmt::format(":ngpus={}", request.gpus_per_node);
  if (!request.constraint.empty()) select += ":" + request.constraint;
  directive("-l " + select);
  directive("-l place=scatter");
  directive("-l walltime=" + ClockTime(request.time_s));
  if (!request.filesystems.empty()) directive("-l filesystems=" + request.filesystems);
  if (!request.queue.empty()) directive("-q " + request.queue);
  if (!request.account.empty()) directive("-A " + request.account);
  directive("-j oe");
  text += Purpose(request, "qsub FILE") + "\ncd \"$PBS_O_WORKDIR\" || exit 1\n\n";
  text += Preparation(request, "${PBS_JOBID%%.*}");
  text += MpiStart(request, "\"$PBS_NODEFILE\"", "\"$PBS_JOBID\"");
  return text;
}

}  // namespace lockstep::launch
