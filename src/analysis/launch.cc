#include "analysis/launch.h"

#include <algorithm>
#include <string_view>

#include "analysis/name_rows.h"
#include "analysis/pass.h"
#include "analysis/table.h"
#include "base/median.h"

namespace lockstep::analysis {
namespace {

constexpr int64_t kLongDelayNs = 100'000;
constexpr int64_t kLongCallNs = 50'000;
constexpr int64_t kFullQueueLength = 1024;

/// "cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch_ptsz", ...; each name is looked at once.
class GraphLaunchNames {
 public:
  explicit GraphLaunchNames(const model::NameTable& names)
      : names_(names), verdicts_(names.size(), Verdict::kUnknown) {}
  bool operator[](NameId name) {
    Verdict& verdict = verdicts_[name.value];
    if (verdict == Verdict::kUnknown) {
      verdict = names_[name].find("GraphLaunch") != std::string_view::npos ? Verdict::kYes : Verdict::kNo;
    }
    return verdict == Verdict::kYes;
  }

 private:
  enum class Verdict : uint8_t { kUnknown, kYes, kNo };
  const model::NameTable& names_;
  std::vector<Verdict> verdicts_;
};

/// The middle value; the mean of the middle two (rounded down) for an even count. Reorders `values`.
std::optional<int64_t> Median(std::vector<int64_t>* values) {
  if (values->empty()) return std::nullopt;
  return lockstep::Median(values);
}

/// Merges the launch starts and the device starts of one stream, both sorted, into the queue's figures.
void MeasureQueue(const std::vector<int64_t>& launched, const std::vector<int64_t>& started, QueueRow* queue) {
  int64_t length = 0;
  int64_t previous_ns = 0;
  double sum = 0;
  size_t next_launch = 0;
  size_t next_start = 0;
  while (next_start < started.size()) {
    // A launch at the very start of a device event comes first: nothing starts before it is launched.
    const bool is_launch = next_launch < launched.size() && launched[next_launch] <= started[next_start];
    const int64_t now_ns = is_launch ? launched[next_launch++] : started[next_start++];
    if (length >= kFullQueueLength) queue->full_ns += now_ns - previous_ns;
    length += is_launch ? 1 : -1;
    previous_ns = now_ns;
    sum += static_cast<double>(length);
    queue->max_length = std::max(queue->max_length, length);
    ++queue->change_count;
  }
  if (queue->change_count > 0) queue->mean_length = sum / static_cast<double>(queue->change_count);
}

}  // namespace

void ComputeLaunch(const RankContext& context, LaunchRow* row, std::vector<QueueRow>* queues) {
  const model::RankTrace& trace = context.trace();
  *row = LaunchRow();
  row->rank_index = context.rank_index;
  GraphLaunchNames is_graph_launch(context.names());
  std::vector<int64_t> delays;
  std::vector<int64_t> launched;
  std::vector<int64_t> started;
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    const model::Track& track = trace.tracks[t];
    if (track.lane != model::Lane::kDevice) continue;
    const model::EventColumns& events = track.events;
    launched.clear();
    started.clear();
    for (size_t i = 0; i < events.size(); ++i) {
      if (!context.InScope(t, i)) continue;
      const LaunchRef launch = context.launches[t][i];
      if (!launch.found()) {
        ++row->unlinked_count;
        continue;
      }
      const model::EventColumns& calls = trace.tracks[launch.track].events;
      if (is_graph_launch[calls.name[launch.row]]) {
        ++row->graph_event_count;
        continue;
      }
      const int64_t call_ns = calls.duration_ns[launch.row];
      const int64_t delay_ns = std::max<int64_t>(0, events.start_ns[i] - calls.end_ns(launch.row));
      ++row->launch_count;
      row->total_delay_ns = AddSaturating(row->total_delay_ns, delay_ns);
      row->max_delay_ns = std::max(row->max_delay_ns, delay_ns);
      if (delay_ns > kLongDelayNs) ++row->long_delay_count;
      if (events.duration_ns[i] < call_ns) ++row->short_kernel_count;
      if (call_ns > kLongCallNs) ++row->long_call_count;
      delays.push_back(delay_ns);
      launched.push_back(calls.start_ns[launch.row]);
      started.push_back(events.start_ns[i]);
    }
    if (started.empty()) continue;
    // A stream works in launch order, so this is sorted unless several threads launch on it.
    if (!std::is_sorted(launched.begin(), launched.end())) std::sort(launched.begin(), launched.end());
    QueueRow queue;
    queue.rank_index = context.rank_index;
    queue.device = track.device();
    queue.stream = track.stream();
    MeasureQueue(launched, started, &queue);
    queues->push_back(queue);
  }
  row->median_delay_ns = Median(&delays);
}

namespace {

std::vector<RowColumn<LaunchRow>> LaunchColumns() {
  using Row = LaunchRow;
  return {
      Field<&Row::launch_count>("launch_count", "count", "Device events with a launch call in the file."),
      Field<&Row::unlinked_count>("unlinked_count", "count", "Device events without."),
      Field<&Row::total_delay_ns>("total_delay_ns", "ns",
                                  "Sum of launch delays: end of the call to the start on the device, at least 0."),
      Field<&Row::max_delay_ns>("max_delay_ns", "ns", "Largest."),
      Field<&Row::median_delay_ns>("median_delay_ns", "ns", "Median.", "no linked event"),
      Field<&Row::long_delay_count>("long_delay_count", "count", "Delays over 100 us."),
      Field<&Row::short_kernel_count>("short_kernel_count", "count", "Device events shorter than their launch call."),
      Field<&Row::long_call_count>("long_call_count", "count", "Launch calls over 50 us."),
  };
}

std::vector<RowColumn<QueueRow>> QueueColumns() {
  using Row = QueueRow;
  return {
      Field<&Row::device>("device", "", "Device ordinal."),
      Field<&Row::stream>("stream", "", "Stream."),
      Field<&Row::change_count>("change_count", "count", "Changes of the length."),
      Field<&Row::mean_length>("mean_length", "events", "Mean over changes.", "not finite"),
      Field<&Row::max_length>("max_length", "events", "Largest."),
      Field<&Row::full_ns>("full_ns", "ns", "Time with 1,024 or more: the host blocks."),
  };
}

}  // namespace

Pass LaunchPass() {
  return RankPass<Launch>(
      {.question = "Does the host launch work early enough?",
       .tables = {DeclareRankTable("launch", "launch",
                                   "Launch calls of a rank paired with their device events by correlation id",
                                   &Launch::rows, LaunchColumns()),
                  DeclareRankTable("queues", "queues",
                                   "Length of each stream's launch queue: launched and not yet started",
                                   &Launch::queues, QueueColumns())}},
      [](const RankContext& context) {
        Launch rank;
        LaunchRow row;
        ComputeLaunch(context, &row, &rank.queues);
        if (context.trace().HasDeviceEvents()) rank.rows.push_back(row);
        return rank;
      });
}

}  // namespace lockstep::analysis
