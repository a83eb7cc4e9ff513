#include "inside/launch/script/mpi_launch.h"

#include <fmt/format.h>

namespace lockstep::launch {

std::string MpiLauncher(const JobRequest& request, int64_t per_node, const std::string& hostfile) {
  const int64_t ranks = request.nodes * per_node;
  switch (request.mpi) {
    case MpiFlavour::kPals:
      return fmt::format("mpiexec -n {} --ppn {} --hostfile {} \\\n  ", ranks, per_node, hostfile);
    case MpiFlavour::kMpich: return fmt::format("mpiexec -n {} -ppn {} -f {} \\\n  ", ranks, per_node, hostfile);
    case MpiFlavour::kOpenMpi: break;
  }
  std::string variables = "-x PATH -x LD_LIBRARY_PATH -x MASTER_ADDR -x MASTER_PORT";
  if (!request.tool.empty()) variables += " -x TMPDIR";
  for (const std::string& variable : request.environment) variables += " -x " + variable.substr(0, variable.find('='));
  return fmt::format("mpirun -np {} --hostfile {} --map-by ppr:{}:node \\\n  {} \\\n  ", ranks, hostfile, per_node,
                     variables);
}

Launcher MpiStarter(MpiFlavour flavour) {
  switch (flavour) {
    case MpiFlavour::kPals: return Launcher::kPals;
    case MpiFlavour::kMpich: return Launcher::kHydra;
    case MpiFlavour::kOpenMpi: break;
  }
  return Launcher::kOpenMpi;
}

std::string MpiStart(const JobRequest& request, const std::string& hostfile, const std::string& id) {
  const bool is_torchrun = request.starter == RankStarter::kTorchrun;
  std::string text = "\n# The first host; in a hostfile of Open MPI's, \"slots=\" may stand behind it.\n";
  text += fmt::format(
      "MASTER_ADDR=$(awk 'NF {{ print $1; exit }}' {})\nMASTER_PORT=${{MASTER_PORT:-29500}}\nexport MASTER_ADDR "
      "MASTER_PORT\n\n",
      hostfile);
  if (request.mpi == MpiFlavour::kOpenMpi)
    text += "export LD_LIBRARY_PATH=\"${LD_LIBRARY_PATH:-}\"  # mpirun -x wants it set.\n";
  text += ShellcheckLine(request);
  text += MpiLauncher(request, is_torchrun ? 1 : request.ranks_per_node, hostfile);
  if (is_torchrun) text += Torchrun(request, fmt::format("{}", request.nodes), id);
  return text + WrappedCommand(request, is_torchrun ? Launcher::kTorchrun : MpiStarter(request.mpi)) + "\n" +
         Ending(request);
}

}  // namespace lockstep::launch
