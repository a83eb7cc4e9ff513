#include "node/agent/job_metrics/job_metrics.h"

namespace lockstep::agent {

const MetricSpecs& JobMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_rank_info", "gauge", "job_id,rank,host,pid,local_rank,user,device",
       "1; the labels identify the rank."},
      {"lockstep_rank_up", "gauge", "job_id,rank,host", "1: the rank's process is there."},
      {"lockstep_job_world_size", "gauge", "job_id", "Ranks that the job has, where its launcher names it."},
      {"lockstep_steps_total", "counter", "job_id,rank,host", "Steps that have ended."},
      {"lockstep_step_seconds_total", "counter", "job_id,rank,host", "How long they took."},
      {"lockstep_step_phase_seconds_total", "counter", "job_id,rank,host,phase",
       "The same by what it was for; phases add up to the step."},
      {"lockstep_step_duration_seconds", "histogram", "job_id", "How long steps took."},
      {"lockstep_job_step_median_seconds", "gauge", "job_id", "Median of the last 100 steps of each rank here."},
      {"lockstep_rank_last_progress_timestamp_seconds", "gauge", "job_id,rank,host",
       "When the rank's newest step ended, in seconds since 1970; absent while its records are dropped."},
      {"lockstep_rank_long_phase_seconds", "gauge", "job_id,rank,host,phase",
       "How long the rank has been in the phase that it is in; there from 5 s on."},
      {"lockstep_samples_total", "counter", "job_id,rank,host", "Samples that the program says it has worked through."},
      {"lockstep_tokens_total", "counter", "job_id,rank,host", "Tokens that the program says it has worked through."},
      {"lockstep_model_flops_total", "counter", "job_id,rank,host",
       "Operations that the program says its model needed."},
      {"lockstep_gpu_peak_flops_per_second", "gauge", "job_id,rank,host",
       "What the rank's device can do at most, as the program says."},
      {"lockstep_torch_memory_allocated_bytes", "gauge", "job_id,rank,host",
       "Memory that PyTorch's allocator has given out on the rank's device."},
      {"lockstep_torch_memory_reserved_bytes", "gauge", "job_id,rank,host",
       "Memory that PyTorch's allocator holds on the rank's device."},
      {"lockstep_torch_memory_peak_bytes", "gauge", "job_id,rank,host",
       "The most that PyTorch's allocator had given out at once."},
      {"lockstep_torch_memory_total_bytes", "gauge", "job_id,rank,host", "Memory of the device that PyTorch uses."},
      {"lockstep_torch_alloc_retries_total", "counter", "job_id,rank,host",
       "Allocations that PyTorch repeated after it had freed its cache."},
      {"lockstep_torch_ooms_total", "counter", "job_id,rank,host", "Allocations for which there was no memory."},
      {"lockstep_user_value", "gauge", "job_id,rank,host,name", "Newest value of a counter of the program's own."},
      {"lockstep_events_total", "counter", "source,job_id,rank,host", "Records that were read."},
      {"lockstep_events_dropped_total", "counter", "source,reason,job_id,rank,host",
       "Records that were not: file_full (no room in the file), too_fast (overwritten, or too many under way), "
       "too_many_names."},
  };
  return specs;
}

}  // namespace lockstep::agent
