#include "analysis/parallelism/flops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "analysis/parallelism/matrix_work.h"
#include "analysis/pass.h"
#include "analysis/table.h"
#include "analysis/track_merge.h"

namespace lockstep::analysis {
namespace {

using model::OperatorShape;

/// Calls of one thread that are not inside another one, by start: they are disjoint.
using ThreadCalls = std::vector<uint32_t>;  // into RankTrace::shapes

std::unordered_map<int64_t, ThreadCalls> OuterCalls(const std::vector<OperatorShape>& shapes) {
  std::unordered_map<int64_t, ThreadCalls> threads;
  for (size_t i = 0; i < shapes.size(); ++i) {
    ThreadCalls& calls = threads[shapes[i].thread_id];
    if (!calls.empty()) {
      const OperatorShape& last = shapes[calls.back()];
      if (shapes[i].start_ns < last.start_ns + last.duration_ns) continue;
    }
    calls.push_back(static_cast<uint32_t>(i));
  }
  return threads;
}

/// The call of a thread that contains an instant; UINT32_MAX = none.
uint32_t CallAround(const std::vector<OperatorShape>& shapes, const ThreadCalls& calls, int64_t time_ns) {
  const auto after = std::upper_bound(calls.begin(), calls.end(), time_ns,
                                      [&](int64_t t, uint32_t i) { return t < shapes[i].start_ns; });
  if (after == calls.begin()) return UINT32_MAX;
  const uint32_t i = *(after - 1);
  return time_ns < shapes[i].start_ns + shapes[i].duration_ns ? i : UINT32_MAX;
}

/// Kernels that use TF32 matrix units say so; of float products nothing else does.
bool SaysTf32(std::string_view kernel) {
  return kernel.find("tf32") != std::string_view::npos || kernel.find("tensorop_s1688") != std::string_view::npos;
}

Precision PrecisionOf(std::string_view type, bool tf32) {
  if (type == "c10::BFloat16") return Precision::kBf16;
  if (type == "c10::Half") return Precision::kFp16;
  if (type == "float") return tf32 ? Precision::kTf32 : Precision::kFp32;
  return Precision::kOther;
}

/// Device time and kind of each call.
struct CallTime {
  int64_t time_ns = 0;
  bool tf32 = false;
};

class FlopsMapper {
 public:
  explicit FlopsMapper(const RankContext& context)
      : context_(context), trace_(context.trace()), shapes_(trace_.shapes), times_(shapes_.size()) {}

  FlopsPartial Map() {
    FlopsPartial partial;
    partial.rank = FlopsRankRow();
    partial.rank->rank_index = context_.rank_index;
    FindDevice(&*partial.rank);
    FindSpan(&*partial.rank);
    const auto threads = OuterCalls(shapes_);
    const bool on_device = trace_.HasDeviceEvents();
    if (on_device) TimeOnDevice(threads);
    std::map<Key, Calls> by_shape;
    for (const auto& [thread, calls] : threads) {
      for (const uint32_t i : calls) {
        if (!on_device) times_[i].time_ns = shapes_[i].duration_ns;
        const OperatorShape& shape = shapes_[i];
        Calls& same =
            by_shape[{shape.name.value, shape.dims.value, shape.types.value, shape.values.value, times_[i].tf32}];
        same.times_ns.push_back(times_[i].time_ns);
        if (shape.start_ns >= scope_.start_ns && shape.start_ns < scope_.end_ns) ++same.in_scope_count;
      }
    }
    for (auto& [key, calls] : by_shape) AddRow(key, std::move(calls), &partial);
    std::stable_sort(partial.rows.begin(), partial.rows.end(), [](const FlopsRow& a, const FlopsRow& b) {
      return std::tuple(-a.time_ns, std::string_view(a.name), std::string_view(a.dims), std::string_view(a.type)) <
             std::tuple(-b.time_ns, std::string_view(b.name), std::string_view(b.dims), std::string_view(b.type));
    });
    Summarise(&partial);
    return partial;
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, bool>;
  struct Calls {
    std::vector<int64_t> times_ns;
    uint64_t in_scope_count = 0;
  };

  void TimeOnDevice(const std::unordered_map<int64_t, ThreadCalls>& threads) {
    std::vector<const ThreadCalls*> by_track(trace_.tracks.size(), nullptr);
    for (size_t t = 0; t < trace_.tracks.size(); ++t) {
      if (trace_.tracks[t].lane != model::Lane::kRuntime) continue;
      const auto found = threads.find(trace_.tracks[t].thread_id);
      if (found != threads.end()) by_track[t] = &found->second;
    }
    std::vector<uint8_t> tf32(context_.names().size(), 2);  // 2: not looked at yet
    for (size_t t = 0; t < trace_.tracks.size(); ++t) {
      const model::Track& track = trace_.tracks[t];
      if (track.lane != model::Lane::kDevice) continue;
      for (size_t i = 0; i < track.events.size(); ++i) {
        const LaunchRef launch = context_.launches[t][i];
        if (!launch.found() || by_track[launch.track] == nullptr) continue;
        const int64_t launch_ns = trace_.tracks[launch.track].events.start_ns[launch.row];
        const uint32_t call = CallAround(shapes_, *by_track[launch.track], launch_ns);
        if (call == UINT32_MAX) continue;
        times_[call].time_ns += track.events.duration_ns[i];
        uint8_t& says = tf32[track.events.name[i].value];
        if (says == 2) says = SaysTf32(context_.names()[track.events.name[i]]) ? 1 : 0;
        times_[call].tf32 = times_[call].tf32 || says == 1;
      }
    }
  }

  void FindDevice(FlopsRankRow* rank) {
    for (const model::Track& track : trace_.tracks) {
      if (track.lane != model::Lane::kDevice || track.events.empty()) continue;
      for (const model::Device& device : trace_.devices) {
        if (device.ordinal == track.device()) rank->device = device.name;
      }
      if (!rank->device.empty()) break;
    }
    peak_ = FindDevicePeak(rank->device);
  }

  void FindSpan(FlopsRankRow* rank) {
    if (!context_.steps.empty()) {
      scope_ = {context_.steps.front().start_ns, context_.steps.back().end_ns};
    } else if (trace_.first_ns && trace_.last_ns) {
      scope_ = {*trace_.first_ns, *trace_.last_ns};
    }
    rank->span_ns = scope_.end_ns - scope_.start_ns;
  }

  void AddRow(const Key& key, Calls calls, FlopsPartial* partial) const {
    const model::NameTable& names = context_.names();
    FlopsRow row;
    row.rank_index = context_.rank_index;
    row.name = names[NameId{std::get<0>(key)}];
    row.dims = names[NameId{std::get<1>(key)}];
    const std::string_view types = names[NameId{std::get<2>(key)}];
    row.type = FactorTypeOf(row.name, types);
    const auto work = MatrixWorkOf(row.name, row.dims, types, names[NameId{std::get<3>(key)}]);
    if (!work || work->bytes == 0) {
      partial->rank->unknown_count += calls.in_scope_count;
      return;
    }
    partial->rank->call_count += calls.in_scope_count;
    int64_t flops = 0;
    if (!__builtin_mul_overflow(work->flops, static_cast<int64_t>(calls.in_scope_count), &flops)) {
      AddFlops(flops, &partial->rank->flops);
    }
    row.precision = PrecisionOf(row.type, std::get<4>(key));
    row.call_count = calls.times_ns.size();
    row.flops = work->flops;
    row.bytes = work->bytes;
    row.intensity = static_cast<double>(row.flops) / static_cast<double>(row.bytes);
    Rate(std::move(calls.times_ns), &row);
    Compare(&row);
    partial->rows.push_back(std::move(row));
  }

  static void Rate(std::vector<int64_t> times_ns, FlopsRow* row) {
    std::sort(times_ns.begin(), times_ns.end());
    std::vector<double> rates;  // of FLOP/ns, falling
    for (const int64_t time_ns : times_ns) {
      row->time_ns += time_ns;
      if (time_ns > 0) rates.push_back(static_cast<double>(row->flops) / static_cast<double>(time_ns));
    }
    row->timed_count = rates.size();
    if (rates.empty()) return;
    const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
    const size_t half = rates.size() / 2;
    const double median = rates.size() % 2 == 1 ? rates[half] : (rates[half - 1] + rates[half]) / 2;
    row->mean_flops_per_s = 1e9 * mean;
    row->median_flops_per_s = 1e9 * median;
    row->mean_bytes_per_s = 1e9 * mean / row->intensity;
  }

  void Compare(FlopsRow* row) const {
    if (peak_ == nullptr) return;
    const auto peak = peak_->FlopsPerSecond(row->precision);
    if (!peak) return;
    const double roof = std::min(*peak, row->intensity * peak_->bandwidth_bytes_per_s);
    row->compute_bound = row->intensity >= *peak / peak_->bandwidth_bytes_per_s;
    if (row->mean_flops_per_s && roof > 0) row->roof_ratio = *row->mean_flops_per_s / roof;
  }

  static void AddFlops(int64_t flops, int64_t* sum) {
    if (__builtin_add_overflow(*sum, flops, sum)) *sum = INT64_MAX;
  }

  void Summarise(FlopsPartial* partial) const {
    FlopsRankRow& rank = *partial->rank;
    std::map<Precision, double> by_precision;
    for (const FlopsRow& row : partial->rows) {
      rank.time_ns += row.time_ns;
      by_precision[row.precision] += static_cast<double>(row.flops) * static_cast<double>(row.call_count);
    }
    if (rank.flops == 0 || rank.span_ns <= 0) return;
    rank.precision = std::max_element(by_precision.begin(), by_precision.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->first;
    rank.flops_per_s = static_cast<double>(rank.flops) / (static_cast<double>(rank.span_ns) * 1e-9);
    if (peak_ == nullptr) return;
    rank.peak_flops_per_s = peak_->FlopsPerSecond(rank.precision);
    rank.peak_source = peak_->source;
    if (rank.peak_flops_per_s) rank.mfu = *rank.flops_per_s / *rank.peak_flops_per_s;
  }

  const RankContext& context_;
  const model::RankTrace& trace_;
  const std::vector<OperatorShape>& shapes_;
  std::vector<CallTime> times_;
  const DevicePeak* peak_ = nullptr;
  Interval scope_;
};

}  // namespace

FlopsPartial MapFlops(const RankContext& context) {
  if (context.trace().shapes.empty()) return {};
  return FlopsMapper(context).Map();
}

namespace {

std::vector<RowColumn<FlopsRankRow>> FlopsColumns() {
  using Row = FlopsRankRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::device>("device", "", "Name of its device.", "not recorded"),
      Field<&Row::call_count>("call_count", "count", "Calls of matrix operators in the span with known work."),
      Field<&Row::unknown_count>("unknown_count", "count", "Calls in the span whose shapes do not tell their work."),
      Field<&Row::flops>("flops", "FLOP", "Sum over those calls; recomputation counts again."),
      Field<&Row::time_ns>("time_ns", "ns", "Device time of the rank's matrix operators; CPU time without a device."),
      Field<&Row::span_ns>("span_ns", "ns",
                           "First step's start to last step's end; without steps, first to last event."),
      NamedField<&Row::precision, PrecisionName>("precision",
                                                 "That of most FLOPs: `bf16`, `fp16`, `tf32`, `fp32`, `other`."),
      Field<&Row::flops_per_s>("flops_per_s", "FLOP/s", "`flops` / `span_ns`.", "no such call"),
      Field<&Row::peak_flops_per_s>("peak_flops_per_s", "FLOP/s", "The device's dense peak at that precision.",
                                    "device not in the table of peaks"),
      Field<&Row::peak_source>("peak_source", "", "Document that states the peak.", "device not in the table of peaks"),
      Field<&Row::mfu>("mfu", "0..1",
                       "`flops_per_s` / `peak_flops_per_s`: model FLOPs utilisation, recomputation included.",
                       "no such call, or no peak"),
  };
}

std::vector<RowColumn<FlopsRow>> OperatorColumns() {
  using Row = FlopsRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::name>("name", "", "Operator."),
      Field<&Row::dims>("dims", "", "Shapes of its arguments, as recorded."),
      Field<&Row::type>("dtype", "", "Type of the factors, as recorded.", "not recorded"),
      NamedField<&Row::precision, PrecisionName>(
          "precision", "`bf16`, `fp16`, `tf32` (a float product whose kernel says so), `fp32`, `other`."),
      Field<&Row::call_count>("call_count", "count", "Calls with these shapes."),
      Field<&Row::timed_count>("timed_count", "count", "Calls with device time (CPU time without a device)."),
      Field<&Row::flops>("flops", "FLOP", "Work of one call."),
      Field<&Row::bytes>("bytes", "bytes", "Operands and result of one call, each once."),
      Field<&Row::intensity>("intensity", "FLOP/byte", "`flops` / `bytes`."),
      Field<&Row::time_ns>("time_ns", "ns", "Sum of the device events launched in the calls."),
      Field<&Row::mean_flops_per_s>("mean_flops_per_s", "FLOP/s", "Mean over calls of work / time.",
                                    "no call has a time"),
      Field<&Row::median_flops_per_s>("median_flops_per_s", "FLOP/s", "Median of the same.", "no call has a time"),
      Field<&Row::mean_bytes_per_s>("mean_bytes_per_s", "bytes/s", "Mean over calls of `bytes` / time.",
                                    "no call has a time"),
      Field<&Row::compute_bound>("compute_bound", "", "Intensity is at or above peak FLOP/s / memory bandwidth.",
                                 "device not in the table of peaks"),
      Field<&Row::roof_ratio>("roof_ratio", "0..1",
                              "`mean_flops_per_s` over the roof: the lesser of the peak and intensity x bandwidth.",
                              "device not in the table of peaks, or no time"),
  };
}

}  // namespace

Pass FlopsPass() {
  return ReducingPass<Flops, FlopsPartial>(
      {.question = "How much of the device's arithmetic is used, where shapes were recorded?",
       .tables = {DeclareTable("flops", "flops", "Matrix operators of a rank and its use of the device", &Flops::ranks,
                               FlopsColumns()),
                  DeclareTable("flops_by_operator", "flops_by_operator",
                               "Calls of a matrix operator with one set of shapes, on the roofline", &Flops::operators,
                               OperatorColumns())}},
      MapFlops, [](PassContext&, std::vector<FlopsPartial> ranks) {
        Flops all;
        for (FlopsPartial& rank : ranks) {
          if (rank.rank) all.ranks.push_back(std::move(*rank.rank));
          MoveRows(&rank.rows, &all.operators);
        }
        return all;
      });
}

}  // namespace lockstep::analysis
