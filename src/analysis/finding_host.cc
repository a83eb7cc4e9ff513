#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/breakdown.h"
#include "analysis/finding.h"
#include "analysis/finding_context.h"
#include "analysis/host_role.h"
#include "analysis/idle.h"
#include "analysis/launch.h"
#include "analysis/operators.h"

namespace lockstep::analysis {
namespace {

constexpr double kIdleRatio = 0.20;  // device idle beyond it is worth a word
constexpr double kLaunchGapRatio = 0.10;
constexpr double kDataLoaderRatio = 0.05;
constexpr double kLargeDataLoaderRatio = 0.20;
constexpr double kQueueFullRatio = 0.01;
constexpr double kShortKernelRatio = 0.50;
constexpr uint64_t kManyLaunches = 100;

/// A rank that shows a problem, and how much of its window it makes.
struct Affected {
  const BreakdownRow* breakdown = nullptr;
  int64_t time_ns = 0;
};

/// Ranks over a share of their span become the finding's ranks, worst first. All ranks step together, so the gain is at
/// most the time of the least affected rank.
bool FillRanks(const FindingContext& context, std::vector<Affected> all, double threshold_ratio, Finding* finding,
               Affected* worst) {
  if (all.empty()) return false;
  std::stable_sort(all.begin(), all.end(), [](const Affected& a, const Affected& b) { return a.time_ns > b.time_ns; });
  int64_t least_ns = INT64_MAX;
  for (const Affected& affected : all) {
    least_ns = std::min(least_ns, affected.time_ns / context.StepsOf(affected.breakdown->rank_index));
    if (Ratio(affected.time_ns, affected.breakdown->span_ns) >= threshold_ratio) {
      finding->ranks.push_back(context.RankOf(affected.breakdown->rank_index));
    }
  }
  *worst = all.front();
  if (all.size() == context.breakdown().size()) finding->gain_ns_per_step = std::max<int64_t>(least_ns, 0);
  return !finding->ranks.empty();
}

/// The stream whose gaps represent the rank: the one with the most time in short gaps, which is where the work is.
const IdleRow* MainStream(const FindingContext& context, size_t rank_index) {
  const IdleRow* main = nullptr;
  for (const IdleRow& row : context.result().Get<Idle>().rows) {
    if (row.rank_index != rank_index) continue;
    if (main == nullptr || row.kernel_wait_ns > main->kernel_wait_ns) main = &row;
  }
  return main;
}

/// Share of the main stream's idle time in one class, applied to the time in which the whole device was idle.
int64_t IdleOfClass(const FindingContext& context, const BreakdownRow& row, int64_t IdleRow::*part) {
  const IdleRow* stream = MainStream(context, row.rank_index);
  if (stream == nullptr) return 0;
  const int64_t whole_ns = stream->host_wait_ns + stream->kernel_wait_ns + stream->other_ns;
  return static_cast<int64_t>(Ratio(stream->*part, whole_ns) * static_cast<double>(row.idle_ns));
}

const IdleHostRow* HostRow(const FindingContext& context, size_t rank_index) {
  for (const IdleHostRow& row : context.result().Get<Idle>().host) {
    if (row.rank_index == rank_index) return &row;
  }
  return nullptr;
}

void FindHostBound(const FindingContext& context, std::vector<Finding>* findings) {
  if (!context.knows_compute()) return;
  std::vector<Affected> all;
  for (const BreakdownRow& row : context.breakdown()) {
    if (row.basis == Basis::kDevice) all.push_back({&row, IdleOfClass(context, row, &IdleRow::host_wait_ns)});
  }
  Finding finding;
  Affected worst;
  finding.id = "host_bound";
  if (!FillRanks(context, all, kIdleRatio, &finding, &worst)) return;
  finding.severity = std::max(FindingSeverity::kWarning, context.SeverityOf(finding.gain_ns_per_step));
  finding.title = "The device waits for the host to launch work";
  const BreakdownRow& row = *worst.breakdown;
  AddEvidence(&finding, "host_wait_ns", worst.time_ns,
              "rank {}: the device is idle {} of {} ({}); for {} of it the next launch had not been made yet",
              context.RankOf(row.rank_index), TimeText(row.idle_ns), TimeText(row.span_ns),
              PercentText(Ratio(row.idle_ns, row.span_ns)), TimeText(worst.time_ns));
  if (const IdleHostRow* host = HostRow(context, row.rank_index)) {
    AddEvidence(&finding, "idle_operator_ns", host->operator_ns,
                "while it was idle, the host was in operators {}, in runtime calls {}, in data loaders {}, in nothing "
                "recorded {}",
                TimeText(host->operator_ns), TimeText(host->runtime_ns), TimeText(host->data_loader_ns),
                TimeText(host->unknown_ns));
  }
  finding.advice = {
      "launch less often: torch.compile, CUDA graphs (torch.cuda.make_graphed_callables), fused or foreach "
      "optimizers, larger batches",
      "take synchronisations out of the step: .item(), .cpu(), print of tensors, nonzero(), boolean masks",
      "look at the operators that run while the device is idle (--section operators), and give each process its "
      "own cores"};
  findings->push_back(std::move(finding));
}

void FindLaunchGaps(const FindingContext& context, std::vector<Finding>* findings) {
  std::vector<Affected> all;
  for (const BreakdownRow& row : context.breakdown()) {
    if (row.basis == Basis::kDevice) all.push_back({&row, IdleOfClass(context, row, &IdleRow::kernel_wait_ns)});
  }
  Finding finding;
  Affected worst;
  finding.id = "kernel_launch_gaps";
  if (!FillRanks(context, all, kLaunchGapRatio, &finding, &worst)) return;
  finding.severity = context.SeverityOf(finding.gain_ns_per_step);
  finding.title = "Much time goes into short gaps between kernels";
  const BreakdownRow& row = *worst.breakdown;
  AddEvidence(&finding, "kernel_wait_ns", worst.time_ns,
              "rank {}: {} of {} ({}) lie in gaps under {} between kernels that were already launched",
              context.RankOf(row.rank_index), TimeText(worst.time_ns), TimeText(row.span_ns),
              PercentText(Ratio(worst.time_ns, row.span_ns)), TimeText(context.options().kernel_wait_threshold_ns));
  finding.advice = {"record the step as a CUDA graph: kernels of a graph follow each other with shorter gaps",
                    "fuse small kernels (torch.compile), so that there are fewer gaps"};
  findings->push_back(std::move(finding));
}

/// Time in data loader ranges: on device jobs while the device was idle, else in all, outermost ranges counted by name.
int64_t DataLoaderTime(const FindingContext& context, const BreakdownRow& row) {
  if (row.basis == Basis::kDevice) {
    const IdleHostRow* host = HostRow(context, row.rank_index);
    return host == nullptr ? 0 : host->data_loader_ns;
  }
  int64_t longest_ns = 0;
  for (const OperatorRow& op : context.result().Get<Operators>().rows) {
    if (op.rank_index != row.rank_index || HostRoleOf(context.run().names[op.name]) != HostRole::kDataLoader) continue;
    longest_ns = std::max(longest_ns, op.cpu_total_ns);
  }
  return longest_ns;
}

void FindDataLoader(const FindingContext& context, std::vector<Finding>* findings) {
  std::vector<Affected> all;
  for (const BreakdownRow& row : context.breakdown()) all.push_back({&row, DataLoaderTime(context, row)});
  Finding finding;
  Affected worst;
  finding.id = "data_loader";
  if (!FillRanks(context, all, kDataLoaderRatio, &finding, &worst)) return;
  const BreakdownRow& row = *worst.breakdown;
  const bool on_device = row.basis == Basis::kDevice;
  // One rank's loading matters if it makes that rank late; the straggler finding says so. Here it must be large by
  // itself.
  const bool is_large = Ratio(worst.time_ns, row.span_ns) >= kLargeDataLoaderRatio;
  finding.severity = std::max(is_large ? FindingSeverity::kWarning : FindingSeverity::kInfo,
                              context.SeverityOf(finding.gain_ns_per_step));
  finding.title =
      fmt::format("{} {} for input data", RanksText(finding.ranks), finding.ranks.size() == 1 ? "waits" : "wait");
  finding.title.front() = 'R';
  AddEvidence(&finding, "data_loader_ns", worst.time_ns, "rank {}: {} of {} ({}) in the data loader{}",
              context.RankOf(row.rank_index), TimeText(worst.time_ns), TimeText(row.span_ns),
              PercentText(Ratio(worst.time_ns, row.span_ns)), on_device ? " while the device was idle" : "");
  if (finding.ranks.size() < all.size()) {
    AddEvidence(&finding, "least_data_loader_ns", finding.gain_ns_per_step.value_or(0),
                "the rank that loads fastest needs {}{}: what these ranks lose beyond that is "
                "counted under straggler",
                TimeText(finding.gain_ns_per_step.value_or(0)), context.per_step());
  }
  finding.advice = {
      "load ahead: DataLoader(num_workers > 0, prefetch_factor, persistent_workers=True, pin_memory=True)",
      "make samples cheaper to read: local or cached storage, larger files, decoding and tokenising before the job",
      "copy the next batch with non_blocking=True while the current one is computed"};
  findings->push_back(std::move(finding));
}

void FindShortKernels(const FindingContext& context, std::vector<Finding>* findings) {
  const LaunchRow* worst = nullptr;
  double worst_ratio = 0;
  Finding finding;
  finding.id = "short_kernels";
  for (const LaunchRow& row : context.result().Get<Launch>().rows) {
    if (!context.InFirstWindow(row.rank_index) || row.launch_count < kManyLaunches) continue;
    const double ratio = static_cast<double>(row.short_kernel_count) / static_cast<double>(row.launch_count);
    if (ratio < kShortKernelRatio) continue;
    finding.ranks.push_back(context.RankOf(row.rank_index));
    if (ratio <= worst_ratio) continue;
    worst = &row;
    worst_ratio = ratio;
  }
  if (worst == nullptr) return;
  const int32_t worst_rank = context.RankOf(worst->rank_index);
  std::stable_partition(finding.ranks.begin(), finding.ranks.end(), [&](int32_t rank) { return rank == worst_rank; });
  finding.severity = FindingSeverity::kInfo;  // what it costs is in host_bound and kernel_launch_gaps
  finding.title = "Most kernels are shorter than the call that launches them";
  AddEvidence(&finding, "short_kernel_ratio", worst_ratio,
              "rank {}: {} of {} launches ({}) start work that is shorter than the call", worst_rank,
              worst->short_kernel_count, worst->launch_count, PercentText(worst_ratio));
  finding.advice = {"give every kernel more to do: larger batches, fused optimizers (fused=True), torch.compile",
                    "CUDA graphs take the launch of a whole step into one call"};
  findings->push_back(std::move(finding));
}

void FindQueueFull(const FindingContext& context, std::vector<Finding>* findings) {
  std::map<size_t, int64_t> full_by_rank;
  for (const QueueRow& row : context.result().Get<Launch>().queues) {
    if (context.InFirstWindow(row.rank_index)) full_by_rank[row.rank_index] += row.full_ns;
  }
  std::vector<Affected> all;
  for (const BreakdownRow& row : context.breakdown()) {
    const auto full = full_by_rank.find(row.rank_index);
    if (full != full_by_rank.end()) all.push_back({&row, full->second});
  }
  Finding finding;
  Affected worst;
  finding.id = "launch_queue_full";
  if (!FillRanks(context, all, kQueueFullRatio, &finding, &worst)) return;
  finding.gain_ns_per_step
      .reset();  // a full queue keeps the device busy; it costs only where the host has other things to do
  finding.severity = FindingSeverity::kInfo;
  finding.title = "The launch queue is full: the host is far ahead of the device";
  AddEvidence(&finding, "full_ns", worst.time_ns,
              "rank {}: 1024 or more launches wait for {} of {}; launch calls block meanwhile",
              context.RankOf(worst.breakdown->rank_index), TimeText(worst.time_ns), TimeText(worst.breakdown->span_ns));
  finding.advice = {"the device is the bottleneck here: work on its kernels, not on the host",
                    "if the blocked thread also loads data or drives another device, move that to a thread of its own"};
  findings->push_back(std::move(finding));
}

}  // namespace

void FindHostFindings(const FindingContext& context, std::vector<Finding>* findings) {
  FindHostBound(context, findings);
  FindLaunchGaps(context, findings);
  FindDataLoader(context, findings);
  FindShortKernels(context, findings);
  FindQueueFull(context, findings);
}

}  // namespace lockstep::analysis
