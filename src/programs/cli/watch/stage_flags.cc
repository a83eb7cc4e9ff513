#include "programs/cli/watch/stage_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/nanoseconds.h"
#include "programs/cli/ranges.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {

StageFlags::StageFlags() { request_.kept_bytes = uint64_t{1} << 30; }

void StageFlags::Declare(CLI::App& app) {
  app.option_defaults()->group("Stages of steps");
  app.add_flag("--stages", is_wanted_,
               "Also say which rank and stage of the step cost the job time, and capture a few steps\nof that rank and "
               "of a peer to see why; for jobs under 'lockstep run --stages'");
  const auto add = [this](CLI::Option* option) { options_.push_back(option); };
  add(app.add_option("--stages-every", every_, "Time between two looks at the stages (5s)")->type_name("TIME"));
  add(app.add_option("--evidence-steps", request_.step_count, "Steps of such a capture (5)")
          ->type_name("N")
          ->check(Checked(CLI::Range(1, 1000))));
  add(app.add_option("--evidence-captures", request_.captures_an_hour, "At most so many of them an hour (6)")
          ->type_name("N")
          ->check(Checked(CLI::Range(uint64_t{0}, uint64_t{3600}))));
  add(app.add_option(
             "--evidence-budget", request_.kept_bytes,
             "Size limit of what they keep, such as 500MiB (1GiB): the oldest are removed first;\ntheir verdicts "
             "stay; 0 keeps these alone")
          ->type_name("SIZE")
          ->transform(Checked(CLI::AsSizeValue(false)))
          ->check(Checked(CLI::Range(uint64_t{0}, uint64_t{1} << 60))));
}

Result<bool> StageFlags::Read() {
  if (!is_wanted_) {
    for (const CLI::Option* option : options_) {
      if (option->count() > 0) return Misuse(fmt::format("{} needs --stages", option->get_name()));
    }
    return false;
  }
  ASSIGN_OR_RETURN(request_.every_ns, ParseTime(every_, "--stages-every"));
  if (request_.every_ns < kSecondNs) return Misuse("--stages-every: 1s at least");
  return true;
}

}  // namespace lockstep::cli
