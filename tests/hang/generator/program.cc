#include "program.h"

#include <algorithm>

namespace lockstep::hang_test {
namespace {

struct Coordinates {
  int32_t tensor, data, stage;
};

class Planner {
 public:
  Planner(const JobShape& shape, Fault fault, std::mt19937_64& random)
      : shape_(shape), fault_(fault), random_(random) {}

  Plan Make() {
    MakeGroups();
    plan_.programs.resize(static_cast<size_t>(shape_.World()));
    PickCulprits();
    for (int32_t rank = 0; rank < shape_.World(); ++rank) {
      WriteProgram(rank);
    }
    std::sort(plan_.culprits.begin(), plan_.culprits.end());
    return std::move(plan_);
  }

 private:
  Coordinates Of(int32_t rank) const {
    return {rank % shape_.tensor, rank / shape_.tensor % shape_.data, rank / (shape_.tensor * shape_.data)};
  }
  int32_t RankAt(const Coordinates& at) const { return (at.stage * shape_.data + at.data) * shape_.tensor + at.tensor; }

  int32_t AddGroup(const std::string& description, std::vector<int32_t> ranks) {
    const auto index = static_cast<int32_t>(plan_.groups.size());
    plan_.groups.push_back({std::to_string(index), description, std::move(ranks)});
    return index;
  }

  template <typename Same>
  void AddGroups(const std::string& description, std::vector<int32_t>& group_of, const Same& same) {
    group_of.assign(static_cast<size_t>(shape_.World()), -1);
    for (int32_t rank = 0; rank < shape_.World(); ++rank) {
      if (group_of[static_cast<size_t>(rank)] >= 0) {
        continue;
      }
      std::vector<int32_t> members;
      for (int32_t other = rank; other < shape_.World(); ++other) {
        if (same(Of(rank), Of(other))) {
          members.push_back(other);
        }
      }
      const int32_t index = AddGroup(description, members);
      for (const int32_t member : members) {
        group_of[static_cast<size_t>(member)] = index;
      }
    }
  }

  void MakeGroups() {
    std::vector<int32_t> everybody(static_cast<size_t>(shape_.World()));
    for (size_t i = 0; i < everybody.size(); ++i) {
      everybody[i] = static_cast<int32_t>(i);
    }
    AddGroup("default_pg", everybody);
    if (shape_.program != Program::kMegatron) {
      const int32_t all = AddGroup("DATA_PARALLEL_GROUP", everybody);
      tensor_.assign(everybody.size(), all);
      data_ = tensor_;
      return;
    }
    AddGroups("TENSOR_MODEL_PARALLEL_GROUP", tensor_,
              [](const Coordinates& a, const Coordinates& b) { return a.data == b.data && a.stage == b.stage; });
    AddGroups("DATA_PARALLEL_GROUP", data_,
              [](const Coordinates& a, const Coordinates& b) { return a.tensor == b.tensor && a.stage == b.stage; });
    if (shape_.pipeline > 1) {
      AddGroups("PIPELINE_MODEL_PARALLEL_GROUP", pipeline_,
                [](const Coordinates& a, const Coordinates& b) { return a.tensor == b.tensor && a.data == b.data; });
    }
    if (fault_ == Fault::kCross) {
      second_ = AddGroup("METRICS_GROUP", everybody);
    }
  }

  int32_t Below(int32_t bound) { return static_cast<int32_t>(random_() % static_cast<uint64_t>(bound)); }

  void PickCulprits() {
    const int32_t world = shape_.World();
    if (fault_ == Fault::kNone) {
      return;
    }
    if (fault_ == Fault::kCross) {
      for (int32_t rank = world / 2; rank < world; ++rank) {
        plan_.culprits.push_back(rank);
      }
      return;
    }
    int32_t culprit = Below(world);
    if (fault_ == Fault::kMissingRecv) {
      // Of a stage that receives activations.
      Coordinates at = Of(culprit);
      at.stage = 1 + Below(shape_.pipeline - 1);
      culprit = RankAt(at);
    }
    plan_.culprits.push_back(culprit);
    const bool two = world >= 16 && fault_ == Fault::kStuck && Below(3) == 0;
    if (two) {
      plan_.culprits.push_back((culprit + world / 2) % world);
    }
    if (shape_.program != Program::kMegatron)
      fault_step_ = shape_.steps - 2 - Below(2);  // It goes on after it.
    else
      fault_step_ = shape_.steps - 1 - (shape_.steps > 2 ? Below(2) : 0);
    spot_ = Below(shape_.program == Program::kMegatron ? 4 : 64);
  }

  bool IsCulprit(int32_t rank) const {
    return std::find(plan_.culprits.begin(), plan_.culprits.end(), rank) != plan_.culprits.end();
  }

  Action Collective(int32_t group, std::string operation, std::vector<int64_t> input, std::vector<int64_t> output,
                    std::string function, int32_t line) const {
    Action action;
    action.kind = Action::Kind::kCollective;
    action.group = group;
    action.operation = std::move(operation);
    action.input = std::move(input);
    action.output = std::move(output);
    action.function = std::move(function);
    action.line = line;
    return action;
  }

  static Action Work(int64_t nanoseconds, const std::string& function, int32_t line) {
    Action action;
    action.work_ns = nanoseconds;
    action.function = function;
    action.line = line;
    return action;
  }

  Action P2p(int32_t rank, int32_t stage_offset, bool is_send, int32_t line) const {
    Coordinates at = Of(rank);
    at.stage += stage_offset;
    Action action;
    action.kind = is_send ? Action::Kind::kSend : Action::Kind::kRecv;
    action.group = pipeline_[static_cast<size_t>(rank)];
    action.peer = RankAt(at);
    action.operation = is_send ? "send" : "recv";
    action.input = action.output = {16, 32};
    action.function = "pipe";
    action.line = line;
    return action;
  }

  void WriteProgram(int32_t rank) {
    std::vector<Action>& program = plan_.programs[static_cast<size_t>(rank)];
    for (int32_t step = 0; step < shape_.steps; ++step) {
      std::vector<Action> actions = shape_.program == Program::kMegatron ? Step(rank, step) : FlatStep(step);
      if (IsCulprit(rank) && (step == fault_step_ || fault_ == Fault::kSlow)) {
        Break(actions);
      }
      program.insert(program.end(), actions.begin(), actions.end());
    }
  }

  std::vector<Action> Step(int32_t rank, int32_t step) {
    const auto index = static_cast<size_t>(rank);
    const Coordinates at = Of(rank);
    const int32_t tp = tensor_[index];
    const int32_t dp = data_[index];
    const bool piped = shape_.pipeline > 1;
    std::vector<Action> list;
    list.push_back(Work(1'000'000 + static_cast<int64_t>(random_() % 200'000), "next_batch", 52));
    if (piped && at.stage > 0) {
      list.push_back(P2p(rank, -1, false, 86));
    }
    list.push_back(Collective(tp, "all_reduce", {64, 32}, {64, 32}, "forward", 58));
    list.push_back(Collective(tp, "all_reduce", {64, 32}, {64, 32}, "forward", 61));
    if (piped && at.stage + 1 < shape_.pipeline) {
      list.push_back(P2p(rank, 1, true, 87));
      list.push_back(P2p(rank, 1, false, 88));
    }
    list.push_back(Collective(tp, "all_reduce", {64, 32}, {64, 32}, "backward", 67));
    if (piped && at.stage > 0) {
      list.push_back(P2p(rank, -1, true, 89));
    }
    const int64_t members = shape_.data;
    Action gather =
        Collective(dp, shape_.nccl ? "_all_gather_base" : "all_gather", {256}, {members, 256}, "gather_params", 64);
    if (shape_.coalesced) {
      gather.launch = step + 1;
      list.push_back(gather);
      gather.input = {512};
      gather.output = {members, 512};
    }
    list.push_back(gather);
    list.push_back(Collective(dp, "all_reduce", {4096}, {4096}, "grad_sync", 71));
    list.push_back(Work(200'000, "optimizer", 73));
    list.push_back(Collective(0, "all_reduce", {1}, {1}, "clip", 74));
    if (fault_ == Fault::kCross) {
      const bool other_way = step == shape_.steps - 1 && IsCulprit(rank);
      Action loss = Collective(0, "all_reduce", {2}, {2}, "log_loss", other_way ? 78 : 76);
      Action metrics = Collective(second_, "all_reduce", {3}, {3}, "log_metrics", other_way ? 77 : 79);
      list.push_back(other_way ? metrics : loss);
      AddSync(list);
      list.push_back(other_way ? loss : metrics);
      AddSync(list);
    }
    list.push_back(Collective(0, shape_.nccl ? "all_reduce_barrier" : "barrier", {}, {}, "save_checkpoint", 80));
    AddSync(list);
    return list;
  }

  /// Of a job whose groups all hold every rank: the host calls what the step needs, then waits for its loss.
  std::vector<Action> FlatStep(int32_t step) {
    const int32_t all = data_.front();
    std::vector<Action> list;
    if (step == 0) list.push_back(Collective(0, "broadcast", {64, 64}, {64, 64}, "load_weights", 31));
    list.push_back(Work(1'000'000 + static_cast<int64_t>(random_() % 200'000), "next_batch", 52));
    if (shape_.program == Program::kDdp) {
      for (const int64_t bucket : {10'000, 20'000, 30'000}) {
        list.push_back(Collective(all, "all_reduce", {bucket}, {bucket}, "backward", 121));
      }
    } else {
      const int64_t whole = 4096 * static_cast<int64_t>(shape_.World());
      for (int layer = 0; layer < 2; ++layer) {
        list.push_back(Collective(all, "_all_gather_base", {4096}, {whole}, "unshard", 141));
      }
      for (int layer = 0; layer < 2; ++layer) {
        list.push_back(Collective(all, "_reduce_scatter_base", {whole}, {4096}, "reduce_gradients", 147));
      }
    }
    list.push_back(Collective(0, "all_reduce", {1}, {1}, "clip", 160));
    if (step % 3 == 2) list.push_back(Collective(0, "all_reduce", {3}, {3}, "log_metrics", 171));
    AddSync(list);
    return list;
  }

  static void AddSync(std::vector<Action>& list) {
    Action sync;
    sync.kind = Action::Kind::kSync;
    sync.function = "train";
    sync.line = 93;
    list.push_back(sync);
  }

  /// A group of one holds nobody up.
  bool IsShared(const Action& action) const { return plan_.groups[static_cast<size_t>(action.group)].ranks.size() > 1; }

  size_t NthCollective(const std::vector<Action>& actions, int32_t wanted) const {
    std::vector<size_t> places;
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].kind == Action::Kind::kCollective && actions[i].launch == 0 && IsShared(actions[i]) &&
          actions[i].operation.find("barrier") == std::string::npos) {
        places.push_back(i);
      }
    }
    return places[static_cast<size_t>(wanted) % places.size()];
  }

  void Break(std::vector<Action>& actions) {
    const auto find = [&](const char* function) {
      for (size_t i = 0; i < actions.size(); ++i) {
        if (actions[i].function == function) {
          return i;
        }
      }
      return size_t{0};
    };
    switch (fault_) {
      case Fault::kNone:
      case Fault::kCross: break;
      case Fault::kSkip: {
        const bool flat = shape_.program != Program::kMegatron;
        const size_t at = !flat && spot_ % 2 == 0 ? find("clip") : NthCollective(actions, spot_);
        actions.erase(actions.begin() + static_cast<ptrdiff_t>(at));
        break;
      }
      case Fault::kExtra: {
        if (shape_.program != Program::kMegatron) {
          Action extra = Collective(spot_ % 3 == 0 ? 0 : data_.front(), "all_gather", {7},
                                    {7 * int64_t{shape_.World()}}, "evaluate", 201);
          const size_t before = spot_ % 2 == 0 ? find("clip") : NthCollective(actions, spot_ / 2);
          actions.insert(actions.begin() + static_cast<ptrdiff_t>(before), extra);
          break;
        }
        const size_t at = find(spot_ % 2 == 0 || shape_.data == 1 ? "clip" : "grad_sync");
        Action extra = actions[at];
        extra.operation = "broadcast";
        extra.input = extra.output = {7};
        extra.function = "evaluate";
        extra.line = 112;
        actions.insert(actions.begin() + static_cast<ptrdiff_t>(at), extra);
        break;
      }
      case Fault::kSwap: {
        const bool flat = shape_.program != Program::kMegatron;
        const size_t at = flat ? find(shape_.program == Program::kDdp ? "backward" : "unshard") + 1
                               : find("gather_params") + (shape_.coalesced ? 1 : 0);
        Action& first = actions[at];
        Action& second = actions[at + 1];
        std::swap(first, second);
        first.line = 164;
        second.line = 171;
        break;
      }
      case Fault::kOperation: {
        Action& action = actions[NthCollective(actions, spot_)];
        action.operation = "reduce";
        break;
      }
      case Fault::kSize: {
        Action& action = actions[NthCollective(actions, spot_)];
        action.input[0] += 1;
        action.output[0] += 1;
        break;
      }
      case Fault::kDtype: actions[NthCollective(actions, spot_)].dtype = "Double"; break;
      case Fault::kStuck: actions.front().stops_here = true; break;
      case Fault::kDeviceStall: {
        Action& action = actions[NthCollective(actions, spot_)];
        (shape_.told_starts ? action.never_begins : action.device_dies) = true;
        break;
      }
      case Fault::kCrash: actions[NthCollective(actions, spot_)].dies_here = true; break;
      case Fault::kMissingRecv: actions.erase(actions.begin() + 1); break;
      case Fault::kSlow: actions.front().work_ns += 40'000'000; break;
    }
  }

  const JobShape& shape_;
  Fault fault_;
  std::mt19937_64& random_;
  Plan plan_;
  std::vector<int32_t> tensor_, data_, pipeline_;
  int32_t second_ = -1;
  int32_t fault_step_ = -1;
  int32_t spot_ = 0;
};

}  // namespace

Plan MakePlan(const JobShape& shape, Fault fault, std::mt19937_64& random) {
  return Planner(shape, fault, random).Make();
}

}  // namespace lockstep::hang_test
