#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "programs/python/loaded_run.h"

namespace lockstep::python {

/// Runs `work` on a thread of its own while the calling thread, with the interpreter's lock given up in between, looks
/// for signals and calls `tick` (with the lock held) about ten times a second and once at the end. When either raises,
/// `cancel` is called (without the lock) until the work has ended, and the exception is passed on; else what the work
/// threw is. Called with the interpreter's lock held.
void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& tick,
                      const std::function<void()>& cancel);

/// LoadedRun::Load in that way. `on_progress` is None, or a callable of consumed_bytes, total_bytes, json_bytes,
/// event_count, finished_file_count, file_count.
std::shared_ptr<LoadedRun> LoadInterruptibly(const std::vector<std::string>& paths, LoadOptions options,
                                             const pybind11::object& on_progress);

/// LoadedRun::Query in that way.
std::shared_ptr<const Table> QueryInterruptibly(LoadedRun* run, const std::string& sql,
                                                const query::QueryLimits& limits);

}  // namespace lockstep::python
