#include "ingest/kernel_profile/ncu_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text_scan.h"
#include "ingest/kernel_profile/csv_rows.h"
#include "ingest/kernel_profile/metric_units.h"
#include "ingest/kernel_profile/roofline_metrics.h"

namespace lockstep::ingest {
namespace {

using model::KernelLaunch;
using model::KernelProfiles;

constexpr double kLongestKernelNs = 1e18;

/// The table: from its header on.
std::string_view NcuTableOf(std::string_view text) {
  for (LineScanner lines(text); true;) {
    const std::string_view rest = lines.rest();
    std::string_view line;
    if (!lines.Next(&line)) return {};
    const bool begins = line.substr(0, 5) == "\"ID\"," || line.substr(0, 3) == "ID,";
    if (begins && line.find("Kernel Name") != std::string_view::npos) return rest;
  }
}

class NcuTable {
 public:
  NcuTable(std::string_view file, std::optional<int32_t> rank, KernelProfiles* profiles)
      : file_(file), rank_(rank), profiles_(*profiles) {}

  void Read(std::string_view table) {
    ForEachRow(table, ',', [&](std::vector<std::string>& cells) {
      if (header_.empty()) {
        header_ = cells;
        for (size_t c = 0; c < header_.size(); ++c) column_.emplace(header_[c], c);
        return true;
      }
      // A name may hold commas as well, but not among all that is a number.
      if (static_cast<std::ptrdiff_t>(cells.size()) > kFacts() &&
          std::any_of(cells.begin() + kFacts(), cells.end(), HasDecimalComma)) {
        style_.decimal = ',';
        return false;
      }
      return true;
    });
    bool is_header = true;
    ForEachRow(table, ',', [&](std::vector<std::string>& cells) {
      if (!std::exchange(is_header, false)) TakeRow(cells);
      return true;
    });
    for (KernelLaunch& launch : launches_) Finish(&launch);
    if (skipped_ > 0) {
      profiles_.ledger.Add({.code = "ncu_rows_skipped",
                            .severity = model::Severity::kInfo,
                            .source = file_,
                            .rank = rank_,
                            .count = skipped_,
                            .message = fmt::format("{} lines among ncu's table are not rows of it", skipped_),
                            .advice = "the program's own output, most likely: ncu --log-file keeps it apart"});
    }
  }

 private:
  /// Columns up to the compute capability say what was launched, those behind it what was measured.
  std::ptrdiff_t kFacts() const {
    const auto last = std::max({ColumnOf("CC"), ColumnOf("Kernel Name"), ColumnOf("Stream")});
    return std::min<std::ptrdiff_t>(last + 1, static_cast<std::ptrdiff_t>(header_.size()));
  }
  std::ptrdiff_t ColumnOf(const char* name) const {
    const auto found = column_.find(name);
    return found == column_.end() ? -1 : static_cast<std::ptrdiff_t>(found->second);
  }
  std::string Cell(const std::vector<std::string>& cells, const char* name) const {
    const std::ptrdiff_t column = ColumnOf(name);
    return column < 0 ? "" : cells[static_cast<size_t>(column)];
  }

  void TakeRow(std::vector<std::string>& cells) {
    // Rows of the details page end behind the metric where no rule follows.
    const std::ptrdiff_t value = ColumnOf("Metric Value");
    if (value >= 0 && cells.size() > static_cast<size_t>(value) && cells.size() < header_.size()) {
      cells.resize(header_.size());
    }
    if (cells.size() != header_.size()) {
      ++skipped_;
      return;
    }
    const std::string id_text = Cell(cells, "ID");
    if (id_text.empty() && units_.empty() && ColumnOf("Metric Name") < 0) {
      units_ = cells;
      return;
    }
    const std::optional<double> id = NumberOf(id_text, style_);
    if (!id || *id < 0 || *id > 1e15) {
      ++skipped_;
      return;
    }
    KernelLaunch& launch = LaunchOf(static_cast<uint64_t>(*id), cells);
    if (ColumnOf("Metric Name") >= 0) {
      TakeDetail(cells, &launch);
    } else {
      TakeMetrics(cells, &launch);
    }
  }

  /// The row's launch; the details page has many rows of one, one behind the other.
  KernelLaunch& LaunchOf(uint64_t id, const std::vector<std::string>& cells) {
    std::string process = Cell(cells, "Process ID");
    if (!launches_.empty() && launches_.back().id == id && process_id_ == process && ColumnOf("Metric Name") >= 0) {
      return launches_.back();
    }
    process_id_ = std::move(process);
    KernelLaunch& launch = launches_.emplace_back();
    metrics_.emplace_back();
    launch.file = file_;
    launch.rank = rank_;
    launch.id = id;
    launch.process = Cell(cells, "Process Name");
    launch.kernel = Cell(cells, "Kernel Name");
    launch.device = Cell(cells, "device__attribute_display_name");
    if (launch.device.empty()) launch.device = Cell(cells, "Device");
    launch.compute_capability = Cell(cells, "CC");
    launch.grid = Cell(cells, "Grid Size");
    launch.block = Cell(cells, "Block Size");
    return launch;
  }

  void TakeMetrics(const std::vector<std::string>& cells, KernelLaunch* launch) {
    NcuMetrics& metrics = metrics_.back();
    for (auto c = static_cast<size_t>(kFacts()); c < cells.size(); ++c) {
      const std::optional<double> value = NumberOf(cells[c], style_);
      if (value) metrics.emplace(header_[c], *value * (units_.empty() ? 1 : FactorOf(units_[c])));
    }
    SetDuration(metrics, "gpu__time_duration.sum", launch);
    launch->compute_ratio = Find(metrics, "sm__throughput.avg.pct_of_peak_sustained_elapsed");
    launch->memory_ratio = Find(metrics, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
    launch->dram_ratio = Find(metrics, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed");
    launch->occupancy_ratio = Find(metrics, "sm__warps_active.avg.pct_of_peak_sustained_active");
  }

  void TakeDetail(const std::vector<std::string>& cells, KernelLaunch* launch) {
    if (const std::string rule = Cell(cells, "Rule Name"); !rule.empty()) {
      model::KernelRule taken{rule, Cell(cells, "Rule Type"), Cell(cells, "Rule Description"), {}, false};
      taken.speedup_is_local = Cell(cells, "Estimated Speedup Type") == "local";
      if (const auto speedup = NumberOf(Cell(cells, "Estimated Speedup"), style_)) taken.speedup_ratio = *speedup / 100;
      launch->rules.push_back(std::move(taken));
    }
    const std::optional<double> value = NumberOf(Cell(cells, "Metric Value"), style_);
    if (!value) return;
    const std::string unit = Cell(cells, "Metric Unit");
    const std::string name = Cell(cells, "Metric Name");
    const double number = *value * FactorOf(unit);
    metrics_.back().emplace(name, number);
    if (name == "Duration") SetDuration(metrics_.back(), "Duration", launch);
    if (unit != "%") return;
    if (name == "Compute (SM) Throughput" || name == "SM Throughput") launch->compute_ratio = number;
    if (name == "Memory Throughput") launch->memory_ratio = number;
    if (name == "DRAM Throughput") launch->dram_ratio = number;
    if (name == "Achieved Occupancy") launch->occupancy_ratio = number;
  }

  static void SetDuration(const NcuMetrics& metrics, const char* name, KernelLaunch* launch) {
    const std::optional<double> seconds = Find(metrics, name);
    if (seconds && *seconds >= 0 && *seconds * 1e9 < kLongestKernelNs)
      launch->duration_ns = std::llround(*seconds * 1e9);
  }

  void Finish(KernelLaunch* launch) {
    const NcuMetrics& metrics = metrics_[static_cast<size_t>(launch - launches_.data())];
    AddRoofline(metrics, launch);
    launch->measured_nothing = !metrics.empty() && launch->duration_ns.value_or(0) == 0 &&
                               launch->compute_ratio.value_or(0) == 0 && launch->memory_ratio.value_or(0) == 0 &&
                               launch->rates.empty();
    if (launch->measured_nothing) {
      profiles_.ledger.Add({.code = "ncu_measured_nothing",
                            .severity = model::Severity::kWarning,
                            .source = file_,
                            .rank = rank_,
                            .message = "all metrics of a launch are 0 or not numbers",
                            .advice = "another profiler (DCGM, Nsight Systems) may hold the counters, or the driver "
                                      "forbids them: dcgmi profile --pause, or ask for ERR_NVGPUCTRPERM's remedy"});
    }
    profiles_.launches.push_back(std::move(*launch));
  }

  const std::string file_;
  const std::optional<int32_t> rank_;
  KernelProfiles& profiles_;
  NumberStyle style_;
  std::vector<std::string> header_;
  std::map<std::string, size_t, std::less<>> column_;
  std::vector<std::string> units_;  // of the raw page, by column
  std::string process_id_;          // of the last launch
  std::vector<KernelLaunch> launches_;
  std::vector<NcuMetrics> metrics_;  // by launch
  uint64_t skipped_ = 0;
};

}  // namespace

bool LooksLikeNcuCsv(std::string_view text) { return !NcuTableOf(text).empty(); }

void ReadNcuCsv(std::string_view text, std::string_view file, std::optional<int32_t> rank, KernelProfiles* profiles) {
  NcuTable(file, rank, profiles).Read(NcuTableOf(text));
}

}  // namespace lockstep::ingest
