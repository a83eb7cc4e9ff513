#include "analysis/what_if/operation_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace lockstep::analysis {
namespace {

using Kind = OperationKind;
using Indices = std::vector<uint32_t>;

constexpr std::array<std::pair<std::string_view, Kind>, 14> kTypes = {{
    {model::kForwardCompute, Kind::kForward},
    {model::kBackwardCompute, Kind::kBackward},
    {"forward-send", Kind::kForwardSend},
    {"forward-recv", Kind::kForwardReceive},
    {"backward-send", Kind::kBackwardSend},
    {"backward-recv", Kind::kBackwardReceive},
    {"params-all-gather", Kind::kParamsGather},
    {"grads-reduce-scatter", Kind::kGradsScatter},
    {"layernorm-grads-all-reduce", Kind::kLayernormReduce},
    {"embedding-grads-all-reduce", Kind::kEmbeddingReduce},
    {"separate-grads-all-reduce", Kind::kSeparateReduce},
    {"gc", Kind::kCollect},
    {"optimizer-clip-main-grad", Kind::kClip},
    {"optimizer", Kind::kOptimizer},
}};

// Two timers of one worker agree to this: a send may seem to end before the work whose result it carries.
constexpr int64_t kTimerSlackNs = 50'000;

/// One worker's operations in one step.
struct Worker {
  int32_t data_rank = 0;
  int32_t stage = 0;
  std::array<Indices, kOperationKindCount> by_kind;  // in order of sequence
  Indices compute;                                   // forward and backward, in order of start
  const Indices& of(Kind kind) const { return by_kind[static_cast<size_t>(kind)]; }
  Indices& of(Kind kind) { return by_kind[static_cast<size_t>(kind)]; }
};

/// One of the four streams of sends and receives.
struct TransferStream {
  Kind kind;
  Kind compute;
  bool receives;
  bool from_earlier_chunk;  // what it carries comes from, or goes to, the chunk before
};
constexpr std::array<TransferStream, 4> kStreams = {{
    {Kind::kForwardSend, Kind::kForward, false, false},
    {Kind::kForwardReceive, Kind::kForward, true, true},
    {Kind::kBackwardSend, Kind::kBackward, false, true},
    {Kind::kBackwardReceive, Kind::kBackward, true, false},
}};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const model::OperationTrace& trace, model::Ledger* ledger) : trace_(trace), ledger_(ledger) {
    const size_t count = trace.operations.size();
    schedule_.kinds.resize(count);
    schedule_.takes_part.assign(count, false);
    schedule_.group_of.assign(count, OperationSchedule::kNone);
    int32_t chunks = 1;
    for (const std::string& type : trace.types) kind_of_type_.push_back(KindOfType(type));
    for (const model::Operation& operation : trace.operations) {
      stage_count_ = std::max(stage_count_, operation.stage + 1);
      chunks = std::max(chunks, operation.model_chunk.value_or(0) + 1);
    }
    chunk_count_ = int64_t{chunks} * stage_count_;
  }

  OperationSchedule Build() {
    const auto& operations = trace_.operations;
    for (size_t begin = 0; begin < operations.size();) {
      size_t end = begin;
      while (end < operations.size() && operations[end].step == operations[begin].step) ++end;
      AddStep(begin, end);
      begin = end;
    }
    NoteOddities();
    return std::move(schedule_);
  }

 private:
  const model::Operation& at(uint32_t index) const { return trace_.operations[index]; }
  int64_t EndOf(uint32_t index) const { return at(index).start_ns + at(index).duration_ns; }
  void After(uint32_t from, uint32_t to) { schedule_.dependencies.push_back({from, to}); }
  void Chain(const Indices& chain) {
    for (size_t i = 1; i < chain.size(); ++i) After(chain[i - 1], chain[i]);
  }
  void SortByStart(Indices* indices) const {
    std::sort(indices->begin(), indices->end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(at(a).start_ns, at(a).sequence, a) < std::tuple(at(b).start_ns, at(b).sequence, b);
    });
  }

  void AddStep(size_t begin, size_t end);
  void AddWorker(Worker* worker);
  void TieTransfers(const Worker& worker, const TransferStream& stream, Indices* carried);
  void AddTail(const Worker& worker);
  void PairTransfers(const std::map<std::pair<int32_t, int32_t>, std::array<Indices, 4>>& carried);
  void GroupCollectives(const std::vector<Worker>& workers);
  bool NeedsTransfer(uint32_t compute, const TransferStream& stream) const;
  Indices WorkOfTransfers(const Worker& worker, const TransferStream& stream, Indices* transfers);
  void NoteOddities();

  const model::OperationTrace& trace_;
  model::Ledger* ledger_;
  OperationSchedule schedule_;
  std::vector<Kind> kind_of_type_;
  int32_t stage_count_ = 0;
  int64_t chunk_count_ = 0;
  uint64_t other_count_ = 0;
  uint64_t double_count_ = 0;
  uint64_t alone_count_ = 0;
  std::string first_other_;
};

void ScheduleBuilder::AddStep(size_t begin, size_t end) {
  std::vector<Worker> workers;
  for (size_t i = begin; i < end; ++i) {
    const model::Operation& operation = trace_.operations[i];
    if (workers.empty() || workers.back().data_rank != operation.data_rank || workers.back().stage != operation.stage) {
      workers.push_back({operation.data_rank, operation.stage, {}, {}});
    }
    const auto index = static_cast<uint32_t>(i);
    const Kind kind = schedule_.kinds[i] = kind_of_type_[operation.type];
    if (kind == Kind::kOther) {
      if (other_count_++ == 0) first_other_ = trace_.types[operation.type];
      continue;
    }
    Indices& same = workers.back().of(kind);
    if (!same.empty() && at(same.back()).sequence == operation.sequence) {
      ++double_count_;
      continue;
    }
    same.push_back(index);
    schedule_.takes_part[i] = true;
  }
  std::map<std::pair<int32_t, int32_t>, std::array<Indices, 4>> carried;
  for (Worker& worker : workers) {
    AddWorker(&worker);
    for (size_t s = 0; s < kStreams.size(); ++s) {
      TieTransfers(worker, kStreams[s], &carried[{worker.data_rank, worker.stage}][s]);
    }
    AddTail(worker);
  }
  PairTransfers(carried);
  GroupCollectives(workers);
}

void ScheduleBuilder::AddWorker(Worker* worker) {
  worker->compute = worker->of(Kind::kForward);
  const Indices& backward = worker->of(Kind::kBackward);
  worker->compute.insert(worker->compute.end(), backward.begin(), backward.end());
  SortByStart(&worker->compute);
  Chain(worker->compute);

  // A stage's first gradients are awaited while its last forward of the warm-up runs, so no earlier than behind the one
  // before it.
  const auto first = std::find_if(worker->compute.begin(), worker->compute.end(),
                                  [&](uint32_t i) { return schedule_.kinds[i] == Kind::kBackward; });
  if (first != worker->compute.end() && first - worker->compute.begin() >= 2) {
    for (const Kind kind : {Kind::kBackwardSend, Kind::kBackwardReceive}) {
      if (!worker->of(kind).empty()) After(*(first - 2), worker->of(kind).front());
    }
  }

  Indices collectives = worker->of(Kind::kParamsGather);
  const Indices& scatters = worker->of(Kind::kGradsScatter);
  collectives.insert(collectives.end(), scatters.begin(), scatters.end());
  SortByStart(&collectives);
  Chain(collectives);

  // A chunk's first forward waits for the last gather of its parameters.
  std::map<int32_t, uint32_t> gather_of;
  for (const uint32_t gather : worker->of(Kind::kParamsGather)) gather_of[at(gather).model_chunk.value_or(0)] = gather;
  for (const uint32_t compute : worker->compute) {
    if (schedule_.kinds[compute] != Kind::kForward) continue;
    const auto found = gather_of.find(at(compute).model_chunk.value_or(0));
    if (found == gather_of.end()) continue;
    After(found->second, compute);
    gather_of.erase(found);
  }
}

bool ScheduleBuilder::NeedsTransfer(uint32_t compute, const TransferStream& stream) const {
  const int64_t chunk = at(compute).global_chunk.value_or(at(compute).stage);
  return stream.from_earlier_chunk ? chunk > 0 : chunk + 1 < chunk_count_;
}

/// The forward or backward that each transfer of a stream brings input for or takes the result of. `transfers` loses
/// those that belong to none: with several chunks a stage, recorders also list sends and receives that were never done.
Indices ScheduleBuilder::WorkOfTransfers(const Worker& worker, const TransferStream& stream, Indices* transfers) {
  const Indices& all = worker.of(stream.compute);
  Indices needing;
  for (const uint32_t compute : all) {
    if (NeedsTransfer(compute, stream)) needing.push_back(compute);
  }
  if (transfers->size() == needing.size()) return needing;
  if (transfers->size() == all.size()) return all;
  if (stream.receives && transfers->size() + 1 == all.size()) return {all.begin() + 1, all.end()};
  if (all.empty()) {
    transfers->clear();
    return {};
  }
  int64_t last_start_ns = INT64_MIN;
  int64_t first_end_ns = INT64_MAX;
  for (const uint32_t compute : all) {
    last_start_ns = std::max(last_start_ns, at(compute).start_ns);
    first_end_ns = std::min(first_end_ns, EndOf(compute));
  }
  const size_t before = transfers->size();
  std::erase_if(*transfers, [&](uint32_t transfer) {
    return stream.receives ? at(transfer).start_ns > last_start_ns + kTimerSlackNs
                           : EndOf(transfer) < first_end_ns - kTimerSlackNs;
  });
  if (transfers->size() < before) return WorkOfTransfers(worker, stream, transfers);
  // A part is missing: the first ones are assumed to belong together.
  Indices work = needing.empty() ? all : needing;
  const size_t count = std::min(work.size(), transfers->size());
  alone_count_ += std::max(work.size(), transfers->size()) - count;
  work.resize(count);
  transfers->resize(count);
  return work;
}

void ScheduleBuilder::TieTransfers(const Worker& worker, const TransferStream& stream, Indices* carried) {
  Indices transfers = worker.of(stream.kind);
  SortByStart(&transfers);
  Chain(transfers);
  const Indices work = WorkOfTransfers(worker, stream, &transfers);
  const Indices& all = worker.of(stream.compute);
  for (size_t i = 0; i < transfers.size(); ++i) {
    if (NeedsTransfer(work[i], stream)) carried->push_back(transfers[i]);
    if (!stream.receives) {
      After(work[i], transfers[i]);
      continue;
    }
    After(transfers[i], work[i]);
    const auto own = std::find(all.begin(), all.end(), work[i]);
    if (own != all.begin() && own != all.end()) After(*(own - 1), transfers[i]);
  }
}

/// What follows the last backward: gc, the reductions, clipping, the optimizer.
void ScheduleBuilder::AddTail(const Worker& worker) {
  const Indices& scatters = worker.of(Kind::kGradsScatter);
  const bool overlaps = !worker.of(Kind::kSeparateReduce).empty();
  Indices tail;
  const auto append = [&](Kind kind) { tail.insert(tail.end(), worker.of(kind).begin(), worker.of(kind).end()); };
  if (!worker.compute.empty()) {
    tail.push_back(*std::max_element(worker.compute.begin(), worker.compute.end(),
                                     [&](uint32_t a, uint32_t b) { return EndOf(a) < EndOf(b); }));
  }
  append(Kind::kCollect);
  const size_t before_reduce = tail.size();
  append(Kind::kLayernormReduce);
  append(Kind::kEmbeddingReduce);
  append(overlaps ? Kind::kSeparateReduce : Kind::kGradsScatter);
  append(Kind::kClip);
  append(Kind::kOptimizer);
  Chain(tail);
  if (!overlaps) return;
  if (!scatters.empty() && before_reduce < tail.size()) After(scatters.back(), tail[before_reduce]);
  // A chunk's first scatter of gradients waits for its last backward.
  std::map<int32_t, uint32_t> scatter_of;
  for (const uint32_t scatter : scatters) scatter_of.emplace(at(scatter).model_chunk.value_or(0), scatter);
  std::map<int32_t, uint32_t> last_backward;
  for (const uint32_t compute : worker.compute) {
    if (schedule_.kinds[compute] == Kind::kBackward) last_backward[at(compute).model_chunk.value_or(0)] = compute;
  }
  for (const auto& [chunk, scatter] : scatter_of) {
    if (const auto found = last_backward.find(chunk); found != last_backward.end()) After(found->second, scatter);
  }
}

/// The nth send of a stage that carries anything is the nth receive of its neighbour.
void ScheduleBuilder::PairTransfers(const std::map<std::pair<int32_t, int32_t>, std::array<Indices, 4>>& carried) {
  for (const auto& [worker, streams] : carried) {
    const auto& [data_rank, stage] = worker;
    for (const size_t send : {size_t{0}, size_t{2}}) {
      const int32_t peer = (stage + (send == 0 ? 1 : stage_count_ - 1)) % stage_count_;
      const auto found = carried.find({data_rank, peer});
      const size_t received = found == carried.end() ? 0 : found->second[send + 1].size();
      for (size_t i = 0; i < std::min(received, streams[send].size()); ++i) {
        schedule_.group_of[streams[send][i]] = schedule_.group_of[found->second[send + 1][i]] = schedule_.group_count;
        ++schedule_.group_count;
      }
      if (received != streams[send].size()) {
        alone_count_ += std::max(received, streams[send].size()) - std::min(received, streams[send].size());
      }
    }
  }
}

void ScheduleBuilder::GroupCollectives(const std::vector<Worker>& workers) {
  // Of one kind and sequence: data-parallel neighbours of a stage; for the embedding the first and the last stage of a
  // pipeline; for clipping all workers.
  std::map<std::tuple<Kind, int32_t, int32_t>, uint32_t> groups;
  const auto join = [&](uint32_t index, int32_t among) {
    const auto key = std::tuple(schedule_.kinds[index], among, at(index).sequence);
    const auto [found, is_new] = groups.emplace(key, schedule_.group_count);
    if (is_new) ++schedule_.group_count;
    schedule_.group_of[index] = found->second;
  };
  for (const Worker& worker : workers) {
    for (const Kind kind : {Kind::kParamsGather, Kind::kGradsScatter, Kind::kSeparateReduce}) {
      for (const uint32_t index : worker.of(kind)) join(index, worker.stage);
    }
    for (const uint32_t index : worker.of(Kind::kEmbeddingReduce)) join(index, worker.data_rank);
    for (const uint32_t index : worker.of(Kind::kClip)) join(index, 0);
    // A send or receive without a partner is a transfer of its own.
    for (const TransferStream& stream : kStreams) {
      for (const uint32_t index : worker.of(stream.kind)) {
        if (schedule_.group_of[index] == OperationSchedule::kNone) schedule_.group_of[index] = schedule_.group_count++;
      }
    }
  }
}

void ScheduleBuilder::NoteOddities() {
  const auto note = [&](const char* code, uint64_t count, std::string message, const char* advice) {
    if (count == 0) return;
    model::LedgerEntry entry;
    entry.code = code;
    entry.count = count;
    entry.message = std::move(message);
    entry.advice = advice;
    ledger_->Add(std::move(entry));
  };
  note("operation_not_simulated", other_count_,
       fmt::format("operations of types that no schedule places, such as '{}', take no part in the simulation",
                   first_other_),
       "the simulation's own error says how much that matters");
  note("operation_twice", double_count_,
       "operations with worker, step, type and seq_id of another; the earlier one was taken",
       "record one device of each worker");
  note("transfer_unpaired", alone_count_, "sends or receives without their other end wait for nobody",
       "record all stages of a pipeline");
}

}  // namespace

OperationKind KindOfType(std::string_view type) {
  for (const auto& [name, kind] : kTypes) {
    if (type == name) return kind;
  }
  return Kind::kOther;
}

bool IsCommunication(OperationKind kind) {
  return kind != Kind::kForward && kind != Kind::kBackward && kind != Kind::kCollect && kind != Kind::kOptimizer &&
         kind != Kind::kOther;
}

OperationSchedule MakeSchedule(const model::OperationTrace& trace, model::Ledger* ledger) {
  return ScheduleBuilder(trace, ledger).Build();
}

}  // namespace lockstep::analysis
