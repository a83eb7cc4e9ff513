// print_inspection PID...: what InspectProcesses sees of each, one JSON object a line.
#include <cstdlib>
#include <iostream>

#include "model/evidence/inspected_process.h"
#include "node/inspect/inspect.h"

int main(int count, char** arguments) {
  std::vector<pid_t> pids;
  for (int i = 1; i < count; ++i) pids.push_back(std::atoi(arguments[i]));
  lockstep::inspect::InspectOptions options;
  options.state_window_ns = 100'000'000;
  // Here a dump with stacks is waited for, however busy the machine is.
  options.deadline_ns = 120'000'000'000;
  for (const auto& process : lockstep::inspect::InspectProcesses(pids, options))
    std::cout << lockstep::evidence::WriteInspectedProcess(process, true) << "\n";
  return 0;
}
