#include "analysis/hang/job_view.h"

#include <algorithm>

namespace lockstep::hang {

const Track* GroupView::TrackOf(int32_t rank) const {
  const auto place = std::lower_bound(tracks.begin(), tracks.end(), rank,
                                      [](const Track& track, int32_t wanted) { return track.rank < wanted; });
  return place != tracks.end() && place->rank == rank ? &*place : nullptr;
}

const RankView* JobView::RankOf(int32_t rank) const {
  return rank >= 0 && static_cast<size_t>(rank) < ranks.size() ? &ranks[static_cast<size_t>(rank)] : nullptr;
}

const Call* FindCall(const Track& track, int64_t sequence) {
  if (track.calls.empty() || sequence < track.calls.front().sequence || sequence > track.calls.back().sequence) {
    return nullptr;
  }
  const auto guess = static_cast<size_t>(sequence - track.calls.front().sequence);  // Nearly always without gaps.
  if (guess < track.calls.size() && track.calls[guess].sequence == sequence) {
    return &track.calls[guess];
  }
  const auto place = std::lower_bound(track.calls.begin(), track.calls.end(), sequence,
                                      [](const Call& call, int64_t wanted) { return call.sequence < wanted; });
  return place != track.calls.end() && place->sequence == sequence ? &*place : nullptr;
}

Issued HasIssued(const JobView& view, const GroupView& group, int32_t rank, int64_t sequence) {
  const RankView* known = view.RankOf(rank);
  if (known == nullptr || !known->has_record) {
    return Issued::kUnknown;
  }
  const Track* track = group.TrackOf(rank);
  if (track == nullptr) {
    return known->ring_wrapped || known->evidence->record->truncated ? Issued::kUnknown : Issued::kNo;
  }
  if (sequence <= track->issued_upto) {
    return Issued::kYes;
  }
  if (track->issued_exact) {
    return Issued::kNo;
  }
  // Gloo's status counts every operation of the group, so it bounds the collectives among them.
  if (track->status_counts_operations && track->last_enqueued && *track->last_enqueued < sequence) {
    return Issued::kNo;
  }
  return Issued::kUnknown;
}

std::string PlainNameOf(const JobView& view, const Track& track, uint32_t entry) {
  const evidence::FlightRecord& record = *view.ranks[track.rank_index].evidence->record;
  return std::string(PlainName(ReadOperation(record.texts[record.entries[entry].operation])));
}

std::string DescribeCall(const JobView& view, const Track& track, uint32_t entry) {
  const evidence::FlightRecord& record = *view.ranks[track.rank_index].evidence->record;
  const evidence::FlightEntry& call = record.entries[entry];
  std::string text = PlainNameOf(view, track, entry);
  const std::vector<std::vector<int64_t>>& inputs = record.size_lists[call.input_sizes];
  const std::vector<std::vector<int64_t>>& sizes = inputs.empty() ? record.size_lists[call.output_sizes] : inputs;
  for (size_t i = 0; i < sizes.size() && i < 3; ++i) {
    text += i == 0 ? " " : " + ";
    if (sizes[i].empty()) {
      text += "scalar";
      continue;
    }
    text += "[";
    for (size_t d = 0; d < sizes[i].size(); ++d) {
      text += (d == 0 ? "" : ", ") + std::to_string(sizes[i][d]);
    }
    text += "]";
  }
  if (sizes.size() > 3) {
    text += " + " + std::to_string(sizes.size() - 3) + " more";
  }
  const std::string& dtypes = record.texts[call.input_dtypes != 0 ? call.input_dtypes : call.output_dtypes];
  if (!dtypes.empty()) {
    text += " " + dtypes.substr(0, dtypes.find(','));
  }
  return text;
}

}  // namespace lockstep::hang
