#include "analysis/hang/wait_graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::hang {
namespace {

class Builder {
 public:
  Builder(const JobView& view, const std::vector<RankCondition>& conditions) : view_(view), conditions_(conditions) {
    const size_t count = view.ranks.size();
    graph_.of_rank.resize(count);
    graph_.awaited_by.assign(count, 0);
    graph_.perhaps_awaited_by.assign(count, 0);
    graph_.has_open.assign(count, 0);
  }

  WaitGraph Build() {
    for (uint32_t g = 0; g < view_.groups.size(); ++g) {
      AddCollectives(g);
      AddP2p(g);
    }
    std::stable_sort(graph_.waits.begin(), graph_.waits.end(), [](const Wait& a, const Wait& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.entry < b.entry;
    });
    for (uint32_t i = 0; i < graph_.waits.size(); ++i) {
      const Wait& wait = graph_.waits[i];
      graph_.of_rank[static_cast<size_t>(wait.rank)].push_back(i);
    }
    CountAwaited();
    FindRoots();
    FindCycles();
    return std::move(graph_);
  }

 private:
  bool IsMember(int32_t rank) const { return rank >= 0 && static_cast<size_t>(rank) < view_.ranks.size(); }

  /// Whether the rank's record was made before `entry` of `track` was called: it then cannot show the rank's own call.
  bool IsOlder(int32_t rank, const Track& track, uint32_t entry) const {
    const std::optional<int64_t> made_ns = view_.ranks[static_cast<size_t>(rank)].record_ns;
    const int64_t created_ns = view_.EntryOf(track, entry).created_unix_ns;
    return made_ns && created_ns != evidence::kNotRecorded && *made_ns < created_ns;
  }

  Issued HasCome(const GroupView& group, int32_t member, const Track& track, const Call& call) const {
    const Issued answer = HasIssued(view_, group, member, call.sequence);
    return answer == Issued::kNo && IsOlder(member, track, call.entry) ? Issued::kUnknown : answer;
  }

  void AddCollectives(uint32_t g) {
    const GroupView& group = view_.groups[g];
    std::vector<int32_t> silent;                      // Members that no record tells of.
    std::vector<std::pair<int64_t, int32_t>> issued;  // Up to where, exactly, ascending.
    int64_t lowest = INT64_MAX;
    for (const int32_t member : group.members) {
      const RankView* rank = view_.RankOf(member);
      const Track* track = group.TrackOf(member);
      if (rank == nullptr || !rank->has_record) {
        silent.push_back(member);
        continue;
      }
      const int64_t upto = track == nullptr ? 0 : track->issued_upto;
      issued.emplace_back(upto, member);
      if (track == nullptr ? !rank->ring_wrapped : track->issued_exact) {
        lowest = std::min(lowest, upto);
      } else if (track != nullptr && track->status_counts_operations && track->last_enqueued) {
        lowest = std::min(lowest, *track->last_enqueued);
      }
    }
    std::sort(issued.begin(), issued.end());
    std::map<int64_t, Flight> flights;
    for (const Track& track : group.tracks) {
      const RankCondition& condition = conditions_[track.rank_index];
      const uint32_t failed_entry =
          condition.raised && condition.peer_lost ? view_.ranks[track.rank_index].newest_entry : kNone;
      const auto is_done = [failed_entry](const Call& call) { return call.done && call.entry != failed_entry; };
      // A call that completed needs no more looks, nor do those before it.
      size_t first = track.calls.size();
      while (first > 0 && (!is_done(track.calls[first - 1]) || track.calls[first - 1].sequence > lowest)) {
        --first;
      }
      for (size_t i = first; i < track.calls.size(); ++i) {
        const Call& call = track.calls[i];
        const OperationKind kind = view_.signatures[call.signature].kind;
        if (is_done(call) && !NeedsAll(kind)) {
          continue;
        }
        Wait wait;
        bool everybody = true;
        for (const auto& [upto, member] : issued) {
          if (upto >= call.sequence) {
            break;
          }
          const Issued answer = member == track.rank ? Issued::kYes : HasCome(group, member, track, call);
          everybody = everybody && answer == Issued::kYes;
          if (answer == Issued::kNo) {
            wait.waits_for.push_back(member);
          } else if (answer == Issued::kUnknown) {
            wait.perhaps_waits.push_back(member);
          }
        }
        for (const int32_t member : silent) {
          const bool dead = conditions_[static_cast<size_t>(member)].Failed();
          if (!is_done(call)) {
            (dead ? wait.waits_for : wait.perhaps_waits).push_back(member);
            everybody = false;
          }
        }
        if (is_done(call) && wait.waits_for.empty()) {
          continue;
        }
        if (!is_done(call)) {
          graph_.has_open[track.rank_index] = 1;
        }
        if (everybody) {
          Flight& flight = flights[call.sequence];
          flight.group = g;
          flight.sequence = call.sequence;
          flight.open_on.push_back(track.rank);
          continue;
        }
        std::sort(wait.waits_for.begin(), wait.waits_for.end());
        std::sort(wait.perhaps_waits.begin(), wait.perhaps_waits.end());
        wait.rank = track.rank;
        wait.group = g;
        wait.track = &track;
        wait.entry = call.entry;
        wait.site = call.site;
        wait.sequence = call.sequence;
        wait.failed = call.done;
        graph_.waits.push_back(std::move(wait));
        break;  // Only the oldest holds it up.
      }
    }
    for (auto& [sequence, flight] : flights) {
      flight.completed_somewhere = flight.open_on.size() < group.members.size();
      graph_.flights.push_back(std::move(flight));
    }
  }

  struct Pair {
    std::vector<const P2pCall*> sends, receives;
    const Track* sender = nullptr;
    const Track* receiver = nullptr;
    bool sender_known = false, receiver_known = false;
  };

  /// Sends of a to b meet receives of b from a in the order of their issue. Where rings have wrapped, what is open on
  /// either side is the tail of that order, and completed ones have met.
  void AddP2p(uint32_t g) {
    const GroupView& group = view_.groups[g];
    std::map<std::pair<int32_t, int32_t>, Pair> pairs;
    for (const Track& track : group.tracks) {
      for (const P2pCall& call : track.p2p) {
        if (!call.done) {
          graph_.has_open[track.rank_index] = 1;
        }
        if (call.peer < 0) {
          continue;
        }
        const auto key = call.is_send ? std::make_pair(track.rank, call.peer) : std::make_pair(call.peer, track.rank);
        Pair& pair = pairs[key];
        (call.is_send ? pair.sends : pair.receives).push_back(&call);
        (call.is_send ? pair.sender : pair.receiver) = &track;
      }
    }
    for (auto& [key, pair] : pairs) {
      AddPair(g, key.first, key.second, pair);
    }
  }

  void AddPair(uint32_t g, int32_t from, int32_t to, Pair& pair) {
    const RankView* sender = view_.RankOf(from);
    const RankView* receiver = view_.RankOf(to);
    if (sender == nullptr || receiver == nullptr) {
      return;
    }
    const bool whole = sender->has_record && receiver->has_record && !sender->ring_wrapped && !receiver->ring_wrapped;
    const auto is_done = [](const P2pCall* call) { return call->done; };
    if (!whole) {
      std::erase_if(pair.sends, is_done);
      std::erase_if(pair.receives, is_done);
    }
    const size_t both = std::min(pair.sends.size(), pair.receives.size());
    AddUnmet(g, pair.sends, both, from, to, *receiver, pair.sender);
    AddUnmet(g, pair.receives, both, to, from, *sender, pair.receiver);
  }

  void AddUnmet(uint32_t g, const std::vector<const P2pCall*>& calls, size_t met, int32_t rank, int32_t peer,
                const RankView& peer_view, const Track* track) {
    for (size_t i = met; i < calls.size(); ++i) {
      if (calls[i]->done) {
        continue;  // A small message may leave before anybody receives it.
      }
      Wait wait;
      wait.rank = rank;
      wait.group = g;
      wait.track = track;
      wait.entry = calls[i]->entry;
      wait.site = calls[i]->site;
      wait.is_p2p = true;
      wait.is_send = calls[i]->is_send;
      const bool certain = (peer_view.has_record && !peer_view.evidence->record->truncated &&
                            (track == nullptr || !IsOlder(peer, *track, wait.entry))) ||
                           conditions_[static_cast<size_t>(peer)].Failed();
      (certain ? wait.waits_for : wait.perhaps_waits).push_back(peer);
      graph_.waits.push_back(std::move(wait));
      return;
    }
  }

  void CountAwaited() {
    for (size_t rank = 0; rank < graph_.of_rank.size(); ++rank) {
      std::set<int32_t> certain;
      std::set<int32_t> perhaps;
      for (const uint32_t index : graph_.of_rank[rank]) {
        const Wait& wait = graph_.waits[index];
        certain.insert(wait.waits_for.begin(), wait.waits_for.end());
        perhaps.insert(wait.perhaps_waits.begin(), wait.perhaps_waits.end());
      }
      for (const int32_t other : certain) {
        ++graph_.awaited_by[static_cast<size_t>(other)];
      }
      for (const int32_t other : perhaps) {
        ++graph_.perhaps_awaited_by[static_cast<size_t>(other)];
      }
    }
  }

  void FindRoots() {
    for (size_t rank = 0; rank < graph_.of_rank.size(); ++rank) {
      if (graph_.awaited_by[rank] > 0 && graph_.of_rank[rank].empty()) {
        graph_.roots.push_back(static_cast<int32_t>(rank));
      }
    }
  }

  /// Tarjan's strongly connected components, without recursion; those that no wait leaves are cycles.
  void FindCycles() {
    const size_t count = graph_.of_rank.size();
    std::vector<std::vector<int32_t>> next(count);
    for (size_t rank = 0; rank < count; ++rank) {
      for (const uint32_t index : graph_.of_rank[rank]) {
        const Wait& wait = graph_.waits[index];
        next[rank].insert(next[rank].end(), wait.waits_for.begin(), wait.waits_for.end());
      }
    }
    std::vector<uint32_t> order(count, kNone), low(count, 0), component(count, kNone);
    std::vector<size_t> edge(count, 0);
    std::vector<int32_t> stack, path;
    std::vector<std::vector<int32_t>> components;
    uint32_t clock = 0;
    for (size_t start = 0; start < count; ++start) {
      if (order[start] != kNone) {
        continue;
      }
      path.push_back(static_cast<int32_t>(start));
      while (!path.empty()) {
        const auto node = static_cast<size_t>(path.back());
        if (order[node] == kNone) {
          order[node] = low[node] = clock++;
          stack.push_back(static_cast<int32_t>(node));
        }
        bool descended = false;
        for (; edge[node] < next[node].size(); ++edge[node]) {
          const auto to = static_cast<size_t>(next[node][edge[node]]);
          if (order[to] == kNone) {
            path.push_back(static_cast<int32_t>(to));
            descended = true;
            break;
          }
          if (component[to] == kNone) {
            low[node] = std::min(low[node], low[to]);
          }
        }
        if (descended) {
          continue;
        }
        if (low[node] == order[node]) {
          components.emplace_back();
          int32_t member = 0;
          do {
            member = stack.back();
            stack.pop_back();
            component[static_cast<size_t>(member)] = static_cast<uint32_t>(components.size() - 1);
            components.back().push_back(member);
          } while (static_cast<size_t>(member) != node);
        }
        path.pop_back();
        if (!path.empty()) {
          const auto parent = static_cast<size_t>(path.back());
          low[parent] = std::min(low[parent], low[node]);
        }
      }
    }
    for (std::vector<int32_t>& members : components) {
      if (members.size() < 2) {
        continue;
      }
      const uint32_t own = component[static_cast<size_t>(members.front())];
      bool leaves = false;
      for (const int32_t member : members) {
        for (const int32_t to : next[static_cast<size_t>(member)]) {
          leaves = leaves || component[static_cast<size_t>(to)] != own;
        }
      }
      if (!leaves) {
        std::sort(members.begin(), members.end());
        graph_.cycles.push_back(members);
      }
    }
  }

  const JobView& view_;
  const std::vector<RankCondition>& conditions_;
  WaitGraph graph_;
};

}  // namespace

std::vector<int32_t> WaitGraph::HeldUpBy(const std::vector<int32_t>& ranks) const {
  std::vector<std::vector<int32_t>> waiters(of_rank.size());
  for (const Wait& wait : waits) {
    for (const std::vector<int32_t>* list : {&wait.waits_for, &wait.perhaps_waits}) {
      for (const int32_t other : *list) {
        waiters[static_cast<size_t>(other)].push_back(wait.rank);
      }
    }
  }
  std::vector<char> seen(of_rank.size(), 0);
  std::vector<int32_t> queue = ranks;
  for (const int32_t rank : ranks) {
    seen[static_cast<size_t>(rank)] = 1;
  }
  std::vector<int32_t> found;
  while (!queue.empty()) {
    const int32_t rank = queue.back();
    queue.pop_back();
    for (const int32_t waiter : waiters[static_cast<size_t>(rank)]) {
      if (seen[static_cast<size_t>(waiter)] == 0) {
        seen[static_cast<size_t>(waiter)] = 1;
        found.push_back(waiter);
        queue.push_back(waiter);
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

WaitGraph MakeWaitGraph(const JobView& view, const std::vector<RankCondition>& conditions) {
  return Builder(view, conditions).Build();
}

}  // namespace lockstep::hang
