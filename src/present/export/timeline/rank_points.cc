// What a rank has that has no length: lines of its log, events of the allocator, samples of counters.
#include <set>
#include <string>

#include "present/export/timeline/rank_writer.h"

namespace lockstep::timeline {

using model::Lane;

void TimelineContent::WriteLog(size_t rank_index, const RankPlan& plan, EventWriter* writer, Summary* summary) const {
  bool begun = false;
  Instant instant;
  instant.category = "log";
  for (const LogPoint& line : (*options_->logs)[rank_index]) {
    if (!selection_.ContainsTime(rank_index, line.time_ns)) continue;
    if (!begun) writer->BeginTrack(*plan.log_track);
    begun = true;
    instant.time_ns = ToTimeline(rank_index, line.time_ns);
    instant.name = line.text;
    instant.texts.clear();
    instant.texts.emplace_back("level", line.level);
    if (!line.source.empty()) instant.texts.emplace_back("source", line.source);
    writer->AddInstant(instant);
    ++summary->log_line_count;
    Count(instant.time_ns, instant.time_ns, summary);
  }
  if (!begun) return;
  writer->EndTrack();
  ++summary->track_count;
}

void TimelineContent::WriteMemory(size_t rank_index, const RankPlan& plan, EventWriter* writer,
                                  Summary* summary) const {
  const model::MemoryColumns& memory = run_->ranks[rank_index].memory;
  const std::set<int16_t> devices(memory.device.begin(), memory.device.end());
  writer->BeginMemory(plan.memory_track, {devices.begin(), devices.end()});
  ++summary->track_count;
  for (size_t row = 0; row < memory.size(); ++row) {
    if (!selection_.Contains(rank_index, Lane::kOperators, memory.time_ns[row])) continue;
    const int64_t time_ns = ToTimeline(rank_index, memory.time_ns[row]);
    writer->AddMemory({time_ns, memory.change_bytes[row], memory.allocated_bytes[row], memory.reserved_bytes[row],
                       memory.device[row]});
    ++summary->memory_count;
    Count(time_ns, time_ns, summary);
  }
  writer->EndTrack();
}

void TimelineContent::WriteCounters(size_t rank_index, EventWriter* writer, Summary* summary) const {
  for (const model::CounterSeries& series : run_->ranks[rank_index].counters) {
    bool begun = false;
    for (size_t i = 0; i < series.size(); ++i) {
      if (!selection_.Contains(rank_index, Lane::kOperators, series.time_ns[i])) continue;
      if (!begun) {
        const std::string place = series.device ? ", device " + std::to_string(series.device->value) : "";
        writer->BeginCounter({series.name + place, series.unit});
        ++summary->track_count;
        begun = true;
      }
      const int64_t time_ns = ToTimeline(rank_index, series.time_ns[i]);
      writer->AddValue(time_ns, series.value[i]);
      ++summary->counter_value_count;
      Count(time_ns, time_ns, summary);
    }
    if (begun) writer->EndTrack();
  }
}

}  // namespace lockstep::timeline
