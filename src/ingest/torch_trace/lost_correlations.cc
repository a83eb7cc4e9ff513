#include "ingest/torch_trace/lost_correlations.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/event.h"
#include "model/kernel_name.h"

namespace lockstep::ingest {
namespace {

using model::Category;
using model::CollectiveRecord;
using model::RankTrace;
using model::Track;

struct Launch {
  int64_t start_ns = 0;
  uint32_t correlation = 0;
};

struct Kernel {
  int64_t start_ns = 0;
  uint32_t* correlation = nullptr;
};

bool IsLaunch(std::string_view call) {
  return call.find("aunch") != std::string_view::npos && call.find("Graph") == std::string_view::npos;
}

/// Each name is looked at once.
class CommunicationNames {
 public:
  explicit CommunicationNames(const model::NameTable& names) : names_(names) {}
  bool Hold(NameId kernel) {
    const auto [known, is_new] = known_.emplace(kernel.value, false);
    if (is_new) known->second = model::IsCommunicationKernelName(names_[kernel]);
    return known->second;
  }

 private:
  const model::NameTable& names_;
  std::unordered_map<uint32_t, bool> known_;
};

/// Instants within the collective calls of a thread.
class CollectiveRanges {
 public:
  explicit CollectiveRanges(const RankTrace& trace) {
    for (const CollectiveRecord& record : trace.collectives) {
      if (record.source == CollectiveRecord::Source::kParamComms) ranges_.push_back(&record);
    }
  }
  bool empty() const { return ranges_.empty(); }
  bool Holds(const Track& thread, int64_t time_ns) const {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), time_ns,
                                        [](int64_t time, const CollectiveRecord* r) { return time < r->start_ns; });
    // Calls of other threads may lie between.
    constexpr std::ptrdiff_t kMostSteps = 64;
    for (auto at = after; at != ranges_.begin() && after - at < kMostSteps;) {
      const CollectiveRecord& range = **--at;
      if (range.process_id != thread.process_id || range.thread_id != thread.thread_id) continue;
      return time_ns < range.start_ns + std::max<int64_t>(range.duration_ns, 1);
    }
    return false;
  }

 private:
  std::vector<const CollectiveRecord*> ranges_;  // By start.
};

/// How many kernels were given one: all or none.
size_t Pair(std::vector<Launch>& launches, std::vector<Kernel>& kernels) {
  if (launches.size() != kernels.size()) return 0;
  const auto by_start = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
  std::stable_sort(launches.begin(), launches.end(), by_start);
  std::stable_sort(kernels.begin(), kernels.end(), by_start);
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].start_ns < launches[i].start_ns) return 0;
  }
  for (size_t i = 0; i < kernels.size(); ++i) *kernels[i].correlation = launches[i].correlation;
  return kernels.size();
}

}  // namespace

void GuessLostCorrelations(const std::string& source, TraceContent* content) {
  RankTrace& trace = content->trace;
  std::vector<Kernel> kernels[2];  // Of others, of communication.
  CommunicationNames communication(content->names);
  std::unordered_set<uint32_t> claimed;
  for (Track& track : trace.tracks) {
    if (track.lane != model::Lane::kDevice) continue;
    for (size_t i = 0; i < track.events.size(); ++i) {
      uint32_t& correlation = track.events.correlation[i];
      if (correlation != 0 || track.events.category[i] != Category::kKernel) continue;
      kernels[communication.Hold(track.events.name[i])].push_back({track.events.start_ns[i], &correlation});
    }
  }
  const size_t lost_count = kernels[0].size() + kernels[1].size();
  if (lost_count == 0) return;
  for (const Track& track : trace.tracks) {
    if (track.lane != model::Lane::kDevice) continue;
    claimed.insert(track.events.correlation.begin(), track.events.correlation.end());
  }
  const CollectiveRanges collectives(trace);
  std::vector<Launch> launches[2];
  bool any_call = false;
  for (const Track& track : trace.tracks) {
    if (track.lane != model::Lane::kRuntime) continue;
    for (size_t i = 0; i < track.events.size(); ++i) {
      const uint32_t correlation = track.events.correlation[i];
      if (!IsLaunch(content->names[track.events.name[i]])) continue;
      any_call = true;
      if (correlation == 0 || claimed.contains(correlation)) continue;
      const int64_t start_ns = track.events.start_ns[i];
      launches[collectives.Holds(track, start_ns)].push_back({start_ns, correlation});
    }
  }
  if (!any_call) return;  // Calls were not recorded: nothing was lost.
  const size_t given = Pair(launches[0], kernels[0]) + Pair(launches[1], kernels[1]);
  std::unordered_map<int64_t, uint32_t> by_start;
  for (const Kernel& kernel : kernels[1]) by_start.emplace(kernel.start_ns, *kernel.correlation);
  for (CollectiveRecord& record : trace.collectives) {
    if (record.source != CollectiveRecord::Source::kKernel || record.correlation != 0) continue;
    if (const auto known = by_start.find(record.start_ns); known != by_start.end()) record.correlation = known->second;
  }
  if (given > 0) {
    content->ledger.Add({.code = "guessed_correlations",
                         .severity = model::Severity::kInfo,
                         .source = source,
                         .count = given,
                         .message = "a kernel without a correlation was joined with its launch by their order",
                         .advice = "the profiler lost it; nothing is missing"});
  }
  if (given < lost_count) {
    content->ledger.Add({.code = "lost_correlations",
                         .severity = model::Severity::kWarning,
                         .source = source,
                         .count = lost_count - given,
                         .message = "a kernel has no correlation, and its launch cannot be told from the order of both",
                         .advice = "its launch and its collective are not known; a newer profiler may record them"});
  }
}

}  // namespace lockstep::ingest
