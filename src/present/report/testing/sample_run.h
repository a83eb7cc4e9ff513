#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/critical_path/critical_path.h"
#include "analysis/finding.h"
#include "analysis/idle.h"
#include "analysis/imbalance.h"
#include "analysis/kernels.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "analysis/operators.h"
#include "analysis/stragglers.h"
#include "analysis/wait_states/wait_states.h"
#include "model/run.h"

namespace lockstep::report::testing {

/// A run and the tables of its passes, made by hand: four ranks of which rank 2 is late, two steps, one damaged file.
struct Sample {
  model::Run run;
  analysis::AnalysisResult result;
};

inline model::RankTrace SampleTrace(int32_t rank, int32_t world_size) {
  model::RankTrace trace;
  trace.rank = {rank};
  trace.rank_source = model::RankSource::kDistributedInfo;
  trace.world_size = world_size;
  trace.host = rank < 2 ? "node1" : "node2";
  trace.source = "traces/rank" + std::to_string(rank) + ".json.gz";
  trace.backend = "nccl";
  trace.devices.push_back({{rank}, "Tesla V100-SXM2-32GB", int64_t{34'000'000'000}, 80});
  trace.base_time_known = true;
  trace.event_count = 12'345;
  trace.json_bytes = 4'567'890;
  trace.first_ns = 1'700'000'000'000'000'000;
  trace.last_ns = 1'700'000'000'210'000'000;
  model::Track track;
  track.lane = model::Lane::kDevice;
  track.process_id = rank;
  track.thread_id = 7;
  track.events.start_ns.push_back(*trace.first_ns);
  track.events.duration_ns.push_back(1000);
  track.events.name.push_back(NameId{0});
  track.events.category.push_back(model::Category::kKernel);
  track.events.correlation.push_back(0);
  trace.tracks.push_back(std::move(track));
  if (rank == 0) {
    trace.clock.basis = model::ClockMap::Basis::kReference;
    trace.clock.uncertainty_ns = 0;
  } else {
    trace.clock.basis = model::ClockMap::Basis::kCollectives;
    trace.clock.offset_ns = 1'234 * rank;
    trace.clock.uncertainty_ns = 900;
    trace.clock.sample_count = 12;
  }
  return trace;
}

inline analysis::BreakdownRow SampleBreakdown(size_t rank_index, int64_t compute_ns, int64_t exposed_ns,
                                              int64_t idle_ns) {
  analysis::BreakdownRow row;
  row.rank_index = rank_index;
  row.basis = analysis::Basis::kDevice;
  row.start_ns = 1'700'000'000'000'000'000;
  row.compute_ns = compute_ns;
  row.exposed_communication_ns = exposed_ns;
  row.overlapped_communication_ns = compute_ns / 10;
  row.communication_ns = row.exposed_communication_ns + row.overlapped_communication_ns;
  row.memory_ns = 2'000'000;
  row.exposed_memory_ns = 1'000'000;
  row.busy_ns = compute_ns + exposed_ns + row.exposed_memory_ns;
  row.idle_ns = idle_ns;
  row.span_ns = row.busy_ns + idle_ns;
  return row;
}

inline analysis::CollectiveInstance SampleCollective(int64_t sequence, int64_t late_ns) {
  analysis::CollectiveInstance instance;
  instance.group = "default_pg";
  instance.sequence = sequence;
  instance.basis = analysis::MatchBasis::kSequence;
  instance.name = "all_reduce";
  instance.bytes = 67'108'864;
  instance.group_size = 4;
  instance.synchronising = true;
  instance.complete = true;
  const int64_t start = 1'700'000'000'000'000'000 + sequence * 50'000'000;
  for (size_t rank = 0; rank < 4; ++rank) {
    analysis::CollectiveMember member;
    member.rank_index = rank;
    member.arrival_ns = start + (rank == 2 ? late_ns : 0);
    member.end_ns = start + late_ns + 5'000'000;
    member.wait_ns = start + late_ns - member.arrival_ns;
    member.trace_start_ns = member.arrival_ns;
    member.trace_end_ns = member.end_ns;
    member.duration_ns = member.end_ns - member.arrival_ns;
    instance.members.push_back(member);
  }
  instance.transfer_ns = 5'000'000;
  instance.algbw_bytes_per_s = 13.4217728e9;
  instance.busbw_bytes_per_s = 20.1326592e9;
  instance.last_rank_index = 2;
  return instance;
}

inline void AddSampleTables(Sample* sample) {
  model::NameTable& names = sample->run.names;
  const NameId gemm = names.Intern("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn");
  const NameId reduce = names.Intern("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)");
  const NameId elementwise = names.Intern(
      "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::AddFunctor<float>, "
      "at::detail::Array<char*, 3> >(int, at::native::AddFunctor<float>, at::detail::Array<char*, 3>)");
  const NameId linear = names.Intern("aten::linear");
  const NameId bad = names.Intern("bad\xFFname\x1b[31m, \"quoted\"");
  analysis::AnalysisResult& result = sample->result;
  for (size_t rank = 0; rank < 4; ++rank) {
    const auto late = static_cast<int64_t>(rank == 2);
    result.Edit<analysis::Breakdown>().ranks.push_back(
        SampleBreakdown(rank, 100'000'000, 80'000'000 - late * 60'000'000, 29'000'000 + late * 60'000'000));
    for (int64_t step = 5; step < 7; ++step) {
      analysis::BreakdownRow row =
          SampleBreakdown(rank, 50'000'000, 40'000'000 - late * 30'000'000, 14'000'000 + late * 30'000'000);
      row.step_number = step;
      result.Edit<analysis::Breakdown>().steps.push_back(row);
    }
    result.Edit<analysis::Idle>().rows.push_back(
        {rank, {static_cast<int32_t>(rank)}, {7}, 20'000'000, 1'000'000, 8'000'000});
    result.Edit<analysis::Idle>().host.push_back({rank, 1'000'000, 0, 27'000'000, 1'000'000});
    result.Edit<analysis::Kernels>().rows.push_back(
        {rank, gemm, analysis::KernelKind::kCompute, 100, 90'000'000, 100'000, 2'000'000, 900'000, 12'345.678});
    result.Edit<analysis::Kernels>().rows.push_back(
        {rank, reduce, analysis::KernelKind::kCommunication, 4, 85'000'000, 5'000'000, 40'000'000, 21'250'000, 3.5e6});
    result.Edit<analysis::Kernels>().rows.push_back(
        {rank, elementwise, analysis::KernelKind::kCompute, 20, 9'000'000, 100'000, 900'000, 450'000, 0});
    result.Edit<analysis::Kernels>().rows.push_back(
        {rank, bad, analysis::KernelKind::kCompute, 1, 1'000, 1'000, 1'000, 1'000, 0});
    result.Edit<analysis::Operators>().rows.push_back(
        {rank, linear, 100, 3'000'000, 9'000'000, 90'000'000, 90'000'000});
    analysis::MemoryRow memory;
    memory.rank_index = rank;
    memory.device = static_cast<int32_t>(rank);
    memory.peak_allocated_bytes = int64_t{12'000'000'000} + late * 3'000'000'000;
    memory.device_memory_bytes = 34'000'000'000;
    memory.allocation_count = 400;
    memory.free_count = 398;
    memory.net_bytes = 4096;
    result.Edit<analysis::Memory>().rows.push_back(memory);
    analysis::LaunchRow launch;
    launch.rank_index = rank;
    launch.launch_count = 124;
    launch.unlinked_count = 1;
    launch.total_delay_ns = 3'456'789;
    launch.max_delay_ns = 345'678;
    launch.median_delay_ns = 5'600;
    result.Edit<analysis::Launch>().rows.push_back(launch);
    result.Edit<analysis::Launch>().queues.push_back({rank, {static_cast<int32_t>(rank)}, {7}, 248, 3.25, 12, 0});
  }
  for (int64_t sequence = 0; sequence < 4; ++sequence)
    result.Edit<analysis::Collectives>().instances.push_back(SampleCollective(sequence, 15'000'000));
}

inline void AddSampleVerdicts(Sample* sample) {
  analysis::AnalysisResult& result = sample->result;
  for (const size_t rank : {size_t{2}, size_t{0}, size_t{1}, size_t{3}}) {
    analysis::StragglerRow row;
    row.rank_index = rank;
    row.collective_count = 4;
    if (rank == 2) {
      row.last_count = 4;
      row.last_ratio = 1;
      row.wait_given_ns = 180'000'000;
      row.delay_ns = 60'000'000;
      row.role = analysis::WaitRole::kNamed;
      row.chronic = true;
      row.worst_instance = 0;
      row.step_count = 2;
      row.late_step_count = 2;
      row.activities.push_back({analysis::LateCause::kHost, "augment_batch", 58'000'000});
      row.activities.push_back({analysis::LateCause::kDeviceIdle, "device idle", 2'000'000});
    } else {
      row.wait_ns = 60'000'000;
    }
    result.Edit<analysis::Stragglers>().rows.push_back(row);
  }
  result.Edit<analysis::Imbalance>().rows.push_back({"compute_ns", 1e8, 1e8, 1e8, 0.0, 0, 0});
  result.Edit<analysis::Imbalance>().rows.push_back({"idle_ns", 44e6, 29e6, 89e6, 1.0227, 2, 0});
  const NameId augment = sample->run.names.Intern("augment_batch");
  const NameId multiply = sample->run.names.Intern("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x6_tn");
  for (int64_t number = 5; number < 7; ++number) {
    analysis::CriticalPathStep step;
    step.step = number;
    step.start_ns = 1'700'000'000'000'000'000 + (number - 5) * 100'000'000;
    step.step_ns = 100'000'000;
    step.path_ns = 99'990'000;
    step.rank_count = 4;
    step.kind_ns[static_cast<size_t>(graph::EdgeKind::kDataLoader)] = 58'000'000;
    step.kind_ns[static_cast<size_t>(graph::EdgeKind::kCompute)] = 41'000'000;
    step.kind_ns[static_cast<size_t>(graph::EdgeKind::kKernelGap)] = 990'000;
    step.slack = {{0, 29'000'000}, {1, 29'000'000}, {2, 0}, {3, 0}};
    result.Edit<analysis::CriticalPath>().steps.push_back(step);
    result.Edit<analysis::CriticalPath>().rows.push_back(
        {2, number, graph::EdgeKind::kDataLoader, augment, 58'000'000});
    result.Edit<analysis::CriticalPath>().rows.push_back({2, number, graph::EdgeKind::kCompute, multiply, 40'000'000});
    result.Edit<analysis::CriticalPath>().rows.push_back({3, number, graph::EdgeKind::kCompute, multiply, 1'000'000});
    result.Edit<analysis::CriticalPath>().rows.push_back({2, number, graph::EdgeKind::kKernelGap, NameId{}, 990'000});
  }
  result.Edit<analysis::CriticalPath>().names = {{graph::EdgeKind::kCompute, multiply, 0}};
  analysis::Finding late;
  late.id = "straggler";
  late.severity = analysis::FindingSeverity::kCritical;
  late.ranks = {2};
  late.title = "Rank 2 holds up the others: it arrives last in 4 of 4 collectives";
  late.evidence = {
      {"wait_given_ns", 180e6, "the other ranks waited 180 ms for rank 2"},
      {"activity_excess_ns", 58e6, "before arriving it spent 58.0 ms more than its peers in augment_batch"}};
  late.advice = {"Move augment_batch off the training process of rank 2, or give it more data loader workers",
                 "Compare rank 2's host with the others"};
  late.gain_ns_per_step = 30'000'000;
  late.gain_ratio = 30.0 / 105;
  analysis::Finding launch;
  launch.id = "host_bound";
  launch.severity = analysis::FindingSeverity::kInfo;
  launch.title = "The devices wait for the host in 14 % of the time";
  launch.advice = {"Try CUDA graphs or torch.compile"};
  result.findings = {late, launch};
  result.step_count = 2;
  result.job_span_ns = 210'000'000;
  sample->run.ledger.Add({"truncated_file", model::Severity::kError, "traces/rank3.json.gz", 3, 4'560'000, 1,
                          "ends inside an event", "the job was probably killed while it wrote; rerun the profiler"});
  sample->run.ledger.Add(
      {"rank_from_name", model::Severity::kInfo, "", {}, {}, 4, "ranks are from the files' names", ""});
}

inline Sample MakeSample() {
  Sample sample;
  for (int32_t rank = 0; rank < 4; ++rank) sample.run.ranks.push_back(SampleTrace(rank, 4));
  AddSampleTables(&sample);
  AddSampleVerdicts(&sample);
  return sample;
}

}  // namespace lockstep::report::testing
