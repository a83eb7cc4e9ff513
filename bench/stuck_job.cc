#include "stuck_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace lockstep::bench {
namespace {

using ingest::test::Dump;
using ingest::test::DumpOperation;

constexpr int32_t kTensorParallel = 8;
constexpr int kLayers = 12;
constexpr int64_t kFirstStep = 400;  // Before it everything was overwritten.

std::string Ranks(int32_t first, int32_t stride, int32_t count) {
  std::string text = "[";
  for (int32_t i = 0; i < count; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", first + i * stride);
  return text + "]";
}

struct Group {
  int64_t pg_id;
  std::string name;
  std::string description;
  int64_t next_sequence = 1;
};

// Frames of a training loop 24 calls deep; the innermost six depend on the place.
std::vector<size_t> Stack(Dump& dump, size_t place) {
  constexpr size_t kCommon = 18, kOwn = 6;
  if (dump.frames.empty()) {
    for (size_t i = 0; i < kCommon; ++i) {
      dump.frames.push_back({fmt::format("outer_{}", i), fmt::format("/opt/train/megatron/core/file_{}.py", i / 3),
                             static_cast<int64_t>(100 + 7 * i)});
    }
  }
  while (dump.frames.size() < kCommon + (place + 1) * kOwn) {
    const size_t i = dump.frames.size();
    dump.frames.push_back({fmt::format("call_{}", i), fmt::format("/opt/train/megatron/core/layer_{}.py", i / kOwn),
                           static_cast<int64_t>(40 + 3 * i)});
  }
  std::vector<size_t> stack;
  for (size_t i = 0; i < kOwn; ++i) stack.push_back(kCommon + place * kOwn + i);
  for (size_t i = 0; i < kCommon; ++i) stack.push_back(i);
  return stack;
}

}  // namespace

Dump DumpOf(const StuckJob& job, int32_t rank) {
  const int32_t replicas = job.rank_count / kTensorParallel;
  Dump dump;
  Group world{0, "0", "default_pg"};
  Group tensor{1, fmt::format("{}", 1 + rank / kTensorParallel), "TENSOR_MODEL_PARALLEL_GROUP"};
  Group data{2, fmt::format("{}", 1 + replicas + rank % kTensorParallel), "DATA_PARALLEL_GROUP"};
  dump.groups = {{world.name, world.description, Ranks(0, 1, job.rank_count)},
                 {tensor.name, tensor.description, Ranks(rank - rank % kTensorParallel, 1, kTensorParallel)},
                 {data.name, data.description, Ranks(rank % kTensorParallel, kTensorParallel, replicas)}};
  constexpr int64_t kOfStep = 2 * kLayers + 3;
  int64_t record = kFirstStep * kOfStep;
  world.next_sequence += kFirstStep;
  tensor.next_sequence += kFirstStep * 2 * kLayers;
  data.next_sequence += kFirstStep * 2;
  int64_t time_ns = 1795230700358370288 + rank * 1777;

  const auto add = [&](Group& group, const std::string& name, std::vector<int64_t> in, std::vector<int64_t> out,
                       size_t place) {
    DumpOperation operation;
    if (job.stacks) operation.frames = Stack(dump, place);
    operation.record_id = record++;
    operation.pg_id = group.pg_id;
    operation.group = {group.name, group.description};
    operation.collective_seq_id = operation.op_id = group.next_sequence++;
    operation.name = name;
    operation.time_created_ns = time_ns += 3'000'017 + static_cast<int64_t>(place) * 1013;
    operation.input_sizes = {std::move(in)};
    operation.output_sizes = {std::move(out)};
    operation.input_dtypes = operation.output_dtypes = {"BFloat16"};
    operation.state = "completed";
    operation.retired = true;
    operation.completed_ns = operation.time_created_ns + 2'100'000;
    dump.operations.push_back(std::move(operation));
  };
  while (static_cast<int32_t>(dump.operations.size()) < job.record_count) {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      add(tensor, "nccl:_all_gather_base", {512, 1, 5120}, {4096, 1, 5120}, 2 * layer);
      add(tensor, "nccl:_reduce_scatter_base", {4096, 1, 5120}, {512, 1, 5120}, 2 * layer + 1);
    }
    add(data, "nccl:_reduce_scatter_base", {int64_t{1} << 24}, {(int64_t{1} << 24) / replicas}, 2 * kLayers);
    add(data, "nccl:_all_gather_base", {(int64_t{1} << 24) / replicas}, {int64_t{1} << 24}, 2 * kLayers + 1);
    add(world, "nccl:all_reduce", {1}, {1}, 2 * kLayers + 2);
  }
  // The ring holds the newest; the last of them is the world's all_reduce, which one rank does not reach.
  if (rank == job.culprit) {
    dump.operations.pop_back();
    --world.next_sequence;
  } else {
    DumpOperation& last = dump.operations.back();
    last.state = "scheduled";
    last.retired = false;
    last.completed_ns.reset();
  }
  const auto surplus = static_cast<int64_t>(dump.operations.size()) - job.record_count;
  if (surplus > 0) dump.operations.erase(dump.operations.begin(), dump.operations.begin() + surplus);
  for (const Group& group : {world, tensor, data}) {
    const int64_t last = group.next_sequence - 1;
    const bool open = group.pg_id == world.pg_id && rank != job.culprit;
    dump.progress[group.pg_id] = {last, -1, open ? last - 1 : last};
  }
  return dump;
}

uint64_t WriteDumps(const StuckJob& job, const std::string& folder, bool json) {
  uint64_t byte_count = 0;
  std::filesystem::create_directories(folder);
  for (int32_t rank = 0; rank < job.rank_count; ++rank) {
    const std::string path =
        json ? fmt::format("{}/trace_{}.json", folder, rank) : fmt::format("{}/nccl_trace_rank_{}", folder, rank);
    if (!std::filesystem::exists(path)) {
      const Dump dump = DumpOf(job, rank);
      std::ofstream file(path, std::ios::binary);
      file << (json ? JsonOf(dump) : PickleOf(dump));
      if (!file.flush()) throw std::runtime_error("cannot write " + path);
    }
    byte_count += std::filesystem::file_size(path);
  }
  return byte_count;
}

}  // namespace lockstep::bench
