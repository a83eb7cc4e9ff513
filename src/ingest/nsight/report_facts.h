#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/nsight/database.h"
#include "ingest/nsight/rank_environment.h"
#include "ingest/nsight/report_notes.h"
#include "model/run.h"

namespace lockstep::ingest::nsight {

/// A report's metadata: its machine and its start. Of the environment it holds, only what ReadLaunch asks for
/// is ever looked at.
struct ReportFacts {
  std::string product_version;  ///< "2023.4.4.54", or empty.
  std::string schema_version;   ///< "3.7.2", or empty.
  std::string host;
  std::optional<int64_t> base_ns = {};  ///< What makes its times Unix time; absent when it does not say.
  LaunchFacts launch;                   ///< Of the process that nsys started.
  ProcessLaunches launches = {};        ///< Of every process, where the file says.
  bool asked_for_cuda = false;          ///< The capture's options name CUDA.
  bool asked_for_kernels_in_graphs = true;
  std::vector<model::Device> devices;                    ///< Of the machine.
  std::map<int64_t, std::vector<model::Device>> by_pid;  ///< As one process numbers them.
  /// What hardware metrics call the device that process `pid` calls `ordinal`; the ordinal where the report is silent.
  int64_t SampledGpuOf(int64_t pid, int32_t ordinal) const;
  /// The machine's ordinal of a device by what hardware metrics call it; the same number where the report is silent.
  int32_t OrdinalOf(int64_t sampled_gpu) const;
  std::map<std::pair<int64_t, int32_t>, int64_t> sampled_by_pid;  ///< (pid, ordinal) -> TARGET_INFO_GPU.pwGpuId.
  std::map<int32_t, int64_t> sampled;                             ///< The machine's ordinal -> the same.
};

ReportFacts ReadFacts(const Database& database, ReportNotes* notes);

}  // namespace lockstep::ingest::nsight
