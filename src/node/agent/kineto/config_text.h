#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/control/api/capture.h"

namespace lockstep::agent {

/// What one process is to be told. docs/formats/kineto-ipc.md has the keys.
struct ConfigRequest {
  control::CaptureWindow window;
  control::CaptureOptions options;
  std::string log_file;            ///< As the process sees it; CheckLogFile must accept it.
  std::string trace_id;            ///< [A-Za-z0-9_-]{1,64}; newer versions write it into the trace's header.
  std::string group_id = {};       ///< The same alphabet, or empty.
  std::string torch_version = {};  ///< "2.13.0+cpu"; empty: unknown, and only what every version knows is sent.
  bool device_traced = false;      ///< Decides the warm-up where the window leaves it open: 5 s, else 1 s.
};

/// The text for a process: KEY=VALUE lines, each key once, every value checked or a number. Errors: kInvalidArgument
/// names the field (a length, a path, an id, an activity that this version of PyTorch would refuse the whole request
/// for).
Result<std::string> BuildConfigText(const ConfigRequest& request);

/// Warm-up that BuildConfigText asks for.
int64_t WarmupNs(const control::CaptureWindow& window, bool device_traced);

/// A path that Kineto takes as it is: absolute, at most 1000 characters of [A-Za-z0-9._/+@:,-], no empty part, no ".."
/// or ".", ".json" at its end and nowhere before. Errors: kInvalidArgument.
Status CheckLogFile(std::string_view log_file);

/// Where Kineto puts the finished trace: "_PID" goes before the first ".pt.trace.json", or else the first ".json".
/// While it is written it has ".tmp" behind. `client_pid` is the process's id in its own pid namespace.
std::string FinalTracePath(std::string_view log_file, int32_t client_pid);

/// Whether a version of PyTorch ("2.6.0+cu124"; empty: unknown) takes this name in ACTIVITY_TYPES.
bool KnowsActivity(std::string_view torch_version, std::string_view activity);

/// The allowed part of a configuration text that another program wrote.
struct ForeignConfig {
  control::CaptureWindow window;
  control::CaptureOptions options;
  std::string log_file;                        ///< Empty where the text has none; NOT checked.
  std::vector<std::string> ignored_keys = {};  ///< At most 16; what this daemon does not pass on.
};

/// Reads a text as Kineto would (comments, blanks, later lines win), but refuses where Kineto would silently drop the
/// request. Texts over 16 KiB are refused. Errors: kInvalidArgument with the line; kUnsupported for a memory snapshot.
Result<ForeignConfig> ReadConfigText(std::string_view text);

}  // namespace lockstep::agent
