#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest::nsight {

/// What `lockstep run --profile` wrote down of the rank whose report lies beside it.
struct LaunchManifest {
  int32_t rank = 0;
  std::optional<int32_t> world_size = {};
  std::string host;                ///< Empty when it does not say.
  std::vector<std::string> files;  ///< Names of the reports, without folders.
};

/// Reads one line of JSON: docs/formats/launch-manifest.md. Absent when it is none, or says nothing that can be.
std::optional<LaunchManifest> ParseLaunchManifest(std::string_view text);

/// Gives a report its rank, world size and host from the manifest beside it (NAME.launch beside NAME.nsys-rep or
/// NAME.sqlite), which was there when the rank was started and is believed first. Ledger: "rank_disagreement". Reports
/// of several ranks are left as they are.
void TakeLaunchManifest(const std::string& report_path, std::vector<TraceContent>* contents);

}  // namespace lockstep::ingest::nsight
