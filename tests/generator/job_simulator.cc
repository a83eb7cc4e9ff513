#include "generator/job_simulator.h"

#include <algorithm>
#include <map>
#include <string>

#include "generator/layer_program.h"
#include "generator/rank_simulator.h"

namespace lockstep::tracegen {
namespace {

constexpr int64_t kLayerElements = 7'087'872;
constexpr uint8_t kDataStream = 20;
constexpr uint8_t kTensorStream = 24;
constexpr uint8_t kPipelineStream = 28;
constexpr int64_t kMessageElements = 2'097'152;

size_t SlotOf(uint8_t stream) { return stream == kTensorStream ? 1 : stream == kPipelineStream ? 2 : 0; }

class JobSimulator {
 public:
  JobSimulator(const TraceSpec& spec, JobLog* job) : spec_(spec), job_(job), program_(MakeLayerProgram(&job->names)) {
    job_->ranks.resize(static_cast<size_t>(spec.rank_count));
    MakeGroups();
    sequences_.assign(job_->groups.size(), 0);
    for (int32_t rank = 0; rank < spec.rank_count; ++rank) ranks_.emplace_back(spec, rank, job);
    gather_ready_ns_.assign(ranks_.size(), 0);
    gradient_ready_ns_.assign(ranks_.size(), 0);
    for (size_t r = 0; r < ranks_.size(); ++r) everyone_.push_back(r);
    active_ = everyone_;
    names_.loader = job->names.Intern("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    names_.forward = job->names.Intern("DistributedDataParallel.forward");
    names_.optimizer = job->names.Intern("Optimizer.step#AdamW.step");
    names_.zero_grad = job->names.Intern("Optimizer.zero_grad#AdamW.zero_grad");
    names_.copy_to = job->names.Intern("aten::to");
    names_.to_copy = job->names.Intern("aten::_to_copy");
    names_.copy_ = job->names.Intern("aten::copy_");
    names_.zero_ = job->names.Intern("aten::zero_");
    names_.item = job->names.Intern("aten::item");
    names_.local_scalar = job->names.Intern("aten::_local_scalar_dense");
    names_.copy_call = job->names.Intern("cudaMemcpyAsync");
    names_.set_call = job->names.Intern("cudaMemsetAsync");
    names_.synchronize = job->names.Intern("cudaStreamSynchronize");
    names_.to_device = job->names.Intern("Memcpy HtoD (Pageable -> Device)");
    names_.to_host = job->names.Intern("Memcpy DtoH (Device -> Pageable)");
    names_.set = job->names.Intern("Memset (Device)");
    names_.python_call = job->names.Intern("torch/nn/modules/module.py(1532): _call_impl");
    for (int32_t layer = 0; layer < spec.layer_count; ++layer) {
      modules_.push_back(job->names.Intern("nn.Module: Block_" + std::to_string(layer)));
    }
  }

  void RunStep(int32_t step) {
    step_ = step;
    if (spec_.pipeline_parallel > 1) {
      RunPipelineStep(step);
      return;
    }
    for (size_t r = 0; r < ranks_.size(); ++r) Load(r, step);
    if (spec_.sharded) Gather(0, kMainThread);
    for (int32_t layer = 0; layer < spec_.layer_count; ++layer) ForwardLayer(layer, step);
    for (size_t r = 0; r < ranks_.size(); ++r) EndForward(r);
    if (spec_.sharded) Gather(spec_.layer_count - 1, kAutogradThread);
    const int32_t buckets = (spec_.layer_count + spec_.bucket_layers - 1) / spec_.bucket_layers;
    const auto early = static_cast<int32_t>(spec_.overlap_ratio * buckets + 0.5);
    int32_t held = 0;
    for (int32_t layer = spec_.layer_count - 1; layer >= 0; --layer) {
      BackwardLayer(layer, step);
      const int32_t done = spec_.layer_count - layer;
      if (spec_.sharded) {
        SendGradients("_reduce_scatter_base", 1);
      } else if (done % spec_.bucket_layers == 0 || layer == 0) {
        const int32_t bucket = (done - 1) / spec_.bucket_layers;
        if (bucket < early) {
          SendGradients("allreduce", spec_.bucket_layers);
        } else {
          ++held;
        }
      }
    }
    for (; held > 0; --held) SendGradients("allreduce", spec_.bucket_layers);
    for (size_t r = 0; r < ranks_.size(); ++r) Optimize(r);
  }

  /// Forward through all stages micro-batch by micro-batch, backward likewise, then the gradients of every stage.
  void RunPipelineStep(int32_t step) {
    for (size_t r = 0; r < ranks_.size(); ++r) Load(r, step);
    const int32_t stages = spec_.pipeline_parallel;
    for (micro_batch_ = 0; micro_batch_ < spec_.micro_batches; ++micro_batch_) {
      for (int32_t stage = 0; stage < stages; ++stage) {
        active_ = RanksOfStage(stage);
        for (int32_t layer = 0; layer < spec_.layer_count; ++layer) ForwardLayer(layer, step);
        if (stage + 1 < stages) SendToStage(stage + 1, kMainThread);
      }
    }
    micro_batch_ = 0;
    active_ = everyone_;
    for (const size_t r : active_) EndForward(r);
    for (int32_t batch = 0; batch < spec_.micro_batches; ++batch) {
      for (int32_t stage = stages - 1; stage >= 0; --stage) {
        active_ = RanksOfStage(stage);
        for (int32_t layer = spec_.layer_count - 1; layer >= 0; --layer) BackwardLayer(layer, step);
        if (stage > 0) SendToStage(stage - 1, kAutogradThread);
      }
    }
    active_ = everyone_;
    const bool has_replicas = spec_.rank_count > stages * spec_.tensor_parallel;
    for (int32_t layer = 0; layer < spec_.layer_count && has_replicas; layer += spec_.bucket_layers) {
      SendGradients("allreduce", spec_.bucket_layers);
    }
    if (spec_.gradient_norm) {
      for (const size_t r : active_) Issue(r, kAutogradThread, 0, "allreduce", 1, true, false);
      Resolve(spec_.transfer_ns / 16);
    }
    for (size_t r = 0; r < ranks_.size(); ++r) Optimize(r);
  }

  int64_t LatestHost() const {
    int64_t latest = 0;
    for (const RankSimulator& rank : ranks_) latest = std::max(latest, rank.host_ns(kMainThread));
    return latest;
  }

 private:
  void MakeGroups() {
    GroupLog all{"0", "default_pg", {}, kDataStream};
    for (int32_t rank = 0; rank < spec_.rank_count; ++rank) all.ranks.push_back(rank);
    job_->groups.push_back(all);
    data_group_.assign(all.ranks.size(), 0);
    tensor_group_.assign(all.ranks.size(), 0);
    const int32_t width = spec_.tensor_parallel;
    if (width <= 1 && spec_.pipeline_parallel <= 1) return;
    for (int32_t first = 0; first < spec_.rank_count && width > 1; first += width) {
      GroupLog group{std::to_string(job_->groups.size()), "tensor_parallel", {}, kTensorStream};
      for (int32_t rank = first; rank < std::min(first + width, spec_.rank_count); ++rank) {
        group.ranks.push_back(rank);
        tensor_group_[static_cast<size_t>(rank)] = static_cast<uint32_t>(job_->groups.size());
      }
      job_->groups.push_back(group);
    }
    const int32_t replica = width * spec_.pipeline_parallel;
    for (int32_t first = 0; first < replica; ++first) {
      GroupLog group{std::to_string(job_->groups.size()), "data_parallel", {}, kDataStream};
      for (int32_t rank = first; rank < spec_.rank_count; rank += replica) {
        group.ranks.push_back(rank);
        data_group_[static_cast<size_t>(rank)] = static_cast<uint32_t>(job_->groups.size());
      }
      job_->groups.push_back(group);
    }
    pipeline_group_.assign(all.ranks.size(), 0);
    for (int32_t first = 0; first < spec_.rank_count && spec_.pipeline_parallel > 1; ++first) {
      if (first % replica >= width) continue;
      GroupLog group{std::to_string(job_->groups.size()), "pipeline_parallel", {}, kPipelineStream};
      for (int32_t rank = first; rank < first + replica; rank += width) {
        group.ranks.push_back(rank);
        pipeline_group_[static_cast<size_t>(rank)] = static_cast<uint32_t>(job_->groups.size());
      }
      job_->groups.push_back(group);
    }
  }

  std::vector<size_t> RanksOfStage(int32_t stage) const {
    std::vector<size_t> ranks;
    for (const size_t r : everyone_) {
      if (static_cast<int32_t>(r) / spec_.tensor_parallel % spec_.pipeline_parallel == stage) ranks.push_back(r);
    }
    return ranks;
  }

  /// From the active stage to its neighbour. The receiver's compute waits for it, the sender's does not.
  void SendToStage(int32_t stage, uint8_t lane) {
    const std::vector<size_t> receivers = RanksOfStage(stage);
    for (size_t i = 0; i < active_.size(); ++i) {
      CollectiveLog log;
      log.group = pipeline_group_[active_[i]];
      log.sequence = sequences_[log.group]++;
      log.name = "send";
      log.in_elements = log.out_elements = kMessageElements;
      log.sender = static_cast<int32_t>(active_[i]);
      log.ranks = {log.sender, static_cast<int32_t>(receivers[i])};
      const auto index = static_cast<uint32_t>(job_->collectives.size());
      job_->collectives.push_back(log);
      for (const int32_t r : log.ranks) {
        PendingCollective pending = ranks_[static_cast<size_t>(r)].Issue(lane, index, kPipelineStream, true);
        pending.blocks_compute = r != log.sender;
        pending_[index].push_back(pending);
      }
    }
    Resolve(spec_.transfer_ns / 8);
    TakeGathered();
  }

  static bool Affects(const PlantedStraggler& planted, int32_t step) {
    if (planted.every <= 0) return !planted.step || *planted.step == step;
    const int32_t since = step - planted.step.value_or(0);
    return since >= 0 && since % planted.every == 0;
  }

  /// The delay planted for a rank in a step, of one way of being slow.
  int64_t Delay(size_t r, int32_t step, SlowBy by) const {
    int64_t delay_ns = 0;
    for (const PlantedStraggler& planted : spec_.stragglers) {
      if (static_cast<size_t>(planted.rank) != r || planted.by != by) continue;
      if (!Affects(planted, step)) continue;
      delay_ns += planted.delay_ns;
    }
    return delay_ns;
  }

  void Load(size_t r, int32_t step) {
    RankSimulator& rank = ranks_[r];
    extra_ns_.resize(ranks_.size());
    const int64_t kernels = std::max<int64_t>(program_.KernelCount(spec_.layer_count), 1);
    const int64_t batches = spec_.pipeline_parallel > 1 ? spec_.micro_batches : 1;
    extra_ns_[r] = Delay(r, step, SlowBy::kKernel) / (kernels * batches);
    rank.BeginStep("ProfilerStep#" + std::to_string(spec_.first_step + step));
    const size_t loader = rank.Open(kMainThread, EventKind::kUserAnnotation, names_.loader);
    rank.Spend(kMainThread, spec_.loader_ns + Delay(r, step, SlowBy::kLoader));
    rank.Close(loader, kMainThread);
    for (int copy = 0; copy < 2; ++copy) {
      const size_t to = rank.Open(kMainThread, EventKind::kCpuOp, names_.copy_to);
      const size_t to_copy = rank.Open(kMainThread, EventKind::kCpuOp, names_.to_copy);
      const size_t inner = rank.Open(kMainThread, EventKind::kCpuOp, names_.copy_);
      const int64_t copy_ns = 41'000 + rank.Random(3'000);
      rank.Copy(kMainThread, names_.to_device, names_.copy_call, copy_ns + Delay(r, step, SlowBy::kCopy) / 2);
      rank.Close(inner, kMainThread);
      rank.Close(to_copy, kMainThread);
      rank.Close(to, kMainThread);
    }
    const size_t zero_grad = rank.Open(kMainThread, EventKind::kUserAnnotation, names_.zero_grad);
    const size_t zero = rank.Open(kMainThread, EventKind::kCpuOp, names_.zero_);
    rank.Set(kMainThread, names_.set, names_.set_call, 5'000 + rank.Random(500));
    rank.Close(zero, kMainThread);
    rank.Close(zero_grad, kMainThread);
    rank.Spend(kMainThread, Delay(r, step, SlowBy::kUnrecorded));
    forward_rows_.resize(ranks_.size());
    forward_rows_[r] = rank.Open(kMainThread, EventKind::kUserAnnotation, names_.forward);
  }

  void ForwardLayer(int32_t layer, int32_t step) {
    TakeGathered();
    if (spec_.sharded && layer + 1 < spec_.layer_count) Gather(layer + 1, kMainThread);
    for (const size_t r : active_) {
      RankSimulator& rank = ranks_[r];
      if (layer == spec_.layer_count / 2 && micro_batch_ == 0) Stall(r, step);
      size_t call = 0;
      size_t module = 0;
      if (spec_.stacks) {
        call = rank.Open(kMainThread, EventKind::kPythonFunction, names_.python_call);
        module = rank.Open(kMainThread, EventKind::kPythonFunction, modules_[static_cast<size_t>(layer)]);
      }
      for (const OpSpec& op : program_.forward) rank.Run(kMainThread, op, extra_ns_[r], false);
      if (spec_.stacks) {
        rank.Close(module, kMainThread);
        rank.Close(call, kMainThread);
      }
    }
    if (spec_.tensor_parallel > 1) {
      for (const size_t r : active_) Issue(r, kMainThread, tensor_group_[r], "allreduce", 4'194'304, true, true);
      Resolve(spec_.transfer_ns / 8);
      TakeGathered();
    }
  }

  /// What is planted in the middle of the forward pass.
  void Stall(size_t r, int32_t step) {
    RankSimulator& rank = ranks_[r];
    rank.Spend(kMainThread, Delay(r, step, SlowBy::kHost));
    const auto in_range = [&](SlowBy by, EventKind kind, const char* name) {
      const int64_t delay_ns = Delay(r, step, by);
      if (delay_ns == 0) return;
      const size_t row = rank.Open(kMainThread, kind, job_->names.Intern(name));
      rank.Spend(kMainThread, delay_ns);
      rank.Close(row, kMainThread);
    };
    in_range(SlowBy::kOperator, EventKind::kCpuOp, "aten::nonzero");
    in_range(SlowBy::kCollector, EventKind::kUserAnnotation, "gc.collect");
    in_range(SlowBy::kCheckpoint, EventKind::kUserAnnotation, "torch.save");
    if (const int64_t delay_ns = Delay(r, step, SlowBy::kAllocator); delay_ns > 0) {
      const size_t row = rank.Open(kMainThread, EventKind::kCpuOp, job_->names.Intern("aten::empty_strided"));
      rank.Call(kMainThread, job_->names.Intern("cudaMalloc"), delay_ns);
      rank.Close(row, kMainThread);
    }
    rank.DelayNextKernel(Delay(r, step, SlowBy::kLaunch));
  }

  void EndForward(size_t r) {
    RankSimulator& rank = ranks_[r];
    rank.Close(forward_rows_[r], kMainThread);
    const int32_t stages = spec_.pipeline_parallel;
    const bool has_loss = static_cast<int32_t>(r) / spec_.tensor_parallel % stages == stages - 1;
    if (has_loss) rank.Run(kMainThread, program_.loss, 0, false);
    rank.set_host_ns(kAutogradThread, rank.host_ns(kMainThread) + 18'000);
    if (has_loss) rank.Run(kAutogradThread, program_.loss_backward, 0, true);
  }

  void BackwardLayer(int32_t layer, int32_t) {
    TakeGathered();
    if (spec_.sharded && layer > 0) Gather(layer - 1, kAutogradThread);
    for (const size_t r : active_) {
      for (const OpSpec& op : program_.backward) ranks_[r].Run(kAutogradThread, op, extra_ns_[r], true);
    }
  }

  void Gather(int32_t, uint8_t lane) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Issue(r, lane, data_group_[r], "_allgather_base", kLayerElements, false, true);
    }
    Resolve(spec_.transfer_ns / 4);
  }

  void SendGradients(const char* name, int32_t layers) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Issue(r, kAutogradThread, data_group_[r], name, kLayerElements * layers, true, false);
    }
    Resolve(spec_.transfer_ns);
  }

  void Optimize(size_t r) {
    RankSimulator& rank = ranks_[r];
    rank.set_host_ns(kMainThread, rank.host_ns(kAutogradThread) + 12'000);
    rank.WaitUntil(gradient_ready_ns_[r]);
    const size_t optimizer = rank.Open(kMainThread, EventKind::kUserAnnotation, names_.optimizer);
    for (int32_t layer = 0; layer < spec_.layer_count; ++layer) {
      for (const OpSpec& op : program_.optimizer) rank.Run(kMainThread, op, 0, false);
    }
    rank.Close(optimizer, kMainThread);
    const size_t item = rank.Open(kMainThread, EventKind::kCpuOp, names_.item);
    const size_t scalar = rank.Open(kMainThread, EventKind::kCpuOp, names_.local_scalar);
    rank.Copy(kMainThread, names_.to_host, names_.copy_call, 1'600 + rank.Random(300));
    rank.Synchronize(kMainThread, names_.synchronize);
    rank.Close(scalar, kMainThread);
    rank.Close(item, kMainThread);
    rank.EndStep();
  }

  void Issue(size_t r, uint8_t lane, uint32_t group, const char* name, int64_t elements, bool waits_for_compute,
             bool blocks_compute) {
    auto [found, added] = open_.try_emplace(group, static_cast<uint32_t>(job_->collectives.size()));
    if (added) {
      CollectiveLog log;
      log.group = group;
      log.sequence = sequences_[group]++;
      log.name = name;
      const auto size = static_cast<int64_t>(job_->groups[group].ranks.size());
      const bool gather = std::string_view(name) == "_allgather_base";
      const bool scatter = std::string_view(name) == "_reduce_scatter_base";
      log.in_elements = gather ? elements / size : elements;
      log.out_elements = scatter ? elements / size : elements;
      job_->collectives.push_back(log);
    }
    PendingCollective pending = ranks_[r].Issue(lane, found->second, job_->groups[group].stream, waits_for_compute);
    pending.blocks_compute = blocks_compute;
    job_->collectives[found->second].ranks.push_back(static_cast<int32_t>(r));
    pending_[found->second].push_back(pending);
  }

  void Resolve(int64_t transfer_ns) {
    for (auto& [index, members] : pending_) {
      CollectiveLog& log = job_->collectives[index];
      const size_t slot = SlotOf(job_->groups[log.group].stream);
      int64_t last_ns = 0;
      int64_t slower_ns = 0;
      for (const int32_t member : log.ranks) slower_ns += Delay(static_cast<size_t>(member), step_, SlowBy::kLink);
      for (size_t i = 0; i < members.size(); ++i) {
        const RankSimulator& rank = ranks_[static_cast<size_t>(log.ranks[i])];
        log.arrival_ns.push_back(std::max(members[i].ready_ns, rank.stream_free_ns(slot) + 1'000));
        last_ns = std::max(last_ns, log.arrival_ns.back());
      }
      for (size_t i = 0; i < members.size(); ++i) {
        const auto r = static_cast<size_t>(log.ranks[i]);
        const int64_t end_ns = last_ns + transfer_ns + slower_ns + ranks_[r].Random(spec_.jitter_ns);
        log.end_ns.push_back(end_ns);
        ranks_[r].Complete(members[i], log.arrival_ns[i], end_ns);
        ranks_[r].set_stream_free_ns(slot, end_ns);
        int64_t& ready_ns = members[i].blocks_compute ? gather_ready_ns_[r] : gradient_ready_ns_[r];
        ready_ns = std::max(ready_ns, end_ns + 1'500);
      }
    }
    pending_.clear();
    open_.clear();
  }

  /// Compute waits for the collectives it needs.
  void TakeGathered() {
    for (size_t r = 0; r < ranks_.size(); ++r) ranks_[r].WaitUntil(gather_ready_ns_[r]);
  }

  struct Names {
    uint32_t loader, forward, optimizer, zero_grad, copy_to, to_copy, copy_, zero_, item, local_scalar;
    uint32_t copy_call, set_call, synchronize, to_device, to_host, set, python_call;
  };

  const TraceSpec& spec_;
  JobLog* job_;
  LayerProgram program_;
  Names names_;
  std::vector<uint32_t> modules_;
  std::vector<RankSimulator> ranks_;
  std::vector<uint32_t> data_group_;
  std::vector<uint32_t> tensor_group_;
  std::vector<uint32_t> pipeline_group_;
  std::vector<size_t> everyone_;
  std::vector<size_t> active_;  ///< The ranks that run now: of one pipeline stage, or all.
  int32_t step_ = 0;
  int32_t micro_batch_ = 0;
  std::vector<uint32_t> sequences_;
  std::vector<int64_t> extra_ns_;
  std::vector<size_t> forward_rows_;
  std::vector<int64_t> gather_ready_ns_;
  std::vector<int64_t> gradient_ready_ns_;
  std::map<uint32_t, uint32_t> open_;                           ///< Group to the collective now being issued.
  std::map<uint32_t, std::vector<PendingCollective>> pending_;  ///< By collective.
};

}  // namespace

JobLog SimulateJob(const TraceSpec& spec, int32_t step_count) {
  JobLog job;
  job.start_ns = kJobStartNs;
  JobSimulator simulator(spec, &job);
  for (int32_t step = 0; step < step_count; ++step) simulator.RunStep(step);
  job.end_ns = simulator.LatestHost() + 50'000;
  return job;
}

}  // namespace lockstep::tracegen
