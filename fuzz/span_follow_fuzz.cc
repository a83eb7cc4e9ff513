// A span trace that is read on in while it grows and changes: first so much of it as the first byte says, then all.
// What is said must be sound whatever the bytes are, and no more than they can hold.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/frontier/job_stages.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "ingest/span_follow/span_follower.h"
#include "ingest/span_follow/stage_cutter.h"
#include "ingest/stage_files/stage_files.h"

namespace {

using namespace lockstep;
using namespace lockstep::ingest::span_follow;

void Check(const Followed& followed, const SpanFollower& follower, size_t bytes) {
  FUZZ_CHECK(followed.spans.size() + followed.steps.size() + followed.counters.size() + followed.requests.size() <=
             2 * followed.record_count + bytes / 16);
  FUZZ_CHECK(followed.record_count * 16 <= 2 * bytes);
  for (const FollowedSpan& span : followed.spans) {
    FUZZ_CHECK(span.duration_ns >= 0);
    const std::string& name = follower.NameOf(span.name);
    FUZZ_CHECK(ValidUtf8(name) == name);
  }
  for (const FollowedStep& step : followed.steps) FUZZ_CHECK(step.duration_ns >= 0);
  for (const FollowedCounter& counter : followed.counters) FUZZ_CHECK(std::isfinite(counter.value));
}

/// What is made of the steps of two ranks that did the same.
void CheckStages(std::vector<model::StepStages> steps) {
  for (const model::StepStages& step : steps) {
    int64_t sum_ns = 0;
    for (const model::StageSpan& span : step.spans) {
      FUZZ_CHECK(span.duration_ns > 0);
      sum_ns += span.duration_ns;
    }
    FUZZ_CHECK(sum_ns == step.duration_ns);
  }
  ingest::DropImpossibleSteps(&steps);
  std::vector<model::RankStages> ranks(2);
  for (model::RankStages& rank : ranks) rank.steps = steps;
  ranks[1].rank = 1;
  const frontier::JobStages job = frontier::AssessJob(std::move(ranks), {});
  int64_t sum_ns = 0;
  for (const frontier::StageAccount& stage : job.account.stages) {
    FUZZ_CHECK(stage.frontier_ns >= 0 && stage.imbalance_ns == 0);
    sum_ns += stage.frontier_ns;
  }
  FUZZ_CHECK(sum_ns == job.account.total_ns);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view whole(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string_view file = whole.substr(0, whole.size() * data[0] / 256);
  const auto read = [&file](uint64_t offset, char* to, size_t bytes) -> size_t {
    if (offset >= file.size()) return 0;
    const size_t count = std::min<uint64_t>(bytes, file.size() - offset);
    std::memcpy(to, file.data() + offset, count);
    return count;
  };
  auto follower = SpanFollower::Open(read);
  if (!follower) {
    FUZZ_CHECK(!follower.error().message.empty());
    file = whole;
    follower = SpanFollower::Open(read);
    if (!follower) return 0;
  }
  StageCutter cutter;
  std::vector<model::StepStages> steps;
  for (int pass = 0; pass < 3; ++pass) {
    const auto followed = follower->ReadOn();
    if (!followed) return 0;
    Check(*followed, *follower, whole.size());
    const auto name_of = [&](uint32_t name) -> const std::string& { return follower->NameOf(name); };
    for (model::StepStages& step : cutter.Take(*followed, name_of)) steps.push_back(std::move(step));
    if (pass == 2) FUZZ_CHECK(followed->record_count == 0);  // Nothing has changed since.
    file = whole;
  }
  CheckStages(std::move(steps));
  return 0;
}
