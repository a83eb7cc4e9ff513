#include "ingest/perfetto/slice_tracks.h"

#include <algorithm>
#include <numeric>

namespace lockstep::ingest::perfetto {

RawTrack& SliceTracks::Track(uint64_t uuid) {
  RawTrack*& track = by_uuid_[uuid];
  if (track == nullptr) {
    tracks_.push_back(std::make_unique<RawTrack>());
    track = tracks_.back().get();
    track->uuid = uuid;
  }
  return *track;
}

uint32_t SliceTracks::AddWhole(RawTrack* track, int64_t start_ns, int64_t duration_ns, NameId name, uint8_t category,
                               uint32_t correlation) {
  const auto row = static_cast<uint32_t>(track->start_ns.size());
  track->start_ns.push_back(start_ns);
  track->duration_ns.push_back(duration_ns);
  track->event_name.push_back(name);
  track->category.push_back(category);
  track->correlation.push_back(correlation);
  return row;
}

uint32_t SliceTracks::Begin(RawTrack* track, int64_t time_ns, NameId name, uint8_t category, uint32_t correlation) {
  if (!ended_.empty()) ResolveRun();
  if (time_ns < track->last_ns) run_runs_backwards_ = true;
  track->last_ns = time_ns;
  const uint32_t row = AddWhole(track, time_ns, -1, name, category, correlation);
  track->open.push_back(row);
  begun_.push_back({track, row});
  return row;
}

void SliceTracks::End(RawTrack* track, int64_t time_ns, uint64_t byte_offset) {
  if (time_ns < track->last_ns) run_runs_backwards_ = true;
  track->last_ns = time_ns;
  ended_.push_back({track, time_ns, byte_offset});
}

bool SliceTracks::IsGroup() const {
  if (!run_runs_backwards_ || begun_.size() != ended_.size()) return false;
  for (size_t i = 0; i < begun_.size(); ++i) {
    const Begun& begun = begun_[i];
    if (begun.track != ended_[i].track || ended_[i].time_ns < begun.track->start_ns[begun.row]) return false;
  }
  return true;
}

void SliceTracks::CloseInnermost(const Ended& end) {
  RawTrack& track = *end.track;
  if (track.open.empty()) {
    if (track.out_of_order) {
      track.loose_ends.push_back(end.time_ns);
    } else {
      damage_->Add(DamageKind::kUnmatchedEnd, end.byte_offset);
    }
    return;
  }
  const uint32_t row = track.open.back();
  track.open.pop_back();
  track.duration_ns[row] = std::max<int64_t>(end.time_ns - track.start_ns[row], 0);
  // An end before its begin: slices must be paired again by time.
  if (end.time_ns < track.start_ns[row]) {
    track.out_of_order = true;
    track.duration_ns[row] = -1;
    track.open.insert(track.open.begin(), row);
    track.loose_ends.push_back(end.time_ns);
  }
}

void SliceTracks::ResolveRun() {
  if (IsGroup()) {
    for (size_t i = begun_.size(); i-- > 0;) begun_[i].track->open.pop_back();
    for (size_t i = 0; i < begun_.size(); ++i) {
      RawTrack& track = *begun_[i].track;
      track.duration_ns[begun_[i].row] = ended_[i].time_ns - track.start_ns[begun_[i].row];
      track.last_ns = INT64_MIN;  // The next group begins anew.
    }
  } else {
    if (run_runs_backwards_) {
      for (const Begun& begun : begun_) begun.track->out_of_order = true;
      for (const Ended& end : ended_) end.track->out_of_order = true;
    }
    for (const Ended& end : ended_) CloseInnermost(end);
  }
  begun_.clear();
  ended_.clear();
  run_runs_backwards_ = false;
}

/// Begins and ends of the track in order of time, as a stack; at one instant slices end before others begin.
void SliceTracks::PairAnew(RawTrack* track) {
  std::vector<uint32_t> rows(track->start_ns.size());
  std::iota(rows.begin(), rows.end(), 0U);
  std::vector<int64_t> ends = track->loose_ends;
  // Slices of no length stay what they are: their end is not that of the slice around them.
  std::erase_if(rows, [&](uint32_t row) { return track->duration_ns[row] == 0; });
  for (const uint32_t row : rows) {
    if (track->duration_ns[row] > 0) ends.push_back(track->start_ns[row] + track->duration_ns[row]);
    track->duration_ns[row] = -1;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](uint32_t a, uint32_t b) { return track->start_ns[a] < track->start_ns[b]; });
  std::sort(ends.begin(), ends.end());
  track->open.clear();
  const auto close = [&](int64_t end_ns) {
    if (track->open.empty()) {
      damage_->Add(DamageKind::kUnmatchedEnd, 0);
      return;
    }
    const uint32_t row = track->open.back();
    track->duration_ns[row] = end_ns - track->start_ns[row];
    track->open.pop_back();
  };
  auto end = ends.begin();
  for (const uint32_t row : rows) {
    for (; end != ends.end() && *end <= track->start_ns[row]; ++end) close(*end);
    track->open.push_back(row);
  }
  for (; end != ends.end(); ++end) close(*end);
}

void SliceTracks::Finish() {
  ResolveRun();
  for (const auto& track : tracks_) {
    if (track->out_of_order) PairAnew(track.get());
    if (track->open.empty()) continue;
    int64_t last_ns = INT64_MIN;
    for (size_t row = 0; row < track->start_ns.size(); ++row) {
      last_ns = std::max(last_ns, track->start_ns[row] + std::max<int64_t>(track->duration_ns[row], 0));
    }
    for (const uint32_t row : track->open) {
      damage_->Add(DamageKind::kUnfinishedSlice, 0);
      track->duration_ns[row] = last_ns - track->start_ns[row];
    }
    track->open.clear();
  }
}

}  // namespace lockstep::ingest::perfetto
