#include "present/export/tensorboard/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "analysis/imbalance.h"
#include "analysis/kernel_kind.h"
#include "analysis/kernels.h"
#include "analysis/memory.h"
#include "analysis/stragglers.h"
#include "analysis/wait_steps.h"
#include "present/export/tensorboard/event_file.h"
#include "present/report/kernel_name.h"
#include "present/report/utf8.h"

namespace lockstep::tensorboard {
namespace {

using analysis::AnalysisResult;
using analysis::BreakdownRow;
using model::Run;

constexpr size_t kLongestTag = 160;

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }
double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

bool Selected(const std::vector<std::pair<int64_t, int64_t>>& ranges, int64_t number) {
  return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
           return range.first <= number && number <= range.second;
         });
}

struct Part {
  const char* name;
  int64_t BreakdownRow::*field;
  const char* meaning;
};
constexpr Part kParts[] = {
    {"span", &BreakdownRow::span_ns, "the whole of it"},
    {"compute", &BreakdownRow::compute_ns, "compute kernels run"},
    {"communication", &BreakdownRow::communication_ns, "communication runs, hidden or not"},
    {"exposed_communication", &BreakdownRow::exposed_communication_ns,
     "communication runs and no compute: what it costs"},
    {"overlapped_communication", &BreakdownRow::overlapped_communication_ns, "communication hidden behind compute"},
    {"exposed_memory", &BreakdownRow::exposed_memory_ns, "copies and sets run, and nothing else"},
    {"idle", &BreakdownRow::idle_ns, "nothing runs"},
};
constexpr const char* kShares[] = {"compute", "exposed_communication", "exposed_memory", "idle"};

// Durations and shares of one row of the breakdown. `scope`: "step" or "window".
void AddBreakdown(const BreakdownRow& row, const char* scope, int64_t step, double wall_time_s, EventFile* file) {
  if (row.basis == analysis::Basis::kNone) return;
  for (const Part& part : kParts) {
    file->AddScalar(fmt::format("{}/{}_ms", scope, part.name),
                    fmt::format("Milliseconds of the {} in which {}.", scope, part.meaning), step, wall_time_s,
                    Ms(row.*part.field));
    const bool has_share = std::any_of(std::begin(kShares), std::end(kShares),
                                       [&](const char* name) { return std::string_view(name) == part.name; });
    if (has_share && row.span_ns > 0) {
      file->AddScalar(fmt::format("{}_share/{}", scope, part.name),
                      fmt::format("Share (0..1) of the {} in which {}.", scope, part.meaning), step, wall_time_s,
                      static_cast<double>(row.*part.field) / static_cast<double>(row.span_ns));
    }
  }
  if (const auto ratio = row.communication_overlap_ratio()) {
    file->AddScalar(fmt::format("{}_share/communication_overlap", scope),
                    "Share (0..1) of communication that is hidden behind compute.", step, wall_time_s, *ratio);
  }
}

class Exporter {
 public:
  Exporter(const Run& run, const AnalysisResult& result, const analysis::AnalysisOptions& options_of_analysis,
           const Options& options)
      : run_(run), result_(result), options_(options) {
    analysis::RunContext context;
    context.run = &run;
    context.options = options_of_analysis;
    context.is_communication = analysis::ClassifyCommunication(run, options_of_analysis.communication_kernels);
    for (const analysis::WaitStep& row : analysis::ComputeWaitSteps(context, result.Get<analysis::Collectives>()))
      waits_[{row.rank_index, row.step_number}] = row.wait_ns;
  }

  Result<Written> Write() {
    std::vector<size_t> ranks;
    std::vector<int32_t> windows;
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      const model::RankTrace& trace = run_.ranks[i];
      if (windows.empty() || windows.back() != trace.window) windows.push_back(trace.window);
      if (Selected(options_.ranks, trace.rank.value)) ranks.push_back(i);
    }
    if (ranks.empty()) return Nothing("--ranks", "lockstep analyze shows which there are");
    const auto& steps = result_.Get<analysis::Breakdown>().steps;
    if (!options_.steps.empty() && std::none_of(steps.begin(), steps.end(), [&](const BreakdownRow& row) {
          return row.step_number && Selected(options_.steps, *row.step_number);
        })) {
      return Nothing("--steps", "lockstep analyze --section steps shows which there are");
    }
    if (!options_.force) {
      for (const int32_t window : windows) RETURN_IF_ERROR(CheckEmpty(Folder("job", window)));
      for (const size_t rank : ranks) RETURN_IF_ERROR(CheckEmpty(RankFolder(rank)));
    }
    Written written;
    for (const int32_t window : windows) RETURN_IF_ERROR(Save(MakeJob(window), Folder("job", window), &written));
    for (const size_t rank : ranks) RETURN_IF_ERROR(Save(MakeRank(rank), RankFolder(rank), &written));
    return written;
  }

 private:
  std::string Folder(const std::string& name, int32_t window) const {
    return options_.folder + "/" + (window == 0 ? name : fmt::format("{}_window{}", name, window));
  }
  std::string RankFolder(size_t rank) const {
    return Folder(fmt::format("rank{}", run_.ranks[rank].rank.value), run_.ranks[rank].window);
  }
  static Error Nothing(const char* flag, const char* advice) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("{}: none of these is in the traces ({})", flag, advice)};
  }
  static Status CheckEmpty(const std::string& folder) {
    if (!HoldsEvents(folder)) return {};
    return Error{.code = ErrorCode::kFailedPrecondition,
                 .message =
                     "holds event files already, and TensorBoard would draw both exports as one curve; give "
                     "another --logdir, or --force to add to them",
                 .file = folder};
  }
  static Status Save(const EventFile& file, const std::string& folder, Written* written) {
    ASSIGN_OR_RETURN(const std::string path, file.Save(folder));
    written->files.push_back(path);
    written->scalar_count += file.scalar_count();
    written->histogram_count += file.histogram_count();
    return {};
  }

  // Of a rank's own clock, as seconds of the common one.
  double WallTime(size_t rank, int64_t trace_ns) const { return Seconds(run_.ranks[rank].clock.ToRun(trace_ns)); }
  double FirstTime(size_t rank) const { return WallTime(rank, run_.ranks[rank].first_ns.value_or(0)); }
  double LastTime(size_t rank) const { return WallTime(rank, run_.ranks[rank].last_ns.value_or(0)); }
  double EndTime(const BreakdownRow& row) const { return WallTime(row.rank_index, row.start_ns + row.span_ns); }
  std::optional<int64_t> WaitOf(size_t rank, int64_t step) const {
    const auto found = waits_.find({rank, step});
    return found == waits_.end() ? std::nullopt : std::optional(found->second);
  }

  EventFile MakeRank(size_t rank) const {
    EventFile file(FirstTime(rank));
    for (const BreakdownRow& row : result_.Get<analysis::Breakdown>().steps) {
      if (row.rank_index != rank || !row.step_number || !Selected(options_.steps, *row.step_number)) continue;
      AddBreakdown(row, "step", *row.step_number, EndTime(row), &file);
      if (const auto wait_ns = WaitOf(rank, *row.step_number)) {
        file.AddScalar("step/wait_ms", "Milliseconds of the step in which this rank waits for others in collectives.",
                       *row.step_number, EndTime(row), Ms(*wait_ns));
      }
    }
    const double end_s = LastTime(rank);
    for (const BreakdownRow& row : result_.Get<analysis::Breakdown>().ranks) {
      if (row.rank_index == rank) AddBreakdown(row, "window", 0, end_s, &file);
    }
    for (const analysis::StragglerRow& row : result_.Get<analysis::Stragglers>().rows) {
      if (row.rank_index != rank) continue;
      file.AddScalar("window/wait_ms", "Milliseconds in which this rank waits for others in collectives.", 0, end_s,
                     Ms(row.wait_ns));
      file.AddScalar("window/wait_given_ms", "Milliseconds that the others wait for this rank, added up.", 0, end_s,
                     Ms(row.wait_given_ns));
    }
    for (const analysis::MemoryRow& row : result_.Get<analysis::Memory>().rows) {
      if (row.rank_index != rank) continue;
      const std::string device = row.device < 0 ? "cpu" : fmt::format("device{}", row.device);
      const auto add = [&](const char* name, const char* meaning, const std::optional<int64_t>& bytes) {
        if (bytes)
          file.AddScalar(fmt::format("memory/{}/{}", device, name), meaning, 0, end_s, static_cast<double>(*bytes));
      };
      add("peak_allocated_bytes", "Most bytes that tensors held at once.", row.peak_allocated_bytes);
      add("peak_reserved_bytes", "Most bytes that the caching allocator held at once.", row.peak_reserved_bytes);
    }
    AddKernels(rank, end_s, &file);
    return file;
  }

  void AddKernels(size_t rank, double end_s, EventFile* file) const {
    std::map<NameId, std::vector<double>> durations;
    std::vector<NameId> order;
    for (const analysis::KernelRow& row : result_.Get<analysis::Kernels>().rows) {  // Largest total first.
      if (row.rank_index != rank || order.size() >= options_.kernel_count || durations.count(row.name) != 0) continue;
      order.push_back(row.name);
      durations[row.name];
    }
    if (order.empty()) return;
    for (const model::Track& track : run_.ranks[rank].tracks) {
      if (track.lane != model::Lane::kDevice) continue;
      for (size_t i = 0; i < track.events.size(); ++i) {
        const auto found = durations.find(track.events.name[i]);
        if (found != durations.end()) found->second.push_back(static_cast<double>(track.events.duration_ns[i]) / 1e3);
      }
    }
    std::map<std::string, size_t> used;
    for (const NameId name : order) {
      const std::string whole = report::Printable(run_.names[name]);
      std::string tag = report::ShortenName(run_.names[name], static_cast<int>(kLongestTag), false);
      if (const size_t before = used[tag]++; before > 0) tag += fmt::format(" ({})", before + 1);
      std::string quoted;  // Markdown: code, whatever the name holds.
      for (const char c : whole) quoted += c == '`' ? '\'' : c;
      file->AddHistogram("kernel_us/" + tag, fmt::format("Microseconds of each event of `{}`.", quoted), 0, end_s,
                         durations[name]);
    }
  }

  EventFile MakeJob(int32_t window) const {
    double first_s = 0;
    double last_s = 0;
    bool known = false;
    for (size_t i = 0; i < run_.ranks.size(); ++i) {
      if (run_.ranks[i].window != window) continue;
      first_s = known ? std::min(first_s, FirstTime(i)) : FirstTime(i);
      last_s = known ? std::max(last_s, LastTime(i)) : LastTime(i);
      known = true;
    }
    EventFile file(first_s);
    AddStepsOverRanks(window, &file);
    if (window == 0) {
      for (const analysis::ImbalanceRow& row : result_.Get<analysis::Imbalance>().rows) {
        if (row.ratio) {
          file.AddScalar("imbalance/" + row.quantity, "Largest over mean over the ranks, less 1 (0: balanced).", 0,
                         last_s, *row.ratio);
        }
      }
    }
    AddBandwidth(window, last_s, &file);
    return file;
  }

  void AddStepsOverRanks(int32_t window, EventFile* file) const {
    struct Spread {
      double end_s = 0;
      std::map<std::string, std::vector<double>> values;
    };
    std::map<int64_t, Spread> steps;
    for (const BreakdownRow& row : result_.Get<analysis::Breakdown>().steps) {
      if (run_.ranks[row.rank_index].window != window || row.basis == analysis::Basis::kNone) continue;
      if (!row.step_number || !Selected(options_.steps, *row.step_number)) continue;
      Spread& spread = steps[*row.step_number];
      spread.end_s = spread.values.empty() ? EndTime(row) : std::max(spread.end_s, EndTime(row));
      for (const Part& part : kParts) spread.values[part.name].push_back(Ms(row.*part.field));
      if (const auto wait_ns = WaitOf(row.rank_index, *row.step_number)) spread.values["wait"].push_back(Ms(*wait_ns));
    }
    for (const auto& [step, spread] : steps) {
      for (const auto& [name, values] : spread.values) AddSpread(name, values, step, spread.end_s, file);
    }
  }

  static void AddSpread(const std::string& name, const std::vector<double>& values, int64_t step, double end_s,
                        EventFile* file) {
    file->AddHistogram(fmt::format("step_over_ranks/{}_ms", name),
                       fmt::format("Milliseconds of each step, a value per rank: {}.", name), step, end_s, values);
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    const std::pair<const char*, double> figures[] = {{"max", *largest}, {"mean", mean}, {"min", *least}};
    for (const auto& [which, value] : figures) {
      file->AddScalar(fmt::format("step/{}_ms/{}", name, which),
                      fmt::format("Milliseconds of each step ({}): {} over the ranks.", name, which), step, end_s,
                      value);
    }
    if (mean > 0 && values.size() > 1) {
      file->AddScalar("step_imbalance/" + name, "Largest over mean over the ranks, less 1 (0: balanced).", step, end_s,
                      *largest / mean - 1);
    }
  }

  void AddBandwidth(int32_t window, double last_s, EventFile* file) const {
    std::map<std::string, std::vector<double>> bandwidth;
    for (const analysis::CollectiveInstance& instance : result_.Get<analysis::Collectives>().instances) {
      if (instance.window == window && instance.busbw_bytes_per_s)
        bandwidth[instance.name].push_back(*instance.busbw_bytes_per_s / 1e9);
    }
    for (const auto& [name, values] : bandwidth) {
      file->AddHistogram("collective_busbw_gb_per_s/" + name,
                         fmt::format("Bus bandwidth of each {}, GB/s, without the waiting.", name), 0, last_s, values);
    }
  }

  const Run& run_;
  const AnalysisResult& result_;
  const Options& options_;
  std::map<std::pair<size_t, int64_t>, int64_t> waits_;
};

}  // namespace

Result<Written> WriteTensorBoard(const Run& run, const AnalysisResult& result,
                                 const analysis::AnalysisOptions& options_of_analysis, const Options& options) {
  return Exporter(run, result, options_of_analysis, options).Write();
}

}  // namespace lockstep::tensorboard
