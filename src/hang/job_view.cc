#include "hang/job_view.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <set>
#include <thread>

#include "hang/record_draft.h"

namespace lockstep::hang {
namespace {

using evidence::FlightGroup;
using evidence::FlightRecord;
using evidence::kNotRecorded;

/// Runs `work(i)` for every i below `count`.
template <typename Work>
void ForEach(size_t count, unsigned thread_count, const Work& work) {
  const unsigned threads = static_cast<unsigned>(std::min<size_t>(std::max(1U, thread_count), count));
  if (threads <= 1) {
    for (size_t i = 0; i < count; ++i) {
      work(i);
    }
    return;
  }
  std::atomic<size_t> next{0};
  std::vector<std::jthread> pool;
  pool.reserve(threads);
  for (unsigned t = 0; t < threads; ++t) {
    pool.emplace_back([&] {
      for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
        work(i);
      }
    });
  }
}

/// Highest world size that is believed: a hostile number must not make us allocate.
constexpr int32_t kMaxWorldSize = 1 << 20;

std::vector<RankView> MakeRanks(const evidence::JobEvidence& job) {
  int32_t size = job.world_size.value_or(0);
  for (const evidence::RankEvidence& rank : job.ranks) {
    size = std::max(size, rank.rank + 1);
    if (rank.record) {
      for (const FlightGroup& group : rank.record->groups) {
        if (!group.name.empty()) {
          for (const int32_t member : group.ranks) {
            size = std::max(size, member < kMaxWorldSize ? member + 1 : 0);
          }
        }
      }
    }
  }
  std::vector<RankView> ranks(static_cast<size_t>(std::clamp(size, 0, kMaxWorldSize)));
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int32_t>(i);
  }
  for (const evidence::RankEvidence& rank : job.ranks) {
    if (rank.rank >= 0 && static_cast<size_t>(rank.rank) < ranks.size()) {
      RankView& view = ranks[static_cast<size_t>(rank.rank)];
      view.evidence = &rank;
      view.has_record = rank.record.has_value();
    }
  }
  return ranks;
}

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

struct Status {
  int64_t enqueued = kNotRecorded, started = kNotRecorded, completed = kNotRecorded;
};

/// A group's place in pg_status is a local id, in pg_config a name; only an entry links the two. A group without an
/// entry is linked by order: both local ids and names count groups as they are made. Only where that agrees with
/// every link that entries prove, and where there are as many of one as of the other.
std::vector<Status> LinkStatus(const FlightRecord& record) {
  std::vector<Status> status(record.groups.size());
  std::map<int64_t, Status> by_local_id;
  std::map<int64_t, size_t> by_name;
  bool names_are_numbers = true;
  for (size_t i = 0; i < record.groups.size(); ++i) {
    const FlightGroup& group = record.groups[i];
    status[i] = {group.last_enqueued, group.last_started, group.last_completed};
    if (group.local_id != kNotRecorded) {
      by_local_id[group.local_id] = status[i];
    }
    if (!group.name.empty()) {
      const std::optional<int64_t> number = NumberOf(group.name);
      names_are_numbers = names_are_numbers && number && by_name.emplace(*number, i).second;
    }
  }
  if (!names_are_numbers || by_local_id.size() != by_name.size()) {
    return status;
  }
  auto name = by_name.begin();
  for (const auto& [local_id, values] : by_local_id) {
    const int64_t known = record.groups[name->second].local_id;
    if (known != kNotRecorded && known != local_id) {
      return status;
    }
    ++name;
  }
  name = by_name.begin();
  for (const auto& [local_id, values] : by_local_id) {
    status[name->second] = values;
    ++name;
  }
  return status;
}

/// Which of a record's groups are of use, and under what key they meet other ranks' groups.
class GroupTable {
 public:
  explicit GroupTable(JobView& view) : view_(view) {}

  uint32_t Find(const FlightGroup& group) {
    const std::string name = group.name.empty() ? "id " + std::to_string(group.local_id) : group.name;
    std::vector<uint32_t>& known = by_name_[name];
    for (const uint32_t index : known) {
      if (group.ranks.empty() || order_[index].empty() || order_[index] == group.ranks) {
        if (order_[index].empty() && !group.name.empty()) {
          SetOrder(index, group.ranks);
        }
        return index;
      }
    }
    const auto index = static_cast<uint32_t>(view_.groups.size());
    GroupView made;
    made.name = name;
    made.description = group.description;
    view_.groups.push_back(std::move(made));
    order_.emplace_back();
    if (!group.name.empty()) {
      SetOrder(index, group.ranks);
    }
    known.push_back(index);
    return index;
  }

 private:
  void SetOrder(uint32_t index, const std::vector<int32_t>& ranks) {
    for (const int32_t rank : ranks) {
      if (rank < 0 || static_cast<size_t>(rank) >= view_.ranks.size()) {
        return;  // Nonsense: infer instead.
      }
    }
    order_[index] = ranks;
    view_.groups[index].group_order = ranks;
  }
  JobView& view_;
  std::unordered_map<std::string, std::vector<uint32_t>> by_name_;
  std::vector<std::vector<int32_t>> order_;
};

struct SignatureHash {
  size_t operator()(const Signature& signature) const {
    uint64_t hash = static_cast<uint64_t>(signature.kind) * 0x9E3779B97F4A7C15ULL;
    const auto mix = [&hash](uint64_t value) {
      hash = (hash ^ value) * 0xBF58476D1CE4E5B9ULL;
      hash ^= hash >> 31;
    };
    mix(signature.name);
    mix(static_cast<uint64_t>(signature.elements));
    mix(signature.dtype);
    for (const uint32_t part : signature.parts) {
      mix(part);
    }
    return hash;
  }
};

/// Gives texts, signatures and sites of all records numbers that compare between ranks.
class Merger {
 public:
  explicit Merger(JobView& view) : view_(view) {
    view_.texts.emplace_back();
    view_.signatures.emplace_back();
    view_.sites.emplace_back();
  }

  std::vector<uint32_t> Signatures(const FlightRecord& record, const RecordDraft& draft) {
    std::vector<uint32_t> map(draft.signatures.size(), 0);
    for (size_t i = 1; i < draft.signatures.size(); ++i) {
      Signature signature = draft.signatures[i].signature;
      signature.name = signature.name == 0 ? 0 : Text(std::string(ReadOperation(record.texts[signature.name]).name));
      signature.dtype = signature.dtype == 0 ? 0 : Text(record.texts[signature.dtype]);
      for (uint32_t& part : signature.parts) {
        part = map[part];
      }
      const auto next = static_cast<uint32_t>(view_.signatures.size());
      const auto [place, is_new] = signatures_.emplace(signature, next);
      if (is_new) {
        view_.signatures.push_back(signature);
      }
      map[i] = place->second;
    }
    return map;
  }

  std::vector<uint32_t> Sites(const RecordDraft& draft) {
    std::vector<uint32_t> map(draft.sites.size(), 0);
    for (size_t i = 1; i < draft.sites.size(); ++i) {
      const UserSite& site = draft.sites[i];
      const auto next = static_cast<uint32_t>(view_.sites.size());
      const auto [place, is_new] =
          sites_.emplace(std::make_pair(std::string(site.file) + '\n' + std::string(site.function) + '\n' +
                                            std::to_string(site.callers),
                                        site.line),
                         next);
      if (is_new) {
        view_.sites.push_back(site);
      }
      map[i] = place->second;
    }
    return map;
  }

 private:
  uint32_t Text(const std::string& text) {
    const auto next = static_cast<uint32_t>(view_.texts.size());
    const auto [place, is_new] = texts_.emplace(text, next);
    if (is_new) {
      view_.texts.push_back(text);
    }
    return place->second;
  }
  JobView& view_;
  std::unordered_map<std::string, uint32_t> texts_;
  std::unordered_map<Signature, uint32_t, SignatureHash> signatures_;
  std::map<std::pair<std::string, int32_t>, uint32_t> sites_;
};

std::optional<int64_t> Known(int64_t value) {
  return value == kNotRecorded ? std::nullopt : std::optional<int64_t>(std::max<int64_t>(value, 0));
}

/// What a track says of sequence numbers that it does not hold.
void FindIssued(const RankView& rank, bool truncated, bool status_is_of_collectives, Track& track) {
  const bool trust_status = track.on_device && status_is_of_collectives && track.last_enqueued.has_value();
  track.issued_upto = track.calls.empty() ? 0 : track.calls.back().sequence;
  if (trust_status) {
    track.issued_upto = std::max(track.issued_upto, *track.last_enqueued);
    track.issued_exact = true;
    return;
  }
  if (truncated) {
    return;  // The newest entries are those that are lost.
  }
  // The ring overwrites the oldest: whatever is there, nothing newer was issued.
  track.issued_exact = !track.calls.empty() || !rank.ring_wrapped;
}

void SetDone(Track& track, bool status_is_of_collectives) {
  if (!track.on_device || !status_is_of_collectives || !track.last_completed) {
    return;
  }
  for (Call& call : track.calls) {
    call.done = call.done || call.sequence <= *track.last_completed;
  }
}

}  // namespace

JobView MakeJobView(const evidence::JobEvidence& job, unsigned thread_count) {
  JobView view;
  view.job = &job;
  view.ranks = MakeRanks(job);
  std::vector<RecordDraft> drafts(view.ranks.size());
  ForEach(view.ranks.size(), thread_count, [&](size_t i) {
    if (view.ranks[i].has_record) {
      drafts[i] = DraftRecord(*view.ranks[i].evidence->record);
    }
  });

  Merger merger(view);
  GroupTable table(view);
  struct Renumbering {
    std::vector<uint32_t> signatures, sites;
  };
  std::vector<Renumbering> renumbering(view.ranks.size());
  std::set<uint32_t> groups_with_p2p;
  for (size_t i = 0; i < view.ranks.size(); ++i) {
    RankView& rank = view.ranks[i];
    if (!rank.has_record) {
      continue;
    }
    ++view.record_count;
    const FlightRecord& record = *rank.evidence->record;
    RecordDraft& draft = drafts[i];
    rank.active_only = draft.active_only;
    rank.ring_wrapped = draft.ring_wrapped;
    rank.oldest_created_ns = draft.oldest_created_ns;
    rank.newest_created_ns = draft.newest_created_ns;
    rank.newest_entry = draft.newest_entry;
    if (rank.newest_created_ns) {
      view.newest_created_ns =
          std::max(view.newest_created_ns.value_or(*rank.newest_created_ns), *rank.newest_created_ns);
    }
    renumbering[i] = {merger.Signatures(record, draft), merger.Sites(draft)};
    const std::vector<Status> status = LinkStatus(record);
    rank.group_of_local.assign(record.groups.size(), kNone);
    for (size_t g = 0; g < record.groups.size(); ++g) {
      const FlightGroup& local = record.groups[g];
      GroupDraft& group = draft.groups[g];
      if (local.name.empty() && group.calls.empty() && group.p2p.empty()) {
        continue;  // Gloo's nameless configuration, or a status that nothing links to a group.
      }
      const uint32_t index = table.Find(local);
      GroupView& made = view.groups[index];
      if (made.description.empty()) {
        made.description = local.description;
      }
      if (!made.tracks.empty() && made.tracks.back().rank_index == i) {
        continue;  // The same name twice in one record: damaged.
      }
      rank.group_of_local[g] = index;
      rank.groups.push_back(index);
      Track track;
      track.rank_index = static_cast<uint32_t>(i);
      track.rank = rank.rank;
      track.calls = std::move(group.calls);
      track.p2p = std::move(group.p2p);
      track.on_device =
          group.on_device || (!group.has_native && !group.has_hook && !rank.evidence->record->library_version.empty());
      track.newest_operation_id = group.newest_operation_id;
      track.last_enqueued = Known(status[g].enqueued);
      track.last_started = status[g].started < 0 ? std::nullopt : Known(status[g].started);
      track.last_completed = Known(status[g].completed);
      track.status_counts_operations = !track.on_device;
      if (!track.p2p.empty()) {
        groups_with_p2p.insert(index);
      }
      made.tracks.push_back(std::move(track));
    }
  }
  FindMembers(view);

  std::set<uint32_t> siblings_with_p2p;
  for (const uint32_t index : groups_with_p2p) {
    siblings_with_p2p.insert(view.groups[index].siblings);
  }
  ForEach(view.groups.size(), thread_count, [&](size_t g) {
    GroupView& group = view.groups[g];
    const bool of_collectives = !siblings_with_p2p.contains(group.siblings);
    for (Track& track : group.tracks) {
      const Renumbering& numbers = renumbering[track.rank_index];
      for (Call& call : track.calls) {
        call.signature = numbers.signatures[call.signature];
        call.site = numbers.sites[call.site];
      }
      for (P2pCall& call : track.p2p) {
        call.site = numbers.sites[call.site];
        const bool known = call.peer >= 0 && static_cast<size_t>(call.peer) < group.group_order.size();
        call.peer = known ? group.group_order[static_cast<size_t>(call.peer)] : -1;
      }
      const RankView& rank = view.ranks[track.rank_index];
      SetDone(track, of_collectives);
      FindIssued(rank, rank.evidence->record->truncated, of_collectives, track);
    }
  });
  return view;
}

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
  const FlightRecord& record = *view.ranks[track.rank_index].evidence->record;
  return std::string(PlainName(ReadOperation(record.texts[record.entries[entry].operation])));
}

std::string DescribeCall(const JobView& view, const Track& track, uint32_t entry) {
  const FlightRecord& record = *view.ranks[track.rank_index].evidence->record;
  const evidence::FlightEntry& call = record.entries[entry];
  std::string text = PlainNameOf(view, track, entry);
  const std::vector<std::vector<int64_t>>& inputs = record.size_lists[call.input_sizes];
  const std::vector<std::vector<int64_t>>& sizes = inputs.empty() ? record.size_lists[call.output_sizes] : inputs;
  for (size_t i = 0; i < sizes.size() && i < 3; ++i) {
    text += i == 0 ? " [" : " + [";
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
