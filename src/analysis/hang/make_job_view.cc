#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/hang/group_status.h"
#include "analysis/hang/group_table.h"
#include "analysis/hang/job_view.h"
#include "analysis/hang/record_draft.h"
#include "analysis/hang/record_merger.h"

namespace lockstep::hang {
namespace {

using evidence::FlightGroup;
using evidence::FlightRecord;

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

  RecordMerger merger(view);
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
    rank.record_ns = rank.evidence->record_unix_ns;
    if (rank.newest_created_ns) {
      view.newest_created_ns =
          std::max(view.newest_created_ns.value_or(*rank.newest_created_ns), *rank.newest_created_ns);
    }
    renumbering[i] = {merger.Signatures(record, draft), merger.Sites(draft)};
    const std::vector<GroupStatus> status = LinkStatus(record);
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
      SetStatus(status[g], track);
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
      SetProgress(view.ranks[track.rank_index], of_collectives, track);
    }
  });
  return view;
}

}  // namespace lockstep::hang
