#include "inside/launch/ncu_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace lockstep::launch {
namespace {

constexpr int64_t kMostSkipped = 10;
constexpr ToolVersion kPerLaunchConfig{2024, 1, 0};

bool IsTheirs(const NcuRequest& request, std::string_view name) {
  return std::ranges::any_of(request.options, [name](const std::string& option) { return OptionName(option) == name; });
}

// Which of the chosen ranks this one is, and how many there are; {0, 1} where ranks cannot tell of each other.
struct Share {
  int64_t index = 0;
  int64_t count = 1;
};
Share ShareOf(const RankIdentity& identity, const RankFilter& filter) {
  if (!filter.NeedsRankOnly() || !identity.rank || !identity.world_size) return {};
  Share share{.index = 0, .count = 0};
  for (int32_t rank = 0; rank < *identity.world_size; ++rank) {
    const RankIdentity other{.launcher = identity.launcher, .rank = rank};
    if (!filter.Selects(other, "").value_or(false)) continue;
    if (rank < *identity.rank) ++share.index;
    ++share.count;
  }
  return share;
}

std::vector<std::string> KernelsOfRank(const NcuRequest& request, const Share& share) {
  std::vector<std::string> all = request.kernels;
  for (const KernelTotal& kernel : request.heaviest) all.push_back(kernel.function);
  const auto size = static_cast<int64_t>(all.size());
  std::vector<std::string> mine;
  for (int64_t i = 0; i < size; ++i) {
    // Ranks beyond the kernels' number begin anew.
    if (share.count <= size ? i % share.count == share.index : i == share.index % size)
      mine.push_back(all[static_cast<size_t>(i)]);
  }
  return mine;
}

// The first launches are slower than all others; but of a kernel with few launches some have to be left.
int64_t Skipped(const NcuRequest& request) {
  if (request.skip) return *request.skip;
  int64_t skipped = request.heaviest.empty() ? 0 : kMostSkipped;
  for (const KernelTotal& kernel : request.heaviest) skipped = std::min(skipped, kernel.count_per_rank / 2);
  return skipped;
}

void AddNcuRange(const NcuRequest& request, ToolCommand* command) {
  if (request.range == CaptureRange::kCudaProfiler) {
    command->options.push_back({"--profile-from-start=off", "from where the program calls cudaProfilerStart"});
  } else if (request.range == CaptureRange::kNvtx) {
    const size_t at = request.nvtx_range.find('@');
    const std::string range = at == std::string::npos
                                  ? request.nvtx_range
                                  : request.nvtx_range.substr(at + 1) + "@" + request.nvtx_range.substr(0, at);
    command->options.push_back({"--nvtx", "NVTX ranges are looked at"});
    command->options.push_back({"--nvtx-include=" + range + "/", "launches within this range alone"});
  }
}

Status CheckNcuRequest(const NcuRequest& request, const RankIdentity& identity) {
  for (const std::string& option : request.options) {
    const std::string name = OptionName(option);
    if (name == "--export" || option.starts_with("-o")) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("--ncu-opt {}: the reports' names are made for each rank; --out and --name say how", option)};
    }
  }
  const bool names_kernels = !request.kernels.empty() || !request.heaviest.empty();
  if (!names_kernels && identity.launcher != Launcher::kAlone && identity.world_size != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "--profile ncu without kernel names would also replay NCCL's kernels, which wait forever for ranks "
                 "that wait for this one; name compute kernels: --kernels-from REPORT, or --kernel NAME"};
  }
  return {};
}

void Warn(const NcuRequest& request, const RankIdentity& identity, const std::vector<std::string>& kernels,
          ToolCommand* command) {
  const bool has_others = identity.launcher != Launcher::kAlone && identity.world_size != 1;
  if (has_others) {
    command->warnings.emplace_back(
        "the other ranks wait while ncu replays a launch: set longer process-group timeouts "
        "(init_process_group(timeout=...))");
  }
  for (const std::string& option : request.options) {
    if (has_others && OptionName(option) == "--replay-mode" && option.find("app") != std::string::npos) {
      command->warnings.push_back(fmt::format(
          "{} runs this rank's program again without the other ranks: it hangs in the first collective", option));
    }
  }
  if (std::ranges::any_of(kernels, [](const std::string& name) { return name.starts_with("triton_"); })) {
    command->warnings.emplace_back("the numbers in triton_ names change from run to run: any number matches");
  }
  // Whether it is the device's fault is seen by comparing with the slowest rank.
  std::map<int32_t, int64_t> of_rank;
  for (const KernelTotal& kernel : request.heaviest) {
    for (const auto& [rank, ns] : kernel.ns_of_rank) of_rank[rank] += ns;
  }
  const auto slowest = std::ranges::max_element(of_rank, {}, [](const auto& entry) { return entry.second; });
  if (of_rank.size() > 1 && slowest->first != identity.rank) {
    command->warnings.push_back(fmt::format(
        "rank {} spent most time in these kernels; to see whether its device is to blame, profile it too: --ranks {}",
        slowest->first, slowest->first));
  }
}

}  // namespace

Result<ToolCommand> MakeNcuCommand(const NcuRequest& request, const ToolVersion& version, const std::string& output,
                                   const RankIdentity& identity, const RankFilter& filter) {
  RETURN_IF_ERROR(CheckNcuRequest(request, identity));
  ToolCommand command;
  const auto add = [&](const std::string& text, std::string why) {
    if (!IsTheirs(request, OptionName(text))) command.options.push_back({text, std::move(why)});
  };
  add("--set=" + request.set, "the sections to measure; more of them are more replays");
  std::vector<std::string> kernels;
  if (!request.kernels.empty() || !request.heaviest.empty()) {
    const Share share = ShareOf(identity, filter);
    kernels = KernelsOfRank(request, share);
    ASSIGN_OR_RETURN(const std::string pattern, KernelPattern(kernels));
    add("--kernel-name=" + pattern, share.count > 1
                                        ? fmt::format("the share of this rank, of {} that are profiled", share.count)
                                        : "those that are asked for, and never NCCL's");
    add("--kernel-name-base=function", "names without templates and arguments, as nsys's short names");
    if (version >= kPerLaunchConfig) add("--filter-mode=per-launch-config", "each shape of a kernel by itself");
  }
  if (const int64_t skip = Skipped(request); skip > 0)
    add(fmt::format("--launch-skip={}", skip), "the first launches are not like the others");
  add(fmt::format("--launch-count={}", request.count), "launches that are profiled");
  add("--target-processes=all", "the program may be started by another");
  AddNcuRange(request, &command);
  if (request.overwrites) command.options.push_back({"--force-overwrite", "a report of that name is replaced"});
  command.options.push_back({"--export=" + WithoutPatterns(output), "one report for each rank"});
  for (const std::string& option : request.options) command.options.push_back({option, "passed on"});
  command.unset.emplace_back("KINETO_USE_DAEMON");
  Warn(request, identity, kernels, &command);
  return command;
}

}  // namespace lockstep::launch
