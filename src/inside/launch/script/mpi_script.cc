#include <fmt/format.h>

#include "inside/launch/script/mpi_launch.h"

namespace lockstep::launch {

std::string MpiScript(const JobRequest& request) {
  std::string text =
      "#!/bin/bash\n" + Purpose(request, "bash FILE [HOSTFILE], on a host from which mpirun reaches the others");
  text += "\nHOSTFILE=${1:-hostfile}  # A host a line.\n";
  text +=
      "if [ ! -r \"$HOSTFILE\" ]; then\n  echo \"$0: cannot read $HOSTFILE: give a file with a host a line\" >&2\n  "
      "exit 2\nfi\n\n";
  text += Preparation(request, "$(date -u +%Y%m%dT%H%M%SZ)");
  text += MpiStart(request, "\"$HOSTFILE\"", "lockstep");
  return text;
}

}  // namespace lockstep::launch
