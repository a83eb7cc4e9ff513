#include "present/live_site/view_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "present/report/json_stream.h"

namespace lockstep::live_site {
namespace {

using report::JsonRow;

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view kStates = ".srwlku";  // Worst last.

char StateLetter(live::RankState state) { return kStates[static_cast<size_t>(state) + 1]; }
char WorseState(char a, char b) { return kStates.find(a) < kStates.find(b) ? b : a; }

std::optional<double> Quantile(const live::Quantiles& quantiles, double which) {
  const auto found = quantiles.find(which);
  if (found == quantiles.end()) return std::nullopt;
  return found->second * 1e9;
}

}  // namespace

void ViewHistory::Column::Add(size_t bucket, double value) {
  if (!std::isfinite(value)) return;
  if (values_.size() <= bucket) {
    values_.resize(bucket + 1, kNothing);
    newest_count_ = 0;
  }
  float& mean = values_[bucket];
  const auto count = static_cast<double>(newest_count_);
  mean = static_cast<float>(newest_count_ == 0 ? value : (static_cast<double>(mean) * count + value) / (count + 1));
  ++newest_count_;
}

void ViewHistory::Column::Merge(const std::vector<size_t>& bucket_of, size_t count) {
  std::vector<float> merged(count, kNothing);
  std::vector<uint32_t> counts(count, 0);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (std::isnan(values_[i])) continue;
    const size_t to = bucket_of[i];
    merged[to] = counts[to] == 0 ? values_[i] : merged[to] + values_[i];
    ++counts[to];
  }
  for (size_t i = 0; i < count; ++i) merged[i] /= static_cast<float>(std::max<uint32_t>(counts[i], 1));
  values_ = std::move(merged);
  newest_count_ = count == 0 ? 0 : counts.back();
}

void ViewHistory::Column::DropFirst(size_t count) {
  values_.erase(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(std::min(count, values_.size())));
}

bool ViewHistory::Column::empty() const {
  return std::all_of(values_.begin(), values_.end(), [](float value) { return std::isnan(value); });
}

std::string ViewHistory::Column::Json(size_t count) const {
  fmt::memory_buffer text;
  text.push_back('[');
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text.push_back(',');
    if (i >= values_.size() || std::isnan(values_[i])) {
      fmt::format_to(std::back_inserter(text), "null");
    } else {
      fmt::format_to(std::back_inserter(text), "{:.5g}", values_[i]);
    }
  }
  text.push_back(']');
  return fmt::to_string(text);
}

void ViewHistory::Add(const live::View& view) {
  const MutexLock lock(mutex_);
  if (view.taken_unix_ns <= until_unix_ns_) return;
  until_unix_ns_ = view.taken_unix_ns;
  window_ns_ = view.window_ns;
  const int64_t begin_ns = view.taken_unix_ns - view.taken_unix_ns % bucket_ns_;
  if (times_.empty() || times_.back() < begin_ns) times_.push_back(begin_ns);
  const size_t bucket = times_.size() - 1;
  for (const live::JobView& job : view.jobs) AddJob(job, bucket);
  for (const live::NodeView& node : view.nodes) {
    if (!node.error) AddNode(node, bucket);
  }
  Shrink();
}

void ViewHistory::AddJob(const live::JobView& view, size_t bucket) {
  Job& job = jobs_[view.job_id];
  const auto add = [bucket](Columns& columns, const char* name, const auto& value) {
    Column& column = columns[name];
    if (value) column.Add(bucket, static_cast<double>(*value));
  };
  add(job.columns, "steps_per_s", view.steps_per_s);
  add(job.columns, "step_ns", view.step_ns);
  add(job.columns, "tokens_per_s", view.tokens_per_s);
  add(job.columns, "samples_per_s", view.samples_per_s);
  add(job.columns, "compute_ratio", view.compute_ratio);
  add(job.columns, "communication_ratio", view.communication_ratio);
  add(job.columns, "input_ratio", view.input_ratio);
  add(job.columns, "mfu_ratio", view.mfu_ratio);
  for (const live::RankView& of : view.ranks) {
    Rank& rank = job.ranks[of.rank];
    rank.states.resize(bucket + 1, '.');
    rank.states[bucket] = WorseState(rank.states[bucket], StateLetter(of.state));
    // What is known of a rank that is not heard is old.
    const bool is_now = of.state != live::RankState::kUnheard && !of.is_since_start;
    const auto fresh = [is_now](const auto& value) { return is_now ? value : std::decay_t<decltype(value)>(); };
    add(rank.columns, "step_ns", fresh(of.step_ns));
    add(rank.columns, "own_ns", fresh(of.own_ns));
    add(rank.columns, "compute_ratio", fresh(of.compute_ratio));
    add(rank.columns, "communication_ratio", fresh(of.communication_ratio));
  }
  for (const live::ServingView& of : view.serving) {
    Columns& columns = job.serving[{of.host, of.reading.model, of.reading.engine}];
    const live::Quantiles& whole = of.reading.recent_duration_s;
    const live::Quantiles& first = of.reading.recent_first_token_s;
    const live::Quantiles& between = of.reading.recent_inter_token_s;
    add(columns, "requests_per_s", of.requests_per_s);
    add(columns, "tokens_per_s", of.tokens_per_s);
    add(columns, "running_count", of.reading.running);
    add(columns, "waiting_count", of.reading.waiting);
    add(columns, "kv_cache_usage_ratio", of.reading.kv_cache_usage_ratio);
    add(columns, "preemptions_per_s", of.preemptions_per_s);
    add(columns, "request_p50_ns", Quantile(whole, 0.5));
    add(columns, "request_p95_ns", Quantile(whole, 0.95));
    add(columns, "request_p99_ns", Quantile(whole, 0.99));
    add(columns, "first_token_p50_ns", Quantile(first, 0.5));
    add(columns, "first_token_p95_ns", Quantile(first, 0.95));
    add(columns, "first_token_p99_ns", Quantile(first, 0.99));
    add(columns, "inter_token_p50_ns", Quantile(between, 0.5));
    add(columns, "inter_token_p95_ns", Quantile(between, 0.95));
    add(columns, "inter_token_p99_ns", Quantile(between, 0.99));
  }
}

void ViewHistory::AddNode(const live::NodeView& view, size_t bucket) {
  Node& node = nodes_[view.host];
  const auto add = [bucket](Columns& columns, const char* name, const std::optional<double>& value) {
    Column& column = columns[name];
    if (value) column.Add(bucket, *value);
  };
  for (const live::GpuView& gpu : view.gpus) {
    Gpu& of = node.gpus[gpu.reading.gpu];
    add(of.columns, "utilization_ratio", gpu.reading.utilization_ratio);
    add(of.columns, "sm_active_ratio", gpu.reading.sm_active_ratio);
    add(of.columns, "memory_used_bytes", gpu.reading.memory_used_bytes);
    add(of.columns, "power_watts", gpu.power_watts);
    add(of.columns, "temperature_celsius", gpu.reading.temperature_celsius);
    for (const auto& [gi, instance] : gpu.reading.mig_instances) {
      Columns& columns = of.mig_instances[gi];
      add(columns, "sm_active_ratio", instance.sm_active_ratio);
      add(columns, "memory_used_bytes", instance.memory_used_bytes);
    }
  }
  for (const live::PortView& port : view.ports) {
    Columns& columns = node.network[{port.device, port.port}];
    add(columns, "receive_bytes_per_s", port.received_per_s);
    add(columns, "transmit_bytes_per_s", port.transmitted_per_s);
  }
}

template <typename Visit>
void ViewHistory::ForEach(Visit visit) {
  const auto all = [&](Columns& columns) {
    for (auto& [name, column] : columns) visit(column);
  };
  for (auto& [id, job] : jobs_) {
    all(job.columns);
    for (auto& [name, rank] : job.ranks) all(rank.columns);
    for (auto& [key, columns] : job.serving) all(columns);
  }
  for (auto& [host, node] : nodes_) {
    for (auto& [name, gpu] : node.gpus) {
      all(gpu.columns);
      for (auto& [gi, columns] : gpu.mig_instances) all(columns);
    }
    for (auto& [key, columns] : node.network) all(columns);
  }
}

size_t ViewHistory::ColumnCount() {
  size_t count = 0;
  ForEach([&](const Column&) { ++count; });
  return count;
}

void ViewHistory::Shrink() {
  // By the time that they span, not by their number: a chart has a place for each bucket, also where there was no look.
  const auto span = [&](size_t from) LOCKSTEP_REQUIRES(mutex_) {
    return static_cast<size_t>((times_.back() - times_[from]) / bucket_ns_) + 1;
  };
  while (times_.size() > 1 && span(0) > kMostBuckets) {
    if (bucket_ns_ < kLongestBucketNs) {
      Halve();
    } else {
      size_t count = 1;
      while (count + 1 < times_.size() && span(count) > kMostBuckets / 8 * 7) ++count;
      DropFirst(count);
    }
    DropEmpty();
  }
  while (times_.size() > 1 && ColumnCount() * times_.size() > kMostValues) {
    DropFirst(std::max<size_t>(times_.size() / 8, 1));
    DropEmpty();
  }
}

void ViewHistory::Halve() {
  bucket_ns_ *= 2;
  std::vector<int64_t> times;
  std::vector<size_t> bucket_of;
  for (const int64_t time : times_) {
    const int64_t begin_ns = time - time % bucket_ns_;
    if (times.empty() || times.back() < begin_ns) times.push_back(begin_ns);
    bucket_of.push_back(times.size() - 1);
  }
  times_ = std::move(times);
  ForEach([&, count = times_.size()](Column& column) { column.Merge(bucket_of, count); });
  for (auto& [id, job] : jobs_) {
    for (auto& [name, rank] : job.ranks) {
      std::string states(times_.size(), '.');
      for (size_t i = 0; i < rank.states.size(); ++i) {
        states[bucket_of[i]] = WorseState(states[bucket_of[i]], rank.states[i]);
      }
      rank.states = std::move(states);
    }
  }
}

void ViewHistory::DropFirst(size_t count) {
  count = std::min(count, times_.size());
  times_.erase(times_.begin(), times_.begin() + static_cast<ptrdiff_t>(count));
  ForEach([&](Column& column) { column.DropFirst(count); });
  for (auto& [id, job] : jobs_) {
    for (auto& [name, rank] : job.ranks) rank.states.erase(0, count);
  }
}

// What was not there in any of the buckets that are left: jobs, ranks and devices that have gone.
void ViewHistory::DropEmpty() {
  const auto is_empty = [](const Columns& columns) {
    return std::all_of(columns.begin(), columns.end(), [](const auto& entry) { return entry.second.empty(); });
  };
  for (auto& [id, job] : jobs_) {
    std::erase_if(job.ranks, [&](const auto& entry) {
      return is_empty(entry.second.columns) && entry.second.states.find_first_not_of('.') == std::string::npos;
    });
    std::erase_if(job.serving, [&](const auto& entry) { return is_empty(entry.second); });
  }
  std::erase_if(jobs_, [&](const auto& entry) {
    return entry.second.ranks.empty() && entry.second.serving.empty() && is_empty(entry.second.columns);
  });
  for (auto& [host, node] : nodes_) {
    for (auto& [name, gpu] : node.gpus) {
      std::erase_if(gpu.mig_instances, [&](const auto& entry) { return is_empty(entry.second); });
    }
    std::erase_if(node.gpus, [&](const auto& entry) {
      return is_empty(entry.second.columns) && entry.second.mig_instances.empty();
    });
    std::erase_if(node.network, [&](const auto& entry) { return is_empty(entry.second); });
  }
}

std::string ViewHistory::Json() const {
  const MutexLock lock(mutex_);
  JsonRow row;
  const auto write = [&](const Columns& columns) LOCKSTEP_REQUIRES(mutex_) {
    for (const auto& [name, column] : columns) row.Key(name).Raw(column.Json(times_.size()));
  };
  row.Key("schema").Text("lockstep.live-history/1").Key("until_unix_ns").Int(until_unix_ns_);
  row.Key("window_ns").Int(window_ns_);
  row.Key("bucket_ns").Int(bucket_ns_).Key("times_unix_ns").List(times_).Key("jobs").StartArray();
  for (const auto& [id, job] : jobs_) {
    row.StartObject().Key("job_id").Text(id);
    write(job.columns);
    row.Key("ranks").StartArray();
    std::vector<std::string> names;
    for (const auto& [name, rank] : job.ranks) names.push_back(name);
    std::sort(names.begin(), names.end(), live::RankComesBefore);
    for (const std::string& name : names) {
      const Rank& rank = job.ranks.at(name);
      row.StartObject().Key("rank").Text(name);
      write(rank.columns);
      std::string states = rank.states;
      states.resize(times_.size(), '.');
      row.Key("state").Text(states).EndObject();
    }
    row.EndArray().Key("serving").StartArray();
    for (const auto& [key, columns] : job.serving) {
      const auto& [host, model, engine] = key;
      row.StartObject().Key("host").Text(host).Key("model").TextOrNull(model).Key("engine").TextOrNull(engine);
      write(columns);
      row.EndObject();
    }
    row.EndArray().EndObject();
  }
  row.EndArray().Key("nodes").StartArray();
  for (const auto& [host, node] : nodes_) {
    row.StartObject().Key("host").Text(host).Key("gpus").StartArray();
    for (const auto& [name, gpu] : node.gpus) {
      row.StartObject().Key("gpu").Text(name);
      write(gpu.columns);
      row.Key("mig_instances").StartArray();
      for (const auto& [gi, columns] : gpu.mig_instances) {
        row.StartObject().Key("gi").Text(gi);
        write(columns);
        row.EndObject();
      }
      row.EndArray().EndObject();
    }
    row.EndArray().Key("network").StartArray();
    for (const auto& [key, columns] : node.network) {
      row.StartObject().Key("device").Text(key.first).Key("port").TextOrNull(key.second);
      write(columns);
      row.EndObject();
    }
    row.EndArray().EndObject();
  }
  row.EndArray();
  return std::string(row.Finish());
}

size_t ViewHistory::bucket_count() const {
  const MutexLock lock(mutex_);
  return times_.size();
}

int64_t ViewHistory::bucket_ns() const {
  const MutexLock lock(mutex_);
  return bucket_ns_;
}

}  // namespace lockstep::live_site
