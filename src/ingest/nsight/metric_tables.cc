#include "ingest/nsight/metric_tables.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text_scan.h"
#include "base/utf8.h"

namespace lockstep::ingest::nsight {
namespace {

using model::CounterSeries;
using model::Severity;

constexpr size_t kMaxSeries = 65536;   // A report that names more is not one.
constexpr uint64_t kAskedRows = 4096;  // Between two questions whether to go on.

/// Series by whatever tells them apart in a table, in the order in which they first came.
template <typename Key>
class SeriesByKey {
 public:
  /// The series of `key`, made by `make` where it is new; nullptr when there are too many, or `make` declines.
  template <typename Make>
  CounterSeries* Of(const Key& key, const Make& make) {
    const auto [found, is_new] = index_.try_emplace(key, counters_.size());
    if (is_new && (counters_.size() >= kMaxSeries || !make(&counters_.emplace_back()))) {
      if (counters_.size() > found->second) counters_.pop_back();
      found->second = SIZE_MAX;
    }
    return found->second == SIZE_MAX ? nullptr : &counters_[found->second].series;
  }
  std::vector<ReportCounter> Take() { return std::move(counters_); }

 private:
  std::map<Key, size_t> index_;
  std::vector<ReportCounter> counters_;
};

void Add(int64_t time_ns, double value, CounterSeries* series) {
  series->time_ns.push_back(time_ns);
  series->value.push_back(value);
}

/// "SMs Active [Throughput %]" is "SMs Active" in "%".
void Name(std::string_view text, CounterSeries* series) {
  const size_t open = text.rfind(" [");
  if (open == std::string_view::npos || !text.ends_with(']')) {
    series->name = Printable(text.substr(0, 200));
    return;
  }
  series->name = Printable(text.substr(0, std::min<size_t>(open, 200)));
  const std::string_view unit = text.substr(open + 2, text.size() - open - 3);
  series->unit = unit == "Throughput %" ? "%" : Printable(unit.substr(0, 40));
}

/// Whether a sample's time can be one; samples from before the session began have times below 0 and are of no use to
/// it.
bool IsInSession(int64_t time_ns, ReportNotes* notes) {
  constexpr int64_t kMaxTimeNs = INT64_MAX / 4;
  if (time_ns > kMaxTimeNs) notes->CountRow(kOverflow);
  return time_ns >= 0 && time_ns <= kMaxTimeNs;
}

int64_t GpuOf(int64_t type_id) { return type_id & 0xFF; }

/// Walks a table; ends early where it is damaged or the reader has enough.
template <typename Visit>
void Walk(TableScan* rows, const char* table, const std::function<bool()>& cancelled, ReportNotes* notes, Visit visit) {
  rows->ForEach([&] {
    if (rows->row_count() % kAskedRows == 0 && cancelled && cancelled()) rows->Stop();
    visit();
  });
  if (!rows->failure().empty()) notes->AddDamagedTable(table, rows->row_count(), rows->failure());
}

std::vector<ReportCounter> ReadGpuMetrics(const Database& database, const std::function<bool()>& cancelled,
                                          ReportNotes* notes) {
  std::map<std::pair<int64_t, int64_t>, std::string> names;
  TableScan described(database, "TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"});
  described.ForEach([&] {
    if (described.row_count() >= kMaxSeries) described.Stop();
    names.try_emplace({described.Int(0), described.Int(1)}, described.Text(2));
  });
  SeriesByKey<std::pair<int64_t, int64_t>> series;
  TableScan rows(database, "GPU_METRICS", {"timestamp", "typeId", "metricId", "value"});
  Walk(&rows, "GPU_METRICS", cancelled, notes, [&] {
    if (rows.IsNull(0) || rows.IsNull(3) || !IsInSession(rows.Int(0), notes)) return;
    const std::pair<int64_t, int64_t> key = {rows.Int(1), rows.Int(2)};
    CounterSeries* const one = series.Of(key, [&](ReportCounter* counter) {
      const auto name = names.find(key);
      if (name == names.end()) return false;
      counter->gpu = GpuOf(key.first);
      Name(name->second, &counter->series);
      return true;
    });
    if (one == nullptr) {
      notes->CountRow(kUnnamedMetric);
    } else {
      Add(rows.Int(0), static_cast<double>(rows.Int(3)), one);
    }
  });
  return series.Take();
}

std::optional<double> NumberIn(simdjson::dom::element value) {
  double number = 0;
  if (value.get_double().get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS || text.empty()) return std::nullopt;
  return lockstep::WholeNumber<double>(text);
}

/// Before it had a table of its own, a sample was an event whose JSON has a member per metric; what else is such an
/// event (of the operating system, of other programs) has no member that is called after the multiprocessors.
std::vector<ReportCounter> ReadGenericEvents(const Database& database, const std::function<bool()>& cancelled,
                                             ReportNotes* notes) {
  constexpr size_t kMaxText = size_t{64} << 10;
  simdjson::dom::parser parser;
  std::map<int64_t, bool> is_sample;
  SeriesByKey<std::pair<int64_t, std::string>> series;
  TableScan rows(database, "GENERIC_EVENTS", {"timestamp", "rawTimestamp", "typeId", "data"});
  Walk(&rows, "GENERIC_EVENTS", cancelled, notes, [&] {
    if (rows.IsNull(0) && rows.IsNull(1)) return;
    const int64_t time_ns = rows.IsNull(0) ? rows.Int(1) : rows.Int(0);
    const int64_t type = rows.Int(2);
    const auto known = is_sample.find(type);
    const std::string_view text = rows.Text(3);
    if (!IsInSession(time_ns, notes) || text.size() > kMaxText || (known != is_sample.end() && !known->second)) return;
    simdjson::dom::object members;
    if (parser.parse(text.data(), text.size()).get_object().get(members) != simdjson::SUCCESS) return;
    if (known == is_sample.end()) {
      const bool has = std::any_of(members.begin(), members.end(), [](const auto& member) {
        return member.key.starts_with("SM ") || member.key.starts_with("SMs ");
      });
      is_sample.emplace(type, has);
      if (!has) return;
    }
    for (const auto& [key, value] : members) {
      const std::optional<double> number = NumberIn(value);
      if (!number) continue;
      const std::string_view name = key;  // clang 14 cannot capture a binding.
      CounterSeries* const one = series.Of({type, std::string(key)}, [&](ReportCounter* counter) {
        counter->gpu = GpuOf(type);
        Name(name, &counter->series);
        return true;
      });
      if (one != nullptr) Add(time_ns, *number, one);
    }
  });
  return series.Take();
}

std::vector<ReportCounter> ReadNetworkMetrics(const Database& database, const std::function<bool()>& cancelled,
                                              ReportNotes* notes) {
  std::map<int64_t, std::string> cards;  // By nicId.
  TableScan infos(database, "TARGET_INFO_NIC_INFO", {"nicId", "name"});
  infos.ForEach([&] {
    if (infos.row_count() >= kMaxSeries) infos.Stop();
    cards.try_emplace(infos.Int(0), Printable(infos.Text(1).substr(0, 100)));
  });
  std::map<int64_t, int64_t> card_of;  // By globalId.
  TableScan numbers(database, "NIC_ID_MAP", {"nicId", "globalId"});
  numbers.ForEach([&] {
    if (numbers.row_count() >= kMaxSeries) numbers.Stop();
    card_of.try_emplace(numbers.Int(1), numbers.Int(0));
  });
  std::map<std::pair<int64_t, int64_t>, std::pair<std::string, std::string>> names;
  TableScan described(database, "TARGET_INFO_NETWORK_METRICS", {"metricsListId", "metricsIdx", "name", "unit"});
  described.ForEach([&] {
    if (described.row_count() >= kMaxSeries) described.Stop();
    names.try_emplace({described.Int(0), described.Int(1)}, Printable(described.Text(2).substr(0, 200)),
                      Printable(described.Text(3).substr(0, 40)));
  });
  SeriesByKey<std::tuple<int64_t, int64_t, int64_t, int64_t>> series;
  TableScan rows(database, "NET_NIC_METRIC", {"start", "globalId", "portId", "metricsListId", "metricsIdx", "value"});
  Walk(&rows, "NET_NIC_METRIC", cancelled, notes, [&] {
    if (rows.IsNull(0) || rows.IsNull(5) || !IsInSession(rows.Int(0), notes)) return;
    const std::tuple key = {rows.Int(1), rows.Int(2), rows.Int(3), rows.Int(4)};
    CounterSeries* const one = series.Of(key, [&](ReportCounter* counter) {
      const auto name = names.find({rows.Int(3), rows.Int(4)});
      if (name == names.end()) return false;
      const auto number = card_of.find(rows.Int(1));
      const auto card = number == card_of.end() ? cards.end() : cards.find(number->second);
      counter->series.name =
          fmt::format("{} port {}: {}", card == cards.end() ? fmt::format("NIC {}", rows.Int(1)) : card->second,
                      rows.Int(2), name->second.first);
      counter->series.unit = name->second.second;
      return true;
    });
    if (one == nullptr) {
      notes->CountRow(kUnnamedMetric);
    } else {
      Add(rows.Int(0), static_cast<double>(rows.Int(5)), one);
    }
  });
  return series.Take();
}

void Sort(CounterSeries* series) {
  if (std::is_sorted(series->time_ns.begin(), series->time_ns.end())) return;
  std::vector<uint32_t> order(series->size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return series->time_ns[a] < series->time_ns[b]; });
  CounterSeries sorted;
  for (const uint32_t i : order) Add(series->time_ns[i], series->value[i], &sorted);
  series->time_ns = std::move(sorted.time_ns);
  series->value = std::move(sorted.value);
}

}  // namespace

std::vector<ReportCounter> ReadMetrics(const Database& database, const std::function<bool()>& cancelled,
                                       ReportNotes* notes) {
  std::vector<ReportCounter> counters = ReadGpuMetrics(database, cancelled, notes);
  if (counters.empty()) counters = ReadGenericEvents(database, cancelled, notes);
  for (ReportCounter& counter : ReadNetworkMetrics(database, cancelled, notes)) counters.push_back(std::move(counter));
  for (ReportCounter& counter : counters) Sort(&counter.series);
  return counters;
}

void GiveCounters(std::vector<ReportCounter> counters, const ReportFacts& facts, const std::vector<int64_t>& pids,
                  const std::vector<model::RankTrace*>& traces, ReportNotes* notes) {
  if (traces.empty() || counters.empty()) return;
  std::map<int64_t, std::pair<size_t, int32_t>> owners;  // GPU -> rank, ordinal
  for (size_t i = 0; i < traces.size(); ++i) {
    for (const DeviceOrdinal used : traces[i]->DeviceOrdinals()) {
      owners.try_emplace(facts.SampledGpuOf(pids[i], used.value), i, used.value);
    }
  }
  const std::vector<DeviceOrdinal> of_first = traces.front()->DeviceOrdinals();
  const int64_t base_ns = facts.base_ns.value_or(0);
  std::set<int64_t> hidden;
  for (ReportCounter& counter : counters) {
    size_t rank = 0;
    if (counter.gpu) {
      if (const auto owner = owners.find(*counter.gpu); owner != owners.end()) {
        rank = owner->second.first;
        counter.series.device = DeviceOrdinal{owner->second.second};
      } else {
        counter.series.device = DeviceOrdinal{facts.OrdinalOf(*counter.gpu)};
        if (std::find(of_first.begin(), of_first.end(), *counter.series.device) != of_first.end()) {
          hidden.insert(*counter.gpu);
          continue;
        }
      }
    }
    for (int64_t& time_ns : counter.series.time_ns) time_ns += base_ns;
    traces[rank]->counters.push_back(std::move(counter.series));
  }
  for (model::RankTrace* const trace : traces) {
    std::stable_sort(trace->counters.begin(), trace->counters.end(), [](const auto& a, const auto& b) {
      return std::tie(a.device, a.name) < std::tie(b.device, b.name);
    });
  }
  if (!hidden.empty()) {
    notes->Add("nsys_other_gpus", Severity::kInfo,
               "metrics of devices that no rank of the report used were left out: it does not tell their numbers", "",
               hidden.size());
  }
}

}  // namespace lockstep::ingest::nsight
