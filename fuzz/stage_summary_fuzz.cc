// A summary of stages, and what `lockstep run --workload` leaves beside it, as anybody may have changed them: read, and
// compared with itself.
#include <cmath>
#include <string_view>

#include "analysis/stage_comparison/stage_comparison.h"
#include "base/json_object.h"
#include "fuzz.h"
#include "ingest/stage_files/stage_summary.h"
#include "present/page/stages/stage_comparison_page.h"

namespace {

using namespace lockstep;

void CheckWorkload(const model::Workload& workload) {
  FUZZ_CHECK(workload.size() <= model::kMostWorkloadKeys);
  for (const auto& [key, value] : workload) {
    FUZZ_CHECK(!key.empty() && key.size() <= model::kMostWorkloadKeyBytes && IsWord(key, model::kWorkloadKeyAlso));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto workload = ingest::ParseWorkload(text, "fuzz")) CheckWorkload(*workload);
  const auto summary = ingest::ParseStageSummary(text, "fuzz");
  if (!summary) {
    FUZZ_CHECK(!summary.error().message.empty() && summary.error().file == "fuzz");
    return 0;
  }
  CheckWorkload(summary->facts.workload);
  int64_t steps = 0;
  for (size_t i = 0; i < summary->windows.size(); ++i) {
    const model::SummaryWindow& window = summary->windows[i];
    FUZZ_CHECK(window.step_count > 0 && window.ns >= 0 && window.first_step <= window.last_step);
    FUZZ_CHECK(i == 0 || summary->windows[i - 1].last_step < window.first_step);
    steps += window.step_count;
  }
  if (const Status fits = stage_comparison::CheckComparable(*summary, *summary); !fits) {
    FUZZ_CHECK(!fits.error().message.empty());
  }
  const auto compared = stage_comparison::Compare(*summary, *summary, {});
  FUZZ_CHECK(compared.a.warm_up_steps + compared.a.step_count == steps);
  FUZZ_CHECK(compared.step.change == comparison::Change::kNone || compared.step.change == comparison::Change::kUnknown);
  FUZZ_CHECK(std::isfinite(compared.a.mean_step_ns) && compared.a.mean_step_ns >= 0);
  const auto gate = stage_comparison::Decide(compared, 0.05);
  FUZZ_CHECK(gate.result != stage_comparison::GateResult::kFailed && !gate.sentence.empty());
  FUZZ_CHECK(!page::StageComparisonPage(compared, gate).empty());
  return 0;
}
