#include "programs/cli/run/profile_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "base/split.h"
#include "inside/launch/output_name.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {
namespace {

constexpr const char* kProfilerGroup = "Profiler";
constexpr int64_t kMostSeconds = 86'400;

const std::map<std::string, Profiler> kProfilers = {
    {"nsys", Profiler::kNsys}, {"ncu", Profiler::kNcu}, {"kineto", Profiler::kKineto}, {"none", Profiler::kNone}};

Result<std::optional<int64_t>> WholeSeconds(const char* flag, std::string_view text) {
  if (text.empty()) return std::optional<int64_t>();
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (error != std::errc() || (!unit.empty() && unit != "s") || seconds < 1 || seconds > kMostSeconds) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} {}: expected whole seconds from 1s to {}s", flag, text, kMostSeconds)};
  }
  return std::optional<int64_t>(seconds);
}

}  // namespace

void ProfileFlags::Declare(CLI::App& app) {
  app_ = &app;
  app.option_defaults()->group(kProfilerGroup);
  app.add_option("--profile", profile_,
                 "Profile ranks with Nsight Systems or Nsight Compute, prepare them for captures (kineto, the "
                 "default), or neither")
      ->type_name("nsys|ncu|kineto|none");
  app.add_option("--ranks", ranks_,
                 "The ranks to profile; the others run CMD unchanged: all, 0,3, 8-11, local:0, per-node:1, first:8, "
                 "every:16, node:0, host:NAME (all; ncu: 0)")
      ->type_name("LIST");
  app.add_option("-o,--out", out_, "Folder for the reports, created if missing (lockstep-nsys-JOB)")->type_name("DIR");
  app.add_option(
         "--name", name_,
         "Their names: %r rank, %w world size, %l local rank, %h host, %t tool, %q{VARIABLE} (%t.rank%r-of-%w.%h)")
      ->type_name("PATTERN");
  app.add_flag("-f,--force", overwrites_, "Replace existing reports");
  app.add_option("--trace", traces_,
                 "What nsys records (cuda,nvtx,osrt,cublas,cudnn, and mpi,ucx under an MPI launcher)")
      ->type_name("LIST");
  app.add_option(
         "--capture-range", range_,
         "Record from cudaProfilerStart to cudaProfilerStop, or the NVTX range NAME; the job continues after it")
      ->type_name("cuda|nvtx:NAME");
  app.add_option("--ranges", range_count_, "Number of such ranges, one report each (1)")->type_name("N");
  app.add_option("--delay", delay_, "Start recording this long after the start, in whole seconds")->type_name("TIME");
  app.add_option("--duration", duration_, "Record for this long, in whole seconds; the job continues after it")
      ->type_name("TIME");
  app.add_flag("--stats", prints_statistics_, "Make nsys print its summaries at the end");
  app.add_flag("--export", exports_, "Also make nsys write the report as SQLite, while the job still holds its nodes");
  app.add_option("--nsys-opt", nsys_options_,
                 "An option for nsys profile, as in --nsys-opt=--gpu-metrics-devices=all (repeatable)")
      ->type_name("OPTION");
  app.add_option("--kernels-from", kernels_from_,
                 "ncu: profile the heaviest kernels of this analysis (lockstep analyze --json > REPORT)")
      ->type_name("REPORT");
  app.add_option("--top", top_, "Maximum number of kernels; fewer if those already make up four fifths of the time (5)")
      ->type_name("N");
  app.add_option("--kernel", kernels_,
                 "ncu: a kernel to profile, its function's name without template and arguments (repeatable)")
      ->type_name("NAME");
  app.add_option("--set", set_, "ncu: what to measure: basic, detailed, full, roofline (roofline)")->type_name("NAME");
  app.add_option("--skip", skip_, "ncu: launches of a kernel and shape to skip (up to 10, by REPORT)")->type_name("N");
  app.add_option("--count", count_, "ncu: launches of a kernel and shape to profile (1)")->type_name("N");
  app.add_option("--ncu-opt", ncu_options_, "An option for ncu, as in --ncu-opt=--clock-control=none (repeatable)")
      ->type_name("OPTION");
  app.add_option("--tool", tool_, "The nsys or ncu to use (the one in PATH, else the newest below /opt/nvidia)")
      ->type_name("PATH");
  app.add_option("--tmp", scratch_,
                 "Folder for the tool's temporary data, which can be gigabytes: use a local disk (TMPDIR)")
      ->type_name("DIR");
  app.add_flag("--dry-run", is_dry_run_, "Print the command, the reasons and the files, and run nothing");
}

Status ProfileFlags::ReadRange(launch::NsysRequest* nsys) const {
  if (range_.empty()) {
    if (range_count_ != 1) return Misuse("--ranges counts the ranges of --capture-range");
    return {};
  }
  if (range_count_ < 1 || range_count_ > 1000)
    return Misuse(fmt::format("--ranges {}: expected 1 to 1000", range_count_));
  nsys->range_count = range_count_;
  if (range_ == "cuda" || range_ == "cudaProfilerApi") {
    nsys->range = launch::CaptureRange::kCudaProfiler;
    return {};
  }
  if (range_.starts_with("nvtx:") && range_.size() > 5) {
    nsys->range = launch::CaptureRange::kNvtx;
    nsys->nvtx_range = range_.substr(5);
    return {};
  }
  return Misuse(fmt::format("--capture-range {}: expected cuda, or nvtx:NAME with the range's whole name", range_));
}

Status ProfileFlags::RefuseOthersFlags(Profiler profiler) const {
  const auto refuse = [this](const std::vector<const char*>& names, const char* whose) -> Status {
    for (const char* name : names) {
      if (app_->get_option(name)->count() > 0) return Misuse(fmt::format("{} is for --profile {}", name, whose));
    }
    return {};
  };
  if (profiler != Profiler::kNsys) {
    RETURN_IF_ERROR(
        refuse({"--trace", "--ranges", "--delay", "--duration", "--stats", "--export", "--nsys-opt"}, "nsys"));
  }
  if (profiler != Profiler::kNcu) {
    RETURN_IF_ERROR(refuse({"--kernels-from", "--top", "--kernel", "--set", "--skip", "--count", "--ncu-opt"}, "ncu"));
  }
  if (profiler != Profiler::kNsys && profiler != Profiler::kNcu) {
    RETURN_IF_ERROR(refuse({"--capture-range", "--out", "--name", "--force", "--tool", "--tmp"}, "nsys or ncu"));
  }
  if (profiler == Profiler::kNone) RETURN_IF_ERROR(refuse({"--ranks"}, "nsys, ncu or kineto"));
  return {};
}

Status ProfileFlags::ReadNcu(ProfileRequest* request) const {
  if (top_ < 1 || top_ > 1000) return Misuse(fmt::format("--top {}: expected 1 to 1000", top_));
  if (count_ < 1) return Misuse(fmt::format("--count {}: expected 1 or more", count_));
  if (app_->get_option("--skip")->count() > 0) {
    if (skip_ < 0) return Misuse(fmt::format("--skip {}: expected 0 or more", skip_));
    request->ncu.skip = skip_;
  }
  for (const std::string& kernel : kernels_) {
    if (const auto pattern = launch::KernelPattern({kernel}); !pattern) return pattern.error();
  }
  request->kernels_from = kernels_from_;
  request->top = top_;
  request->ncu.kernels = kernels_;
  if (!set_.empty()) request->ncu.set = set_;
  request->ncu.count = count_;
  request->ncu.range = request->nsys.range;
  request->ncu.nvtx_range = request->nsys.nvtx_range;
  request->ncu.overwrites = overwrites_;
  request->ncu.options = ncu_options_;
  return {};
}

Result<ProfileRequest> ProfileFlags::Read() const {
  ProfileRequest request;
  if (!profile_.empty()) {
    const auto found = kProfilers.find(profile_);
    if (found == kProfilers.end()) {
      std::vector<std::string> known;
      for (const auto& [name, profiler] : kProfilers) known.push_back(name);
      return Misuse(
          fmt::format("--profile {}: expected nsys, ncu, kineto or none{}", profile_, DidYouMean(profile_, known)));
    }
    request.profiler = found->second;
  }
  RETURN_IF_ERROR(RefuseOthersFlags(request.profiler));
  ASSIGN_OR_RETURN(request.filter, launch::RankFilter::Parse(!ranks_.empty()                      ? ranks_
                                                             : request.profiler == Profiler::kNcu ? "0"
                                                                                                  : "all"));
  request.out = out_;
  request.name_pattern = name_.empty() ? launch::kDefaultName : name_;
  request.tool = tool_;
  request.scratch = scratch_;
  request.overwrites = overwrites_;
  request.is_dry_run = is_dry_run_;
  const std::vector<std::string_view> traces = SplitAt(traces_, ",");
  request.nsys.traces.assign(traces.begin(), traces.end());
  RETURN_IF_ERROR(ReadRange(&request.nsys));
  ASSIGN_OR_RETURN(request.nsys.delay_s, WholeSeconds("--delay", delay_));
  ASSIGN_OR_RETURN(request.nsys.duration_s, WholeSeconds("--duration", duration_));
  if (request.nsys.range != launch::CaptureRange::kWhole && (request.nsys.delay_s || request.nsys.duration_s)) {
    return Misuse("--capture-range says when recording starts and ends; leave --delay and --duration out");
  }
  request.nsys.prints_statistics = prints_statistics_;
  request.nsys.exports_sqlite = exports_;
  request.nsys.overwrites = overwrites_;
  request.nsys.options = nsys_options_;
  RETURN_IF_ERROR(ReadNcu(&request));
  return request;
}

std::vector<std::string> ProfileFlags::WordsWithoutOut() const {
  std::vector<std::string> words;
  for (const CLI::Option* option :
       app_->get_options([](const CLI::Option* each) { return each->get_group() == kProfilerGroup; })) {
    if (option->count() == 0 || option->check_lname("out")) continue;
    const std::string name = "--" + option->get_lnames().front();
    for (const std::string& value : option->results()) {
      words.push_back(option->get_items_expected_max() == 0 ? name : name + "=" + value);
    }
  }
  return words;
}

}  // namespace lockstep::cli
