#include "programs/cli/watch/continuous_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/nanoseconds.h"
#include "base/output_file.h"
#include "programs/cli/ranges.h"

namespace lockstep::cli {
ContinuousFlags::ContinuousFlags() {
  request_.budget_bytes = uint64_t{2} << 30;
  // Beside a job, whose processors these are.
  input_.analysis().thread_count = 2;
}

void ContinuousFlags::Declare(CLI::App& app) {
  app.option_defaults()->group("Continuous profiling");
  app.add_option("--every", every_, "Also capture the job at this interval, and report when it has become slower")
      ->type_name("TIME");
  const auto add = [this](CLI::Option* option) { options_.push_back(option); };
  const auto share = [this](CLI::Option* option) { shared_options_.push_back(option); };
  add(app.add_option("--duration", duration_, "Length of a capture's window (500ms)")->type_name("TIME"));
  add(app.add_option("--iterations", iterations_, "Capture this many training steps instead")
          ->type_name("N")
          ->check(Checked(CLI::Range(1, 100'000))));
  share(app.add_flag("--allow-unsafe", request_.allow_unsafe,
                     "Also capture processes that Kineto may crash: PyTorch before 2.14, not under 'lockstep run'"));
  add(app.add_option("--captures", request_.capture_count, "End after this many captures")
          ->type_name("N")
          ->check(Checked(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))));
  add(app.add_option(
             "--profiles", folder_,
             "Keep captures in this folder, and continue with the history that is there\n(./lockstep-profile-JOB)")
          ->type_name("DIR"));
  add(app.add_option("--budget", request_.budget_bytes,
                     "Size limit of the folder, such as 500MiB (2GiB): the oldest traces are removed first,\nthen "
                     "reports; figures and findings stay")
          ->type_name("SIZE")
          ->transform(Checked(CLI::AsSizeValue(false)))
          ->check(Checked(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 60))));
  add(app.add_option("--learn", request_.history.level.learn_count,
                     "Captures from which a figure's normal level is learned (8)")
          ->type_name("N")
          ->check(Checked(CLI::Range(size_t{3}, size_t{50}))));
  add(app.add_option("--warm-up", request_.history.warm_up_count, "First captures of a job that are not used (1)")
          ->type_name("N")
          ->check(Checked(CLI::Range(size_t{0}, size_t{1000}))));
  add(app.add_option(
             "--metrics-file", request_.metrics_file,
             "Write lockstep_profile_* to this file for node_exporter's textfile collector; it is\nremoved at the end")
          ->type_name("FILE.prom"));
  share(app.add_option("--step-name", input_.analysis().step_name, "Steps are the annotations of this name")
            ->type_name("NAME"));
  share(app.add_option("--threads", input_.analysis().thread_count, "Threads that analyse (2; 0: one per processor)")
            ->type_name("N")
            ->check(Checked(CLI::Range(0u, 4096u))));
}

Result<bool> ContinuousFlags::Read(bool has_stages) {
  if (every_.empty()) {
    for (const CLI::Option* option : shared_options_) {
      if (option->count() > 0 && !has_stages)
        return Misuse(fmt::format("{} needs --every or --stages", option->get_name()));
    }
    for (const CLI::Option* option : options_) {
      if (option->count() > 0) return Misuse(fmt::format("{} needs --every: how often", option->get_name()));
    }
    return false;
  }
  ASSIGN_OR_RETURN(request_.every_ns, ParseTime(every_, "--every"));
  if (request_.every_ns < kSecondNs) return Misuse("--every: 1s at least");
  if (iterations_ > 0) {
    if (duration_ != "500ms") return Misuse("--duration and --iterations exclude each other");
    request_.window.mode = control::CaptureWindow::Mode::kIterations;
    request_.window.iterations = iterations_;
    request_.timeout_ns = 900 * kSecondNs;
  } else {
    ASSIGN_OR_RETURN(request_.window.duration_ns, ParseTime(duration_, "--duration"));
    const int64_t duration_ns = request_.window.duration_ns;
    if (duration_ns < kMillisecondNs || duration_ns > 600 * kSecondNs || duration_ns % kMillisecondNs != 0) {
      return Misuse(fmt::format("--duration: {} is not from 1ms to 10m, in whole milliseconds", duration_));
    }
    request_.timeout_ns = 300 * kSecondNs;
  }
  if (!request_.metrics_file.empty()) {
    if (!request_.metrics_file.ends_with(".prom")) {
      return Misuse(
          fmt::format("--metrics-file {}: node_exporter reads names that end in .prom alone", request_.metrics_file));
    }
    RETURN_IF_ERROR(CheckOutputFile(request_.metrics_file));
  }
  request_.folder = folder_;
  return true;
}

}  // namespace lockstep::cli
