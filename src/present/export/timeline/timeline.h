#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/critical_path/critical_path.h"
#include "base/result.h"
#include "model/run.h"
#include "present/export/timeline/rank_logs.h"

namespace lockstep::timeline {

/// How the merged timeline is written.
enum class Format : uint8_t {
  kPerfetto,    ///< One file of Perfetto packets (protobuf), all ranks: .pftrace
  kChromeJson,  ///< Chrome's trace event format, all ranks: .json, .json.gz
  kArchive,     ///< A tar of one Perfetto file per rank and the manifest that joins them: .tar
};

/// Format and compression that a file's name asks for: .pftrace, .perfetto-trace, .pb, each also with .gz; .json,
/// .json.gz; .tar. Errors: kInvalidArgument for any other ending (the message lists these).
struct OutputKind {
  Format format = Format::kPerfetto;
  bool gzip = false;
};
Result<OutputKind> KindOfOutput(const std::string& path);

/// What of the run is written. Empty lists and absent ends mean all of it.
struct Selection {
  std::vector<std::pair<int32_t, int32_t>> ranks = {};  ///< Closed ranges.
  std::vector<std::pair<int64_t, int64_t>> steps = {};  ///< Closed ranges of step numbers.
  std::optional<int64_t> from_ns = {};                  ///< After the start of the run, aligned clock.
  std::optional<int64_t> to_ns = {};                    ///< Exclusive.
  std::vector<model::Lane> lanes = {};                  ///< Lanes that are written; empty: every lane.
  bool flows = true;
};

struct Options {
  Selection selection = {};
  std::string step_name = {};  ///< As in AnalysisOptions.
  std::string version = {};    ///< Of lockstep, for the file's metadata.
  /// Adds a track "critical path" to each rank that it runs through; the caller's.
  const analysis::CriticalPath* critical_path = nullptr;
  /// Adds a track "log" to each rank that has lines; the caller's.
  const RankLogs* logs = nullptr;
  /// Called from time to time, and at the end, with the share of events done, 0..1.
  std::function<void(double)> on_progress = {};
};

/// What was written.
struct Summary {
  uint64_t file_bytes = 0;
  std::vector<int32_t> ranks = {};  ///< Sorted, distinct.
  uint64_t process_count = 0;       ///< Rank windows.
  uint64_t track_count = 0;         ///< With events; steps and memory count too.
  uint64_t slice_count = 0;         ///< Events of the run; step markers do not count.
  uint64_t moved_slice_count = 0;  ///< Of these, on extra tracks because they overlap others of their stream or thread.
  uint64_t step_count = 0;         ///< Step markers.
  uint64_t memory_count = 0;       ///< Allocator events.
  uint64_t counter_value_count = 0;      ///< Samples of counters.
  uint64_t log_line_count = 0;           ///< Lines of logs.
  uint64_t flow_count = 0;               ///< Launches joined with their device event.
  uint64_t collective_flow_count = 0;    ///< Collectives joined across ranks.
  uint64_t request_count = 0;            ///< Requests that the program served.
  uint64_t link_flow_count = 0;          ///< Spans and requests joined with those that they called.
  uint64_t backward_link_count = 0;      ///< Not joined: the called one began first, by these clocks.
  uint64_t left_out_slice_count = 0;     ///< Events that the selection left out.
  std::optional<int64_t> first_ns = {};  ///< Aligned clock, of what was written.
  std::optional<int64_t> last_ns = {};
};

/// Writes the run to `path` on one clock: `run` has aligned clocks, `collectives` are those of the same analysis. The
/// file appears whole or not at all: it is written beside `path` under another name and renamed at the end.
/// Selection: a CPU event belongs to the step in which it starts; device events to the step's stretched window
/// (docs/metrics.md#step-windows). What was selected is written whole, never cut.
/// Errors: kInvalidArgument when the selection names ranks or steps that are not there (the message says what is);
/// kIo when the file cannot be written. Cost: one pass over the events; memory: tables of one rank at a time.
/// Format: docs/formats/perfetto.md.
Result<Summary> WriteTimeline(const model::Run& run, const analysis::Collectives& collectives, const std::string& path,
                              const OutputKind& kind, const Options& options);

}  // namespace lockstep::timeline
