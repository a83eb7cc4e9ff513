#include <string_view>

#include "node/agent/daemon/daemon.h"
#include "node/agent/gpu/gpu_helper.h"

int main(int argc, char** argv) {
  // Of no use to people: the daemon starts itself so for calls into the GPUs' driver.
  if (argc > 1 && std::string_view(argv[1]) == "--gpu-helper")
    return lockstep::agent::GpuHelperMain(argc - 1, argv + 1);
  return lockstep::agent::DaemonMain(argc, argv);
}
