#include "simulator.h"

#include <algorithm>

namespace lockstep::hang_test {
namespace {

constexpr int64_t kStart = 1'700'000'000'000'000'000;
constexpr int64_t kCallNs = 20'000;
constexpr int64_t kTransferNs = 100'000;

bool Alike(const Action& a, const Action& b) {
  return a.operation == b.operation && a.input == b.input && a.dtype == b.dtype;
}

/// Where members meet: a collective's number, and which part of a coalesced launch.
struct Meeting {
  size_t arrived = 0;
  int64_t last_ns = 0;
  const Action* first = nullptr;
  bool unlike = false;
};

class Simulator {
 public:
  Simulator(const JobShape& shape, const Plan& plan) : shape_(shape), plan_(plan) {
    run_.ranks.resize(plan.programs.size());
    for (RankRun& rank : run_.ranks) {
      rank.host_ns = rank.device_ns = kStart;
    }
  }

  Run Execute() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t rank = 0; rank < run_.ranks.size(); ++rank) {
        while (shape_.nccl ? MoveHostAsync(rank) : MoveHostSync(rank)) {
          moved = true;
        }
        while (shape_.nccl && MoveDevice(rank)) {
          moved = true;
        }
      }
    }
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      RankRun& state = run_.ranks[rank];
      run_.end_ns = std::max({run_.end_ns, state.host_ns, state.device_ns});
      if (state.end == RankEnd::kDone && state.next < plan_.programs[rank].size()) {
        state.end = state.in_call ? RankEnd::kInCall : RankEnd::kInSync;
      }
    }
    BreakConnections();
    return std::move(run_);
  }

 private:
  using Key = std::tuple<int32_t, int64_t, int32_t>;

  Issued& Issue(RankRun& state, const Action& action) {
    Issued issued;
    issued.action = &action;
    issued.created_ns = state.host_ns;
    const bool joins = action.launch != 0 && !state.issued.empty() &&
                       state.issued.back().action->launch == action.launch &&
                       state.issued.back().action->group == action.group && shape_.nccl;
    if (action.kind == Action::Kind::kCollective) {
      issued.sequence = joins ? state.sequences[action.group] : ++state.sequences[action.group];
      issued.p2p_sequence = state.p2p_sequences[action.group];
    } else {
      issued.p2p_sequence = ++state.p2p_sequences[action.group];
      issued.sequence = state.sequences[action.group];
    }
    issued.operation_id = ++state.operation_ids[action.group];
    state.host_ns += kCallNs;
    state.issued.push_back(issued);
    return state.issued.back();
  }

  int32_t PartOf(const RankRun& state, size_t index) const {
    int32_t part = 0;
    const Issued& own = state.issued[index];
    while (index > 0 && own.action->kind == Action::Kind::kCollective &&
           state.issued[index - 1].action->group == own.action->group &&
           state.issued[index - 1].sequence == own.sequence &&
           state.issued[index - 1].action->kind == Action::Kind::kCollective) {
      ++part;
      --index;
    }
    return part;
  }

  void Arrive(size_t rank, size_t index, int64_t when) {
    Issued& issued = run_.ranks[rank].issued[index];
    issued.arrived_ns = when;
    const Action& action = *issued.action;
    if (action.kind == Action::Kind::kCollective) {
      Meeting& meeting = meetings_[{action.group, issued.sequence, PartOf(run_.ranks[rank], index)}];
      ++meeting.arrived;
      meeting.last_ns = std::max(meeting.last_ns, when);
      meeting.unlike = meeting.unlike || (meeting.first != nullptr && !Alike(*meeting.first, action));
      meeting.first = meeting.first == nullptr ? &action : meeting.first;
      return;
    }
    const bool sends = action.kind == Action::Kind::kSend;
    const auto own = static_cast<int32_t>(rank);
    const auto pair = std::make_tuple(action.group, sends ? own : action.peer, sends ? action.peer : own);
    (sends ? sends_ : receives_)[pair].push_back(when);
    places_[{rank, index}] = (sends ? sends_ : receives_)[pair].size() - 1;
  }

  /// When the operation completes; -1: not yet.
  int64_t Completion(size_t rank, size_t index) {
    const Issued& issued = run_.ranks[rank].issued[index];
    const Action& action = *issued.action;
    if (action.kind == Action::Kind::kCollective) {
      const Meeting& meeting = meetings_[{action.group, issued.sequence, PartOf(run_.ranks[rank], index)}];
      const bool all = meeting.arrived == plan_.groups[static_cast<size_t>(action.group)].ranks.size();
      return all && !meeting.unlike ? meeting.last_ns + kTransferNs : -1;
    }
    const bool sends = action.kind == Action::Kind::kSend;
    const auto own = static_cast<int32_t>(rank);
    const auto pair = std::make_tuple(action.group, sends ? own : action.peer, sends ? action.peer : own);
    const size_t place = places_[{rank, index}];
    const std::vector<int64_t>& out = sends_[pair];
    const std::vector<int64_t>& in = receives_[pair];
    return place < out.size() && place < in.size() ? std::max(out[place], in[place]) + kTransferNs : -1;
  }

  /// What both kinds of host do with an action that is not a call. True: handled; `moved` says whether it went on.
  bool DoOther(RankRun& state, const Action& action, bool* moved) {
    if (state.end != RankEnd::kDone) {
      *moved = false;
      return true;
    }
    if (action.stops_here) {
      state.end = RankEnd::kStuck;
      *moved = true;
      return true;
    }
    if (action.dies_here) {
      state.end = RankEnd::kDead;
      *moved = true;
      return true;
    }
    if (action.kind == Action::Kind::kWork) {
      state.host_ns += action.work_ns;
      ++state.next;
      *moved = true;
      return true;
    }
    return false;
  }

  bool MoveHostSync(size_t rank) {
    RankRun& state = run_.ranks[rank];
    if (state.next >= plan_.programs[rank].size()) {
      return false;
    }
    const Action& action = plan_.programs[rank][state.next];
    bool moved = false;
    if (!state.in_call && DoOther(state, action, &moved)) {
      return moved;
    }
    if (action.kind == Action::Kind::kSync) {
      ++state.next;
      return true;
    }
    if (!state.in_call) {
      const int64_t when = Issue(state, action).created_ns;
      Arrive(rank, state.issued.size() - 1, when);
      state.in_call = true;
    }
    const int64_t completion = Completion(rank, state.issued.size() - 1);
    if (completion < 0) {
      return false;
    }
    state.issued.back().completed_ns = completion;
    state.host_ns = std::max(state.host_ns, completion);
    state.in_call = false;
    ++state.next;
    return true;
  }

  bool MoveHostAsync(size_t rank) {
    RankRun& state = run_.ranks[rank];
    if (state.next >= plan_.programs[rank].size()) {
      return false;
    }
    const Action& action = plan_.programs[rank][state.next];
    bool moved = false;
    if (DoOther(state, action, &moved)) {
      return moved;
    }
    if (action.kind == Action::Kind::kSync) {
      if (state.device_head < state.issued.size()) {
        return false;
      }
      state.host_ns = std::max(state.host_ns, state.device_ns);
      ++state.next;
      return true;
    }
    Issue(state, action);
    ++state.next;
    return true;
  }

  bool MoveDevice(size_t rank) {
    RankRun& state = run_.ranks[rank];
    if (state.device_head >= state.issued.size() || state.device_dead || state.end == RankEnd::kDead) {
      return false;
    }
    Issued& head = state.issued[state.device_head];
    if (head.action->never_begins) {
      state.device_dead = true;
      return false;
    }
    if (head.arrived_ns < 0) {
      Arrive(rank, state.device_head, std::max(state.device_ns, head.created_ns));
      if (head.action->device_dies) {
        state.device_dead = true;  // Its share is out, so that the others complete; it never does.
        return false;
      }
    }
    const int64_t completion = Completion(rank, state.device_head);
    if (completion < 0) {
      return false;
    }
    head.completed_ns = completion;
    state.device_ns = std::max(state.device_ns, completion);
    ++state.device_head;
    return true;
  }

  /// Gloo: who is in a call together with a dead process loses its connection and raises.
  void BreakConnections() {
    if (shape_.nccl) {
      return;
    }
    std::vector<char> dead(run_.ranks.size(), 0);
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      dead[rank] = run_.ranks[rank].end == RankEnd::kDead ? 1 : 0;
    }
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      RankRun& state = run_.ranks[rank];
      if (state.end != RankEnd::kInCall) {
        continue;
      }
      const Action& action = *state.issued.back().action;
      const std::vector<int32_t>& members = plan_.groups[static_cast<size_t>(action.group)].ranks;
      const bool lost = std::any_of(members.begin(), members.end(),
                                    [&](int32_t member) { return dead[static_cast<size_t>(member)] != 0; });
      if (lost) {
        state.end = RankEnd::kFailed;
        state.issued.back().failed = true;
      }
    }
  }

  const JobShape& shape_;
  const Plan& plan_;
  Run run_;
  std::map<Key, Meeting> meetings_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::vector<int64_t>> sends_, receives_;
  std::map<std::pair<size_t, size_t>, size_t> places_;  ///< Of a send or receive, by rank and index.
};

}  // namespace

Run Simulate(const JobShape& shape, const Plan& plan) { return Simulator(shape, plan).Execute(); }

}  // namespace lockstep::hang_test
