#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "python/loaded_run.h"

namespace lockstep::python {

/// LoadedRun::Load on a thread of its own, while the calling thread, with the interpreter's lock given up in between,
/// looks for signals and calls `on_progress` (None, or a callable of consumed_bytes, total_bytes, json_bytes,
/// event_count, finished_file_count, file_count) about ten times a second. An exception of either (KeyboardInterrupt)
/// ends the reading and is passed on. Called with the interpreter's lock held.
std::shared_ptr<LoadedRun> LoadInterruptibly(const std::vector<std::string>& paths, LoadOptions options,
                                             const pybind11::object& on_progress);

}  // namespace lockstep::python
