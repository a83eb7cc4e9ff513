// What a node answers to GET /metrics, as `lockstep top` reads it: taken twice as two looks, the second a part of the
// first, so that counters go on, stand still, go back and vanish. What is shown must be sound whatever the bytes are.
#include <cmath>
#include <sstream>
#include <string_view>

#include "base/exposition/exposition.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "node/live/job_tracker.h"
#include "present/top/top_text.h"

namespace {

using namespace lockstep;
using namespace lockstep::live;
using namespace lockstep::exposition;

constexpr int64_t kSecondNs = 1'000'000'000;

NodeLook LookAt(std::string_view text, int64_t taken_ns) {
  uint64_t count = 0;
  const ExpositionCount read = ReadExposition(text, [&](const MetricSample& sample) {
    ++count;
    FUZZ_CHECK(!sample.name.empty());
    FUZZ_CHECK(sample.labels.size() <= kMostLabels);
    for (const MetricLabel& label : sample.labels) FUZZ_CHECK(!label.name.empty());
  });
  FUZZ_CHECK(read.sample_count == count);
  FUZZ_CHECK(read.sample_count + read.bad_line_count <= text.size() / 2 + 1);
  NodeLook look;
  look.host = "node";
  look.taken_ns = taken_ns;
  look.reading = ReadNodeMetrics(text, "");
  return look;
}

void Check(const View& view) {
  for (const JobView& job : view.jobs) {
    for (const RankView& rank : job.ranks) {
      FUZZ_CHECK(rank.steps_per_s.value_or(0) >= 0);
      FUZZ_CHECK(rank.step_ns.value_or(0) >= 0);
      FUZZ_CHECK(rank.progress_age_ns.value_or(0) >= 0);
      FUZZ_CHECK(rank.step_history.size() <= kHistory);
    }
    for (const ServingView& serving : job.serving) FUZZ_CHECK(serving.requests_per_s.value_or(0) >= 0);
  }
  std::ostringstream text;
  top::WriteTopText(view, {.width = 100, .sections = {}}, text);
  for (const char c : text.str()) FUZZ_CHECK(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  FUZZ_CHECK(ValidUtf8(text.str()) == text.str());
  std::ostringstream json;
  top::WriteTopJson(view, true, json);
  FUZZ_CHECK(json.str().find('\n') == json.str().size() - 1);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view whole(reinterpret_cast<const char*>(data) + 1, size - 1);
  JobTracker tracker(kSecondNs, true);
  for (int64_t look = 1; look <= 3; ++look) {
    const std::string_view text = look == 2 ? whole.substr(whole.size() * data[0] / 256) : whole;
    std::vector<NodeLook> looks;
    looks.push_back(LookAt(text, look * kSecondNs));
    Check(tracker.Take(std::move(looks), look * kSecondNs, 1'700'000'000 * kSecondNs + look * kSecondNs));
  }
  return 0;
}
