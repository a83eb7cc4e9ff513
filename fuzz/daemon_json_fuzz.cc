// Bodies that lockstepd takes from its clients, and that clients take from it: every reader over the same bytes. What
// is read is written and read again, and must then be the same.
#include <string>
#include <string_view>

#include "fuzz.h"
#include "node/control/api/history.h"
#include "node/control/api/json.h"
#include "node/control/api/network_test.h"
#include "node/control/api/stages.h"

namespace {

using namespace lockstep;
using namespace lockstep::control;

template <typename T>
void Check(Result<T> (*read)(std::string_view), std::string_view text) {
  const Result<T> first = read(text);
  if (!first) {
    FUZZ_CHECK(!first.error().message.empty());
    return;
  }
  const std::string written = ToJson(*first);
  const Result<T> second = read(written);
  FUZZ_CHECK(second.has_value());
  FUZZ_CHECK(ToJson(*second) == written);
}

/// Whatever the bytes are: steps that are read are packed and read again as they were, and add up.
void CheckSteps(std::string_view bytes) {
  const auto steps = UnpackSteps(bytes);
  if (!steps) return;
  std::string packed;
  for (const model::StepStages& step : *steps) {
    int64_t sum_ns = 0;
    for (const model::StageSpan& span : step.spans) sum_ns += span.duration_ns;
    FUZZ_CHECK(sum_ns == step.duration_ns);
    packed += PackStep(step);
  }
  FUZZ_CHECK(packed.size() <= bytes.size());
  const auto again = UnpackSteps(packed);
  FUZZ_CHECK(again.has_value() && again->size() == steps->size());
  for (size_t i = 0; i < steps->size(); ++i) {
    FUZZ_CHECK((*again)[i].number == (*steps)[i].number && (*again)[i].start_ns == (*steps)[i].start_ns);
    FUZZ_CHECK((*again)[i].duration_ns == (*steps)[i].duration_ns);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check<NodeStatus>(ReadNodeStatus, text);
  Check<std::vector<Process>>(ReadProcesses, text);
  Check<CaptureSpec>(ReadCaptureSpec, text);
  Check<Capture>(ReadCapture, text);
  Check<std::vector<Capture>>(ReadCaptures, text);
  Check<NetworkTestSpec>(ReadNetworkTestSpec, text);
  Check<NetworkTest>(ReadNetworkTest, text);
  Check<InspectionSpec>(ReadInspectionSpec, text);
  Check<History>(ReadHistory, text);
  if (const auto query = ReadHistoryQuery(text)) FUZZ_CHECK(HistoryPath(*query).size() <= 128 + 3 * text.size());
  if (const auto inspection = ReadInspection(text)) FUZZ_CHECK(ReadInspection(ToJson(*inspection)).has_value());
  Check<NodeStages>(ReadNodeStages, text);
  if (const auto query = ReadStagesQuery(text)) FUZZ_CHECK(StagesPath(*query).size() <= 128 + 3 * text.size());
  CheckSteps(text);
  if (const auto stages = ReadNodeStages(text)) {
    for (const RankSteps& rank : stages->ranks) CheckSteps(rank.steps);
  }
  FUZZ_CHECK(!ToJson(ReadError(text)).empty());
  return 0;
}
