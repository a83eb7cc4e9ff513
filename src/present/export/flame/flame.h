#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/rank_context.h"
#include "base/result.h"
#include "model/run.h"

namespace lockstep::flame {

/// What a stack's weight is.
enum class By : uint8_t {
  kHost,    ///< Time that the thread spent in exactly this stack.
  kDevice,  ///< Time of the device events that were launched from it; the event is the last frame.
};

struct Options {
  By by = By::kHost;
  bool per_rank = false;                                ///< Collapsed: the first frame is the rank.
  std::vector<std::pair<int64_t, int64_t>> ranks = {};  ///< Closed ranges; empty: all.
  std::vector<std::pair<int64_t, int64_t>> steps = {};  ///< Closed ranges of step numbers; empty: all time.
  std::string exporter = {};                            ///< "lockstep@1.2.3", for speedscope.
};

/// Whether there is something to write. Errors: kInvalidArgument when no such rank or step is there.
Status CheckSelection(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options);

/// Stacks of CPU threads: Python frames, operators and annotations, runtime calls (kHost only), nested by time. A frame
/// that outlives the one around it is cut at its end; ranges of CPU backends' collectives, which end on other threads,
/// are left out. Device events without a launch call in the file are under "(no launch in the file)". With `steps` only
/// time (kDevice: launches) within those steps counts.
/// Folded stacks, "frame;frame;frame WEIGHT" in ns, siblings sorted by text; all ranks and threads are added up, steps
/// go by one name. In names ';' becomes ':' and line breaks become spaces. Errors: those of CheckSelection. Cost:
/// O(events); memory: a node per distinct stack.
Status WriteCollapsed(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options,
                      std::ostream& out);

/// speedscope's JSON: kHost, an "evented" profile per rank and thread, ns since the first event of all, on the aligned
/// clock; kDevice, a "sampled" one with a sample per device event in order of launch. Frames of Python have file and
/// line. Format: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources. Streams: memory follows the
/// frames and the depth.
Status WriteSpeedscope(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options,
                       std::ostream& out);

}  // namespace lockstep::flame
