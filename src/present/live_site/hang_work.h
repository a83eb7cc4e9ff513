#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "present/live_site/action_desk.h"

namespace lockstep::live_site {

/// How evidence of a job is collected: what `lockstep hang` does with a job that runs.
struct HangSetup {
  /// Looks at every process of the job and says in which folder it kept what it found; `on_node` is called as nodes
  /// answer. From any thread.
  std::function<Result<std::string>(const std::string& job_id,
                                    const std::function<void(size_t done, size_t total)>& on_node)>
      collect;
};

/// An action's work: collects evidence, says what holds the job up, and has the hang page. `setup` is borrowed for the
/// life of the desk.
Action HangAction(const std::string& job_id);
ActionDesk::Work HangWork(const HangSetup& setup, std::string job_id);

}  // namespace lockstep::live_site
