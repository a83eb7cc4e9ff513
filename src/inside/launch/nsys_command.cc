#include "inside/launch/nsys_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::launch {
namespace {

// docs/launch.md#versions. Below the first, options are sent as for it, and that is said.
constexpr ToolVersion kOldestKnown{2022, 4, 0};
constexpr int64_t kLongestSupported_s = 300;  // Five minutes of recording is what NVIDIA supports.
constexpr int64_t kFlushed_s = 30;

struct TraceSince {
  std::string_view name;
  ToolVersion since;
};
constexpr auto kNewTraces = std::to_array<TraceSince>({{"cusolver", {2024, 1, 0}},
                                                       {"cudla", {2024, 1, 0}},
                                                       {"gds", {2024, 1, 0}},
                                                       {"cuda-sw", {2025, 1, 0}},
                                                       {"nccl", {2025, 1, 0}},
                                                       {"s3", {2025, 1, 0}},
                                                       {"syscall", {2025, 1, 0}}});

struct ShortName {
  std::string_view short_name;
  std::string_view name;
};
constexpr auto kShortNames = std::to_array<ShortName>({{"-t", "--trace"},
                                                       {"-s", "--sample"},
                                                       {"-o", "--output"},
                                                       {"-f", "--force-overwrite"},
                                                       {"-c", "--capture-range"},
                                                       {"-p", "--nvtx-capture"},
                                                       {"-d", "--duration"},
                                                       {"-y", "--delay"}});

/// The long name of the option that a word begins, whether "--trace=cuda", "-t" or "-tcuda".
std::string LongName(const std::string& word) {
  if (word.starts_with("--")) return OptionName(word);
  for (const ShortName& names : kShortNames) {
    if (word.starts_with(names.short_name)) return std::string(names.name);
  }
  return word;
}

class Builder {
 public:
  explicit Builder(const NsysRequest& request) {
    for (const std::string& option : request.options) theirs_.push_back(LongName(option));
  }
  bool IsTheirs(std::string_view name) const { return std::ranges::find(theirs_, name) != theirs_.end(); }
  void Add(const std::string& text, std::string why) {
    if (!IsTheirs(OptionName(text))) command.options.push_back({text, std::move(why)});
  }

  ToolCommand command;

 private:
  std::vector<std::string> theirs_;
};

Status CheckNsysRequest(const NsysRequest& request, const ToolVersion& version) {
  for (const std::string& trace : request.traces) {
    for (const TraceSince& known : kNewTraces) {
      if (trace == known.name && version < known.since) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("--trace {}: nsys has it from {}.{} on, and this one is {}", trace, known.since.year,
                                 known.since.release, ToText(version))};
      }
    }
  }
  for (const std::string& option : request.options) {
    if (LongName(option) == "--output") {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("--nsys-opt {}: the reports' names are made for each rank; --out and --name say how", option)};
    }
    if (LongName(option) == "--session-new") {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--nsys-opt {}: sessions of two ranks of a node would have one name", option)};
    }
  }
  return {};
}

std::vector<std::string> DefaultTraces(const RankIdentity& identity) {
  std::vector<std::string> traces = {"cuda", "nvtx", "osrt", "cublas", "cudnn"};
  if (StartsMpiRanks(identity.launcher)) traces.insert(traces.end(), {"mpi", "ucx"});
  return traces;
}

void AddNsysRange(const NsysRequest& request, Builder* builder) {
  if (request.range == CaptureRange::kWhole) return;
  const bool is_nvtx = request.range == CaptureRange::kNvtx;
  builder->Add(fmt::format("--capture-range={}", is_nvtx ? "nvtx" : "cudaProfilerApi"),
               is_nvtx ? "recording starts where the program opens the range"
                       : "recording starts where the program calls cudaProfilerStart");
  if (is_nvtx) {
    // Without a domain, a range of any.
    const std::string range =
        request.nvtx_range.find('@') == std::string::npos ? request.nvtx_range + "@*" : request.nvtx_range;
    builder->Add("--nvtx-capture=" + range, "the range that opens it");
    builder->command.environment.emplace_back("NSYS_NVTX_PROFILER_REGISTER_ONLY",
                                              "0");  // Else registered strings alone match.
  }
  builder->Add(request.range_count == 1 ? "--capture-range-end=stop"
                                        : fmt::format("--capture-range-end=repeat:{}", request.range_count),
               "at its end the job goes on; nsys's own choice would end it");
}

void AddTimes(const NsysRequest& request, Builder* builder) {
  if (request.delay_s) builder->Add(fmt::format("--delay={}", *request.delay_s), "seconds before recording starts");
  if (request.duration_s) builder->Add(fmt::format("--duration={}", *request.duration_s), "seconds of recording");
  if (request.duration_s.value_or(0) > kFlushed_s) {
    builder->Add("--cuda-flush-interval=10000", "ms; in a long recording CUDA's buffers are emptied on the way");
  }
  if (request.duration_s.value_or(0) > kLongestSupported_s) {
    builder->command.warnings.push_back(
        fmt::format("{} s of recording are more than the {} s that NVIDIA supports; a range of a few steps "
                    "(--capture-range) is more useful",
                    *request.duration_s, kLongestSupported_s));
  }
}

void AddMpi(const std::vector<std::string>& traces, const RankIdentity& identity, const RankFilter& filter,
            Builder* builder) {
  if (std::ranges::find(traces, "mpi") == traces.end()) return;
  if (identity.launcher == Launcher::kOpenMpi) builder->Add("--mpi-impl=openmpi", "as mpirun says");
  if (identity.launcher == Launcher::kHydra || identity.launcher == Launcher::kPals ||
      identity.launcher == Launcher::kMvapich) {
    builder->Add("--mpi-impl=mpich", "as the launcher says");
  }
  if (filter.SelectsAll()) return;
  // NVIDIA warns of a hang where some ranks of MPI run under nsys and others do not.
  builder->command.environment.emplace_back("NSYS_MPI_STORE_TEAMS_PER_RANK", "1");
}

}  // namespace

Result<ToolCommand> MakeNsysCommand(const NsysRequest& request, const ToolVersion& version, const std::string& output,
                                    const RankIdentity& identity, const RankFilter& filter) {
  RETURN_IF_ERROR(CheckNsysRequest(request, version));
  Builder builder(request);
  if (version < kOldestKnown) {
    builder.command.warnings.push_back(
        fmt::format("nsys {} is older than {}.{}, the oldest whose options are known: it may refuse some",
                    ToText(version), kOldestKnown.year, kOldestKnown.release));
  }
  const std::vector<std::string> traces = request.traces.empty() ? DefaultTraces(identity) : request.traces;
  builder.Add(fmt::format("--trace={}", fmt::join(traces, ",")),
              request.traces.empty() ? "what explains a PyTorch job; --trace chooses otherwise" : "as asked");
  builder.Add("--sample=none", "no CPU samples: they cost, and need perf_event_paranoid of 2 or less");
  builder.Add("--cpuctxsw=none", "no context switches: as samples");
  if (std::ranges::find(traces, "cuda") != traces.end() && version >= kOldestKnown) {
    builder.Add("--cuda-graph-trace=node", "kernels of CUDA graphs one by one; else a captured step is a single row");
  }
  AddNsysRange(request, &builder);
  AddTimes(request, &builder);
  AddMpi(traces, identity, filter, &builder);
  if (request.range != CaptureRange::kWhole || request.duration_s) {
    builder.Add("--kill=none", "when recording ends, the job goes on");
  }
  if (request.exports_sqlite) builder.Add("--export=sqlite", "the report as SQLite beside it");
  if (request.prints_statistics) builder.Add("--stats=true", "summaries to standard output at the end");
  builder.Add(fmt::format("--force-overwrite={}", request.overwrites),
              request.overwrites ? "a report of that name is replaced" : "a report of that name is kept");
  builder.command.options.push_back({"--output=" + WithoutPatterns(output), "one report for each rank"});
  for (const std::string& option : request.options) builder.command.options.push_back({option, "passed on"});
  // CUPTI serves one: torch.profiler on demand and nsys in one process lose each other's events.
  builder.command.unset.emplace_back("KINETO_USE_DAEMON");
  return std::move(builder.command);
}

}  // namespace lockstep::launch
