#include "analysis/regions/regions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/believable_time.h"
#include "analysis/cpu_activity.h"
#include "analysis/device_tracks.h"
#include "analysis/host_role.h"
#include "analysis/name_rows.h"
#include "analysis/pass.h"
#include "analysis/quantiles.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

constexpr uint32_t kNoParent = UINT32_MAX;

/// A range as it ran, and the device events launched in it.
struct Range {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  NameId name;
  uint32_t parent = kNoParent;  ///< Of the thread's ranges: the innermost around it.
  bool outermost = true;        ///< No range of its name is around it.
  uint64_t device_event_count = 0;
  int64_t device_ns = 0;
  int64_t device_communication_ns = 0;
  int64_t first_device_ns = INT64_MAX;
  int64_t last_device_ns = INT64_MIN;
};

/// The marked ranges of a CPU thread, by start.
class ThreadRanges {
 public:
  void Add(int64_t start_ns, int64_t end_ns, NameId name) {
    while (!open_.empty() && ranges_[open_.back()].end_ns <= start_ns) open_.pop_back();
    Range range{start_ns, end_ns, name};
    if (!open_.empty()) range.parent = open_.back();
    for (const uint32_t around : open_) range.outermost = range.outermost && ranges_[around].name != name;
    open_.push_back(static_cast<uint32_t>(ranges_.size()));
    ranges_.push_back(range);
  }

  /// Calls `add` with every range around the time.
  template <typename Function>
  void ForEachAround(int64_t time_ns, const Function& add) {
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), time_ns,
                                        [](int64_t t, const Range& range) { return t < range.start_ns; });
    if (after == ranges_.begin()) return;
    for (auto at = static_cast<uint32_t>(after - ranges_.begin() - 1); at != kNoParent; at = ranges_[at].parent) {
      if (time_ns < ranges_[at].end_ns) add(&ranges_[at]);
    }
  }

  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
  std::vector<uint32_t> open_;  // those that may be around the next
};

/// How much of a stretch some intervals cover.
class Cover {
 public:
  void Add(int64_t start_ns, int64_t end_ns) { intervals_.emplace_back(start_ns, end_ns); }

  void Join() {
    std::sort(intervals_.begin(), intervals_.end());
    std::vector<std::pair<int64_t, int64_t>> joined;
    for (const auto& [start_ns, end_ns] : intervals_) {
      if (!joined.empty() && start_ns <= joined.back().second) {
        joined.back().second = std::max(joined.back().second, end_ns);
      } else if (start_ns < end_ns) {
        joined.emplace_back(start_ns, end_ns);
      }
    }
    intervals_ = std::move(joined);
  }

  int64_t Within(int64_t start_ns, int64_t end_ns) const {
    auto at = std::upper_bound(intervals_.begin(), intervals_.end(), start_ns,
                               [](int64_t t, const auto& interval) { return t < interval.second; });
    int64_t covered_ns = 0;
    for (; at != intervals_.end() && at->first < end_ns; ++at) {
      covered_ns += std::min(at->second, end_ns) - std::max(at->first, start_ns);
    }
    return covered_ns;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> intervals_;
};

struct Sums {
  std::vector<int64_t> durations;
  std::vector<int64_t> starts;
  RegionRow row;
  int64_t own_ns = 0;
  int64_t device_ns = 0;
  int64_t device_communication_ns = 0;
  int64_t projected_ns = 0;
};

class RegionMapper {
 public:
  explicit RegionMapper(const RankContext& context)
      : context_(context), roles_(context.names()), has_device_(context.trace().HasDeviceEvents()) {}

  std::vector<RegionRow> Map() {
    const auto& tracks = context_.trace().tracks;
    for (const model::Track& track : tracks) {
      if (track.lane == model::Lane::kOperators) ReadRanges(track);
    }
    if (threads_.empty()) return {};
    has_device_ ? ReadDevices() : ReadCollectives();
    return Rows();
  }

 private:
  void ReadRanges(const model::Track& track) {
    const model::EventColumns& events = track.events;
    for (size_t i = 0; i < events.size(); ++i) {
      if (events.category[i] != model::Category::kUserAnnotation) continue;
      const int64_t start_ns = events.start_ns[i];
      if (context_.cpu_cutoff_ns && start_ns >= *context_.cpu_cutoff_ns) continue;
      if (events.duration_ns[i] < 0 || events.duration_ns[i] > kMaxBelievableNs) continue;
      const HostRole role = roles_[events.name[i]];
      if (role == HostRole::kStep || role == HostRole::kCollective || role == HostRole::kCollectiveCall) continue;
      threads_[{track.process_id, track.thread_id}].Add(start_ns, events.end_ns(i), events.name[i]);
    }
  }

  void ReadDevices() {
    const model::RankTrace& trace = context_.trace();
    for (const DeviceTracks& device : FindDeviceTracks(trace)) {
      for (const size_t t : device.tracks) {
        const model::EventColumns& events = trace.tracks[t].events;
        for (size_t i = 0; i < events.size(); ++i) {
          const LaunchRef launch = context_.launches[t][i];
          if (!launch.found() || !context_.InScope(t, i)) continue;
          if (events.duration_ns[i] < 0 || events.duration_ns[i] > kMaxBelievableNs) continue;
          const model::Track& launcher = trace.tracks[launch.track];
          const auto thread = threads_.find({launcher.process_id, launcher.thread_id});
          if (thread == threads_.end()) continue;
          const bool communicates = context_.shared->is_communication[events.name[i].value];
          thread->second.ForEachAround(launcher.events.start_ns[launch.row], [&](Range* range) {
            ++range->device_event_count;
            range->device_ns = AddSaturating(range->device_ns, events.duration_ns[i]);
            if (communicates)
              range->device_communication_ns = AddSaturating(range->device_communication_ns, events.duration_ns[i]);
            range->first_device_ns = std::min(range->first_device_ns, events.start_ns[i]);
            range->last_device_ns = std::max(range->last_device_ns, events.end_ns(i));
          });
        }
      }
    }
  }

  void ReadCollectives() {
    for (const auto& list : FindCpuActivity(context_).lists) {
      for (const CpuInterval& interval : list) {
        if (interval.activity == Activity::kCommunication) collectives_.Add(interval.start_ns, interval.end_ns);
      }
    }
    collectives_.Join();
  }

  std::vector<RegionRow> Rows() {
    std::map<std::string, Sums> by_name;
    std::unordered_map<uint32_t, Sums*> of_name;  // names are looked at once
    for (const auto& [thread, ranges] : threads_) {
      for (const Range& range : ranges.ranges()) {
        if (!range.outermost) continue;
        Sums*& sums = of_name[range.name.value];
        if (sums == nullptr) sums = &by_name[RegionName(context_.names()[range.name])];
        Add(range, sums);
      }
    }
    std::vector<RegionRow> rows;
    for (auto& [name, sums] : by_name) {
      sums.row.name = name;
      rows.push_back(Finish(&sums));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const RegionRow& a, const RegionRow& b) { return a.total_ns > b.total_ns; });
    return rows;
  }

  void Add(const Range& range, Sums* sums) const {
    const int64_t duration_ns = range.end_ns - range.start_ns;
    sums->durations.push_back(duration_ns);
    sums->starts.push_back(range.start_ns);
    sums->row.total_ns = AddSaturating(sums->row.total_ns, duration_ns);
    if (!has_device_)
      sums->own_ns = AddSaturating(sums->own_ns, duration_ns - collectives_.Within(range.start_ns, range.end_ns));
    sums->row.device_event_count += range.device_event_count;
    sums->device_ns = AddSaturating(sums->device_ns, range.device_ns);
    sums->device_communication_ns = AddSaturating(sums->device_communication_ns, range.device_communication_ns);
    int64_t projected_ns = 0;
    if (range.device_event_count == 0) return;
    if (__builtin_sub_overflow(range.last_device_ns, range.first_device_ns, &projected_ns)) projected_ns = INT64_MAX;
    sums->projected_ns = AddSaturating(sums->projected_ns, projected_ns);
  }

  RegionRow Finish(Sums* sums) const {
    RegionRow& row = sums->row;
    row.rank_index = context_.rank_index;
    row.count = sums->durations.size();
    std::sort(sums->durations.begin(), sums->durations.end());
    row.min_ns = sums->durations.front();
    row.median_ns = std::llround(QuantileOfSorted(sums->durations, 0.5));
    row.p95_ns = std::llround(QuantileOfSorted(sums->durations, 0.95));
    row.max_ns = sums->durations.back();
    std::sort(sums->starts.begin(), sums->starts.end());
    std::vector<int64_t> distances;
    for (size_t i = 1; i < sums->starts.size(); ++i) {
      int64_t distance_ns = 0;
      if (__builtin_sub_overflow(sums->starts[i], sums->starts[i - 1], &distance_ns)) distance_ns = INT64_MAX;
      distances.push_back(distance_ns);
    }
    std::sort(distances.begin(), distances.end());
    if (!distances.empty()) row.pace_ns = std::llround(QuantileOfSorted(distances, 0.5));
    if (has_device_) {
      row.device_ns = sums->device_ns;
      row.device_communication_ns = sums->device_communication_ns;
      row.projected_ns = sums->projected_ns;
    } else {
      row.own_ns = sums->own_ns;
    }
    return row;
  }

  const RankContext& context_;
  HostRoles roles_;
  const bool has_device_;
  std::map<std::pair<int64_t, int64_t>, ThreadRanges> threads_;  // by process and thread
  Cover collectives_;
};

/// Mean, largest and whose it is, of some ranks' values.
struct Balance {
  int64_t mean_ns = 0;
  size_t most_rank_index = 0;
  double imbalance = 1;
};

Balance BalanceOf(const std::vector<std::pair<size_t, int64_t>>& by_rank) {
  double sum_ns = 0;
  const std::pair<size_t, int64_t>* most = &by_rank.front();
  for (const auto& value : by_rank) {
    sum_ns += static_cast<double>(value.second);
    if (value.second > most->second) most = &value;
  }
  const double mean_ns = sum_ns / static_cast<double>(by_rank.size());
  return {mean_ns < 9e18 ? std::llround(mean_ns) : INT64_MAX, most->first,
          mean_ns > 0 ? static_cast<double>(most->second) / mean_ns : 1};
}

}  // namespace

std::string RegionName(std::string_view range) {
  size_t end = range.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(range[end - 1])) != 0) --end;
  if (end == range.size() || end == 0) return std::string(range);
  std::string before;
  for (const char c : range.substr(0, end)) before += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  while (!before.empty() && std::string_view(" _#-:=").find(before.back()) != std::string_view::npos) before.pop_back();
  for (const char* word : {"step", "iteration", "iter", "epoch", "batch"}) {
    if (before.ends_with(word)) return std::string(range.substr(0, end)) + "*";
  }
  return std::string(range);
}

std::vector<RegionRow> MapRegions(const RankContext& context) { return RegionMapper(context).Map(); }

std::vector<RegionBalanceRow> BalanceRegions(const model::Run& run, const std::vector<RegionRow>& rows) {
  std::map<std::string_view, std::vector<const RegionRow*>> by_name;
  for (const RegionRow& row : rows) {
    if (run.ranks[row.rank_index].window == run.ranks.front().window) by_name[row.name].push_back(&row);
  }
  std::vector<RegionBalanceRow> balances;
  for (const auto& [name, of_ranks] : by_name) {
    RegionBalanceRow balance;
    balance.name = name;
    balance.rank_count = of_ranks.size();
    std::vector<std::pair<size_t, int64_t>> total, own, device, device_own;
    for (const RegionRow* row : of_ranks) {
      balance.count += row->count;
      total.emplace_back(row->rank_index, row->total_ns);
      if (row->own_ns) own.emplace_back(row->rank_index, *row->own_ns);
      if (!row->device_ns) continue;
      device.emplace_back(row->rank_index, *row->device_ns);
      device_own.emplace_back(row->rank_index, *row->device_ns - row->device_communication_ns.value_or(0));
    }
    const Balance of_total = BalanceOf(total);
    balance.mean_total_ns = of_total.mean_ns;
    balance.most_total_rank_index = of_total.most_rank_index;
    balance.total_imbalance = of_total.imbalance;
    if (!own.empty()) {
      const Balance of_own = BalanceOf(own);
      balance.mean_own_ns = of_own.mean_ns;
      balance.most_own_rank_index = of_own.most_rank_index;
      balance.own_imbalance = of_own.imbalance;
    }
    if (!device.empty()) {
      const Balance of_device = BalanceOf(device_own);
      balance.mean_device_ns = BalanceOf(device).mean_ns;
      if (of_device.mean_ns > 0) {
        balance.most_device_rank_index = of_device.most_rank_index;
        balance.device_imbalance = of_device.imbalance;
      }
    }
    balances.push_back(std::move(balance));
  }
  std::stable_sort(balances.begin(), balances.end(), [](const RegionBalanceRow& a, const RegionBalanceRow& b) {
    return a.mean_total_ns > b.mean_total_ns;
  });
  return balances;
}

namespace {

std::vector<RowColumn<RegionRow>> RegionColumns() {
  using Row = RegionRow;
  constexpr const char* kNoDevice = "no device events";
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      Field<&Row::name>("name", "", "Of the range; `step 12` is `step *`."),
      Field<&Row::count>("count", "count", "Ranges; of one inside another of its name the outer one."),
      Field<&Row::total_ns>("total_ns", "ns", "Sum of their times on the CPU."),
      Field<&Row::min_ns>("min_ns", "ns", "The shortest."),
      Field<&Row::median_ns>("median_ns", "ns", "Median."),
      Field<&Row::p95_ns>("p95_ns", "ns", "95th percentile."),
      Field<&Row::max_ns>("max_ns", "ns", "The longest."),
      Field<&Row::own_ns>("own_ns", "ns", "Part of `total_ns` in which no collective of a CPU backend is under way.",
                          "the rank has device events"),
      Field<&Row::pace_ns>("pace_ns", "ns", "Median time from one's start to the next one's.", "there is only one"),
      Field<&Row::device_event_count>("device_event_count", "count", "Device events launched inside."),
      Field<&Row::device_ns>("device_ns", "ns", "Sum of their times, over streams.", kNoDevice),
      Field<&Row::device_communication_ns>("device_communication_ns", "ns",
                                           "Part of `device_ns` in communication kernels.", kNoDevice),
      Field<&Row::projected_ns>("projected_ns", "ns",
                                "Sum of the times from the first start to the last end of a range's device events.",
                                kNoDevice),
  };
}

std::vector<RowColumn<RegionBalanceRow>> RegionBalanceColumns() {
  using Row = RegionBalanceRow;
  constexpr const char* kDevices = "the ranks have device events";
  constexpr const char* kNoDevice = "no device events";
  constexpr const char* kNoOwn = "no device events but communication";
  return {
      Field<&Row::name>("name", "", "Of the range."),
      Field<&Row::rank_count>("rank_count", "count", "Ranks that have it."),
      Field<&Row::count>("count", "count", "Ranges on all of them."),
      Field<&Row::mean_total_ns>("mean_total_ns", "ns", "Mean of the ranks' sums on the CPU."),
      RankField<&Row::most_total_rank_index>("most_total_rank", "Rank with the largest sum."),
      Field<&Row::total_imbalance>("total_imbalance", "", "Its sum over the mean."),
      Field<&Row::mean_own_ns>("mean_own_ns", "ns", "Mean of the ranks' `own_ns`.", kDevices),
      RankField<&Row::most_own_rank_index>("most_own_rank", "Rank with the largest `own_ns`.", kDevices),
      Field<&Row::own_imbalance>("own_imbalance", "", "Its `own_ns` over the mean.", kDevices),
      Field<&Row::mean_device_ns>("mean_device_ns", "ns", "Mean of the ranks' `device_ns`.", kNoDevice),
      RankField<&Row::most_device_rank_index>("most_device_rank",
                                              "Rank with the most device time without communication.", kNoOwn),
      Field<&Row::device_imbalance>("device_imbalance", "",
                                    "Its device time without communication over the mean of that.", kNoOwn),
  };
}

}  // namespace

Pass RegionsPass() {
  using Rows = std::vector<RegionRow>;
  return ReducingPass<Regions, Rows>(
      {.question = "How long are the ranges that the program marks, on CPU and device, and on which rank?",
       .tables = {DeclareTable("regions", "regions",
                               "The ranges of one name that one rank's program marks (record_function, NVTX)",
                               &Regions::rows, RegionColumns()),
                  DeclareTable("region_balance", "region_balance", "One such name over the ranks of the first window",
                               &Regions::balance, RegionBalanceColumns())}},
      MapRegions, [](PassContext& context, std::vector<Rows> ranks) {
        Regions all;
        for (Rows& rank : ranks) MoveRows(&rank, &all.rows);
        all.balance = BalanceRegions(context.run(), all.rows);
        return all;
      });
}

}  // namespace lockstep::analysis
