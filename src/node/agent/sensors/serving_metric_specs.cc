#include "node/agent/sensors/serving_metric_specs.h"

namespace lockstep::agent {

const MetricSpecs& ServingMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_serving_requests_total", "counter", "job_id,model,engine", "Requests that have ended."},
      {"lockstep_serving_request_failures_total", "counter", "job_id,model,engine", "Those that failed."},
      {"lockstep_serving_requests_aborted_total", "counter", "job_id,model,engine",
       "Requests that an engine gave up, because its client had gone or for a reason of its own."},
      {"lockstep_serving_requests_running", "gauge", "job_id,model,engine", "Requests under way."},
      {"lockstep_serving_requests_waiting", "gauge", "job_id,model,engine", "Requests in the engine's queue."},
      {"lockstep_serving_kv_cache_usage_ratio", "gauge", "job_id,model,engine",
       "Share of the engine's key-value cache in use; of several parts the fullest."},
      {"lockstep_serving_prompt_tokens_total", "counter", "job_id,model,engine", "Tokens of prompts worked through."},
      {"lockstep_serving_generation_tokens_total", "counter", "job_id,model,engine",
       "Outputs: of requests that have ended, or as the engine counts them."},
      {"lockstep_serving_preemptions_total", "counter", "job_id,model,engine",
       "Requests that were put back for want of cache."},
      {"lockstep_serving_request_duration_seconds", "histogram", "job_id,model,engine",
       "From begin to end, of requests that did not fail."},
      {"lockstep_serving_time_to_first_token_seconds", "histogram", "job_id,model,engine",
       "From begin to first output."},
      {"lockstep_serving_time_per_output_token_seconds", "histogram", "job_id,model,engine",
       "From first to last output, by output; one a request."},
      {"lockstep_serving_inter_token_latency_seconds", "histogram", "job_id,model,engine",
       "Between outputs; one an output."},
      {"lockstep_serving_queue_time_seconds", "histogram", "job_id,model,engine",
       "From begin to the first work on it."},
      {"lockstep_serving_prefill_time_seconds", "histogram", "job_id,model,engine",
       "From the first work on it to the first output."},
      {"lockstep_serving_decode_time_seconds", "histogram", "job_id,model,engine", "From first to last output."},
      {"lockstep_serving_recent_request_duration_seconds", "summary", "job_id,model,engine",
       "Quantiles 0.5, 0.9, 0.95, 0.99 of requests that ended within the last minute, within 0.5 %; of engines, "
       "estimates from their buckets. Count and sum are of all."},
      {"lockstep_serving_recent_time_to_first_token_seconds", "summary", "job_id,model,engine",
       "The same of their times to first output."},
      {"lockstep_serving_recent_inter_token_latency_seconds", "summary", "job_id,model,engine",
       "The same of the times between outputs; one an output."},
  };
  return specs;
}

}  // namespace lockstep::agent
