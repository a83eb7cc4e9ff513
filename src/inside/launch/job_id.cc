#include "inside/launch/job_id.h"

#include "base/launchers/launchers.h"

namespace lockstep::launch {

std::string JobId(const Environment& environment) {
  for (const char* name : launchers::JobVariables()) {
    if (!environment.Get(name).empty()) return std::string(environment.Get(name));
  }
  return {};
}

}  // namespace lockstep::launch
