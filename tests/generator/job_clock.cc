#include "generator/job_clock.h"

#include <algorithm>
#include <cmath>

namespace lockstep::tracegen {
namespace {

template <typename Keep>
void KeepOnly(std::vector<LogEvent>* events, Keep keep) {
  events->erase(std::remove_if(events->begin(), events->end(), [&](const LogEvent& event) { return !keep(event); }),
                events->end());
}

}  // namespace

int64_t RankClock(const TraceSpec& spec, int32_t rank, int64_t job_start_ns, int64_t true_ns) {
  const double elapsed_ns = static_cast<double>(true_ns - job_start_ns);
  return true_ns + spec.OffsetOf(rank) + std::llround(spec.DriftOf(rank) * 1e-6 * elapsed_ns);
}

void PlaceOnClock(const TraceSpec& spec, int32_t rank, const JobLog& job, RankLog* log) {
  for (const PlantedClip& clip : spec.clips) {
    if (clip.rank != rank) continue;
    const int64_t from_ns = job.start_ns + clip.start_ns;
    const int64_t to_ns = clip.end_ns == INT64_MAX ? INT64_MAX : job.start_ns + clip.end_ns;
    const auto inside = [&](const LogEvent& event) { return event.start_ns >= from_ns && event.end_ns() <= to_ns; };
    KeepOnly(&log->cpu, inside);
    KeepOnly(&log->device, inside);
  }
  const bool whole_micros = spec.style == Style::kMicroseconds;
  const auto place = [&](LogEvent& event) {
    int64_t start_ns = RankClock(spec, rank, job.start_ns, event.start_ns);
    int64_t end_ns = RankClock(spec, rank, job.start_ns, event.end_ns());
    if (whole_micros) {
      start_ns = start_ns / 1000 * 1000;
      end_ns = end_ns / 1000 * 1000;
    }
    event.start_ns = start_ns;
    event.duration_ns = end_ns - start_ns;
  };
  for (LogEvent& event : log->cpu) place(event);
  for (LogEvent& event : log->device) place(event);
}

}  // namespace lockstep::tracegen
