#include "broken_job.h"

#include <algorithm>
#include <map>

#include "simulator.h"

namespace lockstep::hang_test {
namespace {

using evidence::EntryState;
using evidence::FlightEntry;
using evidence::FlightGroup;
using evidence::FlightRecord;
using evidence::kNotRecorded;
using evidence::Tristate;

/// Writes one process's record as its recorder would hold it.
class RecordWriter {
 public:
  RecordWriter(const JobShape& shape, const Plan& plan, const RankRun& run, int32_t rank)
      : shape_(shape), plan_(plan), run_(run), rank_(rank) {
    record_.texts.emplace_back();
    record_.size_lists.emplace_back();
    record_.stacks.emplace_back();
  }

  FlightRecord Write() {
    const bool old = shape_.mixed_versions && rank_ % 3 == 1;
    record_.version = old ? "2.4" : "2.10";
    FlightRecord* record = &record_;
    record->library_version = shape_.nccl ? "2.27.3" : "";
    AddGroups();
    int64_t id = 0;
    std::vector<const Issued*> kept;
    for (const Issued& issued : run_.issued) {
      if (shape_.nccl || issued.action->kind == Action::Kind::kCollective) {
        kept.push_back(&issued);  // Gloo records no send and no receive.
      }
    }
    const size_t first = kept.size() > shape_.ring ? kept.size() - shape_.ring : 0;
    for (const Issued* issued : kept) {
      if (static_cast<size_t>(id) >= first) {
        AddEntry(*issued, id);
      }
      ++id;
    }
    return std::move(record_);
  }

 private:
  uint32_t Text(const std::string& text) {
    const auto [place, is_new] = texts_.emplace(text, static_cast<uint32_t>(record_.texts.size()));
    if (is_new) {
      record_.texts.push_back(text);
    }
    return text.empty() ? 0 : place->second;
  }
  uint32_t Sizes(const std::vector<int64_t>& shape) {
    if (shape.empty()) {
      return 0;
    }
    const auto [place, is_new] = sizes_.emplace(shape, static_cast<uint32_t>(record_.size_lists.size()));
    if (is_new) {
      record_.size_lists.push_back({shape});
    }
    return place->second;
  }
  uint32_t Stack(const Action& action) {
    if (!shape_.with_frames) {
      return 0;
    }
    const auto [place, is_new] =
        stacks_.emplace(std::make_pair(action.function, action.line), static_cast<uint32_t>(record_.stacks.size()));
    if (is_new) {
      record_.stacks.push_back(
          {{Text(action.operation), Text("/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py"), 3913},
           {Text(action.function), Text("/home/user/train.py"), action.line},
           {Text("<module>"), Text("/home/user/train.py"), 99}});
    }
    return place->second;
  }

  void AddGroups() {
    int64_t local_id = 0;
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      const SimGroup& group = plan_.groups[g];
      if (std::find(group.ranks.begin(), group.ranks.end(), rank_) == group.ranks.end()) {
        continue;
      }
      local_of_[static_cast<int32_t>(g)] = static_cast<uint32_t>(record_.groups.size());
      FlightGroup made;
      made.local_id = local_id++;
      made.name = group.name;
      made.description = group.description;
      if (shape_.nccl) {
        made.ranks = group.ranks;
      }
      int64_t enqueued = 0;
      int64_t started = 0;
      int64_t completed = 0;
      bool any = false;
      for (const Issued& issued : run_.issued) {
        if (issued.action->group != static_cast<int32_t>(g)) {
          continue;
        }
        any = true;
        const bool collective = issued.action->kind == Action::Kind::kCollective;
        const int64_t number = !shape_.nccl ? issued.operation_id : collective ? issued.sequence : issued.p2p_sequence;
        enqueued = number;
        started = issued.arrived_ns >= 0 ? number : started;
        completed = issued.completed_ns >= 0 || issued.failed ? number : completed;
      }
      if (any) {
        made.last_enqueued = enqueued;
        made.last_completed = completed;
        if (shape_.told_starts) {
          made.last_started = started;
        }
      }
      const bool recorded = std::any_of(run_.issued.begin(), run_.issued.end(), [&](const Issued& issued) {
        return issued.action->group == static_cast<int32_t>(g) && issued.action->kind == Action::Kind::kCollective;
      });
      if (!shape_.nccl && !recorded) {
        made.name.clear();  // Only a status by local id: nothing links it to a name.
        made.description.clear();
      }
      record_.groups.push_back(std::move(made));
    }
    if (!shape_.nccl) {
      FlightGroup nameless;  // Gloo's one configuration, with group-local ranks.
      nameless.ranks = {0, 1};
      record_.groups.push_back(nameless);
    }
  }

  void AddEntry(const Issued& issued, int64_t id) {
    const Action& action = *issued.action;
    const bool done = issued.completed_ns >= 0 || issued.failed;
    if (shape_.active_only && done) {
      return;
    }
    FlightEntry entry;
    entry.record_id = id;
    entry.collective_sequence = issued.sequence;
    entry.p2p_sequence = issued.p2p_sequence;
    entry.operation_id = issued.operation_id;
    entry.created_unix_ns = issued.created_ns;
    entry.group = local_of_.at(action.group);
    std::string name = (shape_.nccl ? "nccl:" : "gloo:") + action.operation;
    entry.is_p2p = action.kind != Action::Kind::kCollective;
    if (entry.is_p2p) {
      const std::vector<int32_t>& ranks = plan_.groups[static_cast<size_t>(action.group)].ranks;
      const auto own = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
      const auto peer = std::find(ranks.begin(), ranks.end(), action.peer) - ranks.begin();
      name += " " + std::to_string(own) + (action.kind == Action::Kind::kSend ? "->" : "<-") + std::to_string(peer);
    }
    entry.operation = Text(name);
    entry.input_sizes = Sizes(action.input);
    entry.output_sizes = Sizes(action.output);
    entry.input_dtypes = action.input.empty() ? 0 : Text(action.dtype);
    entry.output_dtypes = entry.input_dtypes;
    entry.stack = Stack(action);
    const bool begun = shape_.told_starts && issued.arrived_ns >= 0;
    entry.state = shape_.nccl && done ? EntryState::kCompleted : begun ? EntryState::kStarted : EntryState::kScheduled;
    entry.retired = done ? Tristate::kYes : Tristate::kNo;
    record_.entries.push_back(entry);
  }

  const JobShape& shape_;
  const Plan& plan_;
  const RankRun& run_;
  int32_t rank_;
  FlightRecord record_;
  std::map<std::string, uint32_t> texts_;
  std::map<std::vector<int64_t>, uint32_t> sizes_;
  std::map<std::pair<std::string, int32_t>, uint32_t> stacks_;
  std::map<int32_t, uint32_t> local_of_;
};

evidence::ThreadStack MainStack(const Action& action, RankEnd end) {
  evidence::ThreadStack thread;
  thread.is_main = true;
  thread.name = "python3";
  thread.source = "py-spy";
  thread.state = 'S';
  if (end == RankEnd::kInCall) {
    const std::string function = action.operation == "_all_gather_base" ? "all_gather_into_tensor" : action.operation;
    thread.python.push_back({function, "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 3913});
  }
  if (end == RankEnd::kInSync) {
    thread.native.push_back({"cudaStreamSynchronize", "libcudart.so", 0});
  }
  thread.python.push_back({action.function, "/home/user/train.py", action.line});
  thread.python.push_back({"<module>", "/home/user/train.py", 99});
  return thread;
}

/// A moment in the middle of the run: between its first and second half, `skew_ns` long.
int64_t MadeAt(const JobShape& shape, const Run& run, std::mt19937_64& random) {
  if (shape.skew_ns == 0) {
    return run.end_ns;
  }
  const int64_t begin = run.ranks.front().issued.front().created_ns;
  return begin + (run.end_ns - begin) / 2 + static_cast<int64_t>(random() % static_cast<uint64_t>(shape.skew_ns));
}

/// What a record that was made then holds.
RankRun AsOf(const RankRun& state, int64_t made_ns) {
  RankRun seen = state;
  std::erase_if(seen.issued, [made_ns](const Issued& issued) { return issued.created_ns > made_ns; });
  for (Issued& issued : seen.issued) {
    issued.completed_ns = issued.completed_ns > made_ns ? -1 : issued.completed_ns;
  }
  seen.end = RankEnd::kDone;  // It goes on: no stack and no log tells otherwise.
  return seen;
}

}  // namespace

const char* FaultName(Fault fault) {
  constexpr const char* kNames[kFaultCount] = {"none",  "skip",         "extra", "swap",         "operation",
                                               "size",  "dtype",        "stuck", "device_stall", "crash",
                                               "cross", "missing_recv", "slow"};
  return kNames[static_cast<int>(fault)];
}

BrokenJob RunBrokenJob(const JobShape& shape, Fault fault, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Plan plan = MakePlan(shape, fault, random);
  const Run run = Simulate(shape, plan);
  BrokenJob job;
  job.fault = fault;
  job.culprits = plan.culprits;
  job.name = std::string(FaultName(fault)) + (shape.nccl ? " nccl" : " gloo") + " tp" + std::to_string(shape.tensor) +
             " pp" + std::to_string(shape.pipeline) + " dp" + std::to_string(shape.data) + " ring" +
             std::to_string(shape.ring) + (shape.with_frames ? " frames" : "") + (shape.with_stacks ? " stacks" : "") +
             shape.ProgramName() + (shape.told_starts ? " starts" : "") + (shape.active_only ? " active" : "") +
             (shape.coalesced ? " coalesced" : "") + " seed" + std::to_string(seed);
  job.evidence.world_size = shape.World();
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const RankRun& state = run.ranks[i];
    evidence::RankEvidence rank;
    rank.rank = static_cast<int32_t>(i);
    if (state.end == RankEnd::kDead) {
      if (shape.nccl || seed % 2 == 0) {
        rank.liveness = evidence::Liveness::kGone;
        rank.exit_signal = 9;
      }
      job.evidence.ranks.push_back(std::move(rank));
      continue;
    }
    const int64_t made_ns = MadeAt(shape, run, random);
    const RankRun seen = shape.skew_ns > 0 ? AsOf(state, made_ns) : state;
    rank.record = RecordWriter(shape, plan, seen, rank.rank).Write();
    rank.record_file = "trace_" + std::to_string(i);
    if (shape.skew_ns > 0 && shape.told_times) {
      rank.record_unix_ns = made_ns;
    }
    if (state.end == RankEnd::kFailed) {
      evidence::LogEvent event;
      event.kind = evidence::LogEventKind::kException;
      event.text = "RuntimeError: [pair.cc:538] Read error [127.0.0.1]:26510: Connection reset by peer";
      event.file = rank.log_file = "log_" + std::to_string(i) + ".txt";
      event.rank = rank.rank;
      rank.log.push_back(event);
      event.kind = evidence::LogEventKind::kPeerReset;
      rank.log.push_back(event);
    } else if (shape.with_stacks && state.end != RankEnd::kDone) {
      const Action& at = plan.programs[i][std::min(state.next, plan.programs[i].size() - 1)];
      rank.stacks.push_back(MainStack(at, state.end));
    }
    job.evidence.ranks.push_back(std::move(rank));
  }
  return job;
}

void LoseRecords(BrokenJob& job, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < count; ++i) {
    evidence::RankEvidence& rank = job.evidence.ranks[random() % job.evidence.ranks.size()];
    rank.record.reset();
    rank.stacks.clear();
    rank.log.clear();
    rank.liveness = evidence::Liveness::kUnknown;
    rank.exit_signal = 0;
  }
  job.name += " lost" + std::to_string(count);
}

}  // namespace lockstep::hang_test
