// Sections with a line for each rank (and stream): breakdown, idle, memory, launch, imbalance, clocks.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/breakdown.h"
#include "analysis/idle.h"
#include "analysis/imbalance.h"
#include "analysis/launch.h"
#include "analysis/memory.h"
#include "present/report/format.h"
#include "present/report/text_page.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

template <typename Row>
std::vector<const Row*> Shown(const TextPage& page, const std::vector<Row>& rows) {
  std::vector<const Row*> shown;
  for (const Row& row : rows) {
    if (page.Shows(row.rank_index)) shown.push_back(&row);
  }
  return shown;
}

}  // namespace

void WriteBreakdownSection(const TextPage& page) {
  page.Heading("BREAKDOWN", "whole window; overlapped: communication under compute");
  const auto rows = Shown(page, page.result.Get<analysis::Breakdown>().ranks);
  TextTable table({{"rank"},
                   {"basis", Align::kLeft, false, 3},
                   {"span"},
                   {"busy", Align::kRight, false, 2},
                   {"compute"},
                   {"comm"},
                   {"exposed"},
                   {"overlap", Align::kRight, false, 1},
                   {"copies"},
                   {"idle"},
                   {"idle %"}});
  for (size_t i = 0; i < rows.size() && i < page.options.top; ++i) {
    const analysis::BreakdownRow& row = *rows[i];
    if (row.basis == analysis::Basis::kNone) {
      table.AddRow({page.RankLabel(row.rank_index), "none", "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    table.AddRow({page.RankLabel(row.rank_index), analysis::BasisName(row.basis), FormatDuration(row.span_ns),
                  FormatDuration(row.busy_ns), FormatDuration(row.compute_ns), FormatDuration(row.communication_ns),
                  FormatDuration(row.exposed_communication_ns), FormatPercent(row.communication_overlap_ratio()),
                  FormatDuration(row.memory_ns), FormatDuration(row.idle_ns), FormatShare(row.idle_ns, row.span_ns)});
  }
  page.Write(table, rows.size());
}

void WriteIdleSection(const TextPage& page) {
  page.Heading("IDLE", "between a stream's events; host wait: launched too late");
  auto rows = Shown(page, page.result.Get<analysis::Idle>().rows);
  if (rows.empty()) {
    page.Paragraph("No device stream, so no idle time by cause.");
    return;
  }
  const auto sum = [](const analysis::IdleRow& row) { return row.host_wait_ns + row.kernel_wait_ns + row.other_ns; };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return sum(*a) > sum(*b); });
  TextTable table(
      {{"rank"}, {"device"}, {"stream"}, {"idle"}, {"host wait"}, {""}, {"kernel wait"}, {""}, {"other"}, {""}});
  for (size_t i = 0; i < rows.size() && i < page.options.top; ++i) {
    const analysis::IdleRow& row = *rows[i];
    const int64_t whole = sum(row);
    table.AddRow({page.RankLabel(row.rank_index), fmt::format("{}", row.device.value),
                  fmt::format("{}", row.stream.value), FormatDuration(whole), FormatDuration(row.host_wait_ns),
                  FormatShare(row.host_wait_ns, whole), FormatDuration(row.kernel_wait_ns),
                  FormatShare(row.kernel_wait_ns, whole), FormatDuration(row.other_ns),
                  FormatShare(row.other_ns, whole)});
  }
  page.Write(table, rows.size());

  const auto hosts = Shown(page, page.result.Get<analysis::Idle>().host);
  if (hosts.empty()) return;
  page.Heading("IDLE DEVICE", "what the host did while nothing ran on the device");
  TextTable doing({{"rank"}, {"runtime call"}, {"data loader"}, {"operator"}, {"not recorded"}});
  for (size_t i = 0; i < hosts.size() && i < page.options.top; ++i) {
    const analysis::IdleHostRow& row = *hosts[i];
    doing.AddRow({page.RankLabel(row.rank_index), FormatDuration(row.runtime_ns), FormatDuration(row.data_loader_ns),
                  FormatDuration(row.operator_ns), FormatDuration(row.unknown_ns)});
  }
  page.Write(doing, hosts.size());
}

void WriteMemorySection(const TextPage& page) {
  page.Heading("MEMORY", "allocator's counters; net: allocated less freed in the window");
  auto rows = Shown(page, page.result.Get<analysis::Memory>().rows);
  if (rows.empty()) {
    page.Paragraph("No memory events: record with profile_memory=True to have them.");
    return;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->peak_allocated_bytes.value_or(-1) > b->peak_allocated_bytes.value_or(-1);
  });
  TextTable table({{"rank"},
                   {"device", Align::kLeft},
                   {"allocated"},
                   {"reserved"},
                   {"of device"},
                   {"net"},
                   {"allocations"},
                   {"frees", Align::kRight, false, 1}});
  for (size_t i = 0; i < rows.size() && i < page.options.top; ++i) {
    const analysis::MemoryRow& row = *rows[i];
    const bool share = row.peak_reserved_bytes && row.device_memory_bytes;
    table.AddRow({page.RankLabel(row.rank_index), row.device < 0 ? std::string("cpu") : fmt::format("{}", row.device),
                  FormatBytes(row.peak_allocated_bytes), FormatBytes(row.peak_reserved_bytes),
                  share ? FormatShare(*row.peak_reserved_bytes, *row.device_memory_bytes) : "-",
                  FormatBytes(row.net_bytes), FormatCount(row.allocation_count), FormatCount(row.free_count)});
  }
  page.Write(table, rows.size());
}

void WriteLaunchSection(const TextPage& page) {
  page.Heading("LAUNCH", "delay: end of the launch call to the start on the device");
  auto rows = Shown(page, page.result.Get<analysis::Launch>().rows);
  if (rows.empty()) {
    page.Paragraph("No launch calls in the files.");
    return;
  }
  TextTable table({{"rank"},
                   {"launches"},
                   {"unlinked", Align::kRight, false, 2},
                   {"median"},
                   {"max"},
                   {"delay sum"},
                   {">100 us"},
                   {"short"},
                   {"slow calls"}});
  for (size_t i = 0; i < rows.size() && i < page.options.top; ++i) {
    const analysis::LaunchRow& row = *rows[i];
    table.AddRow({page.RankLabel(row.rank_index), FormatCount(row.launch_count), FormatCount(row.unlinked_count),
                  FormatDuration(row.median_delay_ns), FormatDuration(row.max_delay_ns),
                  FormatDuration(row.total_delay_ns), FormatCount(row.long_delay_count),
                  FormatCount(row.short_kernel_count), FormatCount(row.long_call_count)});
  }
  page.Write(table, rows.size());
  page.Paragraph("short: runs shorter than its launch call takes; slow calls: over 50 us.", Paint::kFaint);

  auto queues = Shown(page, page.result.Get<analysis::Launch>().queues);
  if (queues.empty()) return;
  std::stable_sort(queues.begin(), queues.end(),
                   [](const auto* a, const auto* b) { return a->max_length > b->max_length; });
  page.Heading("QUEUES", "launched and not started; full: 1,024 or more, the host blocks");
  TextTable lengths({{"rank"}, {"device"}, {"stream"}, {"changes"}, {"mean"}, {"max"}, {"full"}});
  for (size_t i = 0; i < queues.size() && i < page.options.top; ++i) {
    const analysis::QueueRow& row = *queues[i];
    lengths.AddRow({page.RankLabel(row.rank_index), fmt::format("{}", row.device.value),
                    fmt::format("{}", row.stream.value), FormatCount(row.change_count), FormatNumber(row.mean_length),
                    fmt::format("{}", row.max_length), FormatDuration(row.full_ns)});
  }
  page.Write(lengths, queues.size());
}

void WriteImbalanceSection(const TextPage& page) {
  page.Heading("IMBALANCE", "over the ranks; ratio: max / mean - 1");
  const auto& rows = page.result.Get<analysis::Imbalance>().rows;
  if (rows.empty()) {
    page.Paragraph("One rank: nothing to compare.");
    return;
  }
  const auto number = [](std::string_view quantity, double value) {
    if (quantity.ends_with("_ns")) return FormatDuration(static_cast<int64_t>(value));
    if (quantity.ends_with("_bytes")) return FormatBytes(static_cast<int64_t>(value));
    return FormatNumber(value);
  };
  // The unit is in the figures; the name goes without it.
  const auto name = [](std::string_view quantity) {
    for (const std::string_view unit : {"_ns", "_bytes"}) {
      if (quantity.ends_with(unit)) quantity.remove_suffix(unit.size());
    }
    std::string text(quantity);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  };
  TextTable table({{"quantity", Align::kLeft, true}, {"min"}, {"on rank"}, {"mean"}, {"max"}, {"on rank"}, {"ratio"}});
  for (const analysis::ImbalanceRow& row : rows) {
    table.AddRow({name(row.quantity), number(row.quantity, row.min), page.RankLabel(row.min_rank_index),
                  number(row.quantity, row.mean), number(row.quantity, row.max), page.RankLabel(row.max_rank_index),
                  FormatPercent(row.ratio)});
  }
  table.Write(page.style, page.options.width, page.out);
}

void WriteClocksSection(const TextPage& page) {
  page.Heading("CLOCKS AND FILES", "offset: what a rank's clock reads more than the reference's");
  TextTable table({{"rank"},
                   {"host", Align::kLeft, false, 2},
                   {"offset"},
                   {"+-"},
                   {"drift ppm", Align::kRight, false, 1},
                   {"from", Align::kLeft},
                   {"events"},
                   {"file", Align::kLeft, true}});
  size_t count = 0;
  for (size_t i = 0; i < page.run.ranks.size(); ++i) {
    if (!page.Shows(i) || ++count > page.options.top) continue;
    const model::RankTrace& trace = page.run.ranks[i];
    const model::ClockMap& clock = trace.clock;
    const bool reference = clock.basis == model::ClockMap::Basis::kReference;
    const std::string from = reference ? "reference"
                             : clock.basis == model::ClockMap::Basis::kCollectives
                                 ? fmt::format("{} collectives", clock.sample_count)
                                 : std::string("wall clock");
    table.AddRow({page.RankLabel(i),
                  trace.host.empty() ? "-" : Truncate(Printable(trace.host), 14, page.style.Ellipsis()),
                  reference ? "0" : FormatDuration(clock.offset_ns), FormatDuration(clock.uncertainty_ns),
                  clock.drift_ppm == 0 ? "-" : fmt::format("{:.3f}", clock.drift_ppm), from,
                  FormatCount(trace.event_count), Printable(trace.source.substr(trace.source.rfind('/') + 1))});
  }
  page.Write(table, count);
}

}  // namespace lockstep::report
