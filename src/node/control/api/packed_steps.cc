#include <algorithm>
#include <utility>

#include "model/stages/rank_stages.h"
#include "node/control/api/stages.h"

namespace lockstep::control {
namespace {

constexpr int kStageBits = 4;
constexpr uint64_t kWaitInGroup = (1U << kStageBits) - 1;
static_assert(model::kStages.size() <= kWaitInGroup);
constexpr int64_t kLongestNs = int64_t{1} << 59;  // Of a step.

void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void PutZigzag(int64_t value, std::string* out) {
  PutVarint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63), out);
}

std::optional<uint64_t> TakeVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    if (i == 9 && byte > 1) return std::nullopt;
    value |= uint64_t{byte & 0x7FU} << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> TakeZigzag(std::string_view* bytes) {
  const std::optional<uint64_t> value = TakeVarint(bytes);
  if (!value) return std::nullopt;
  return static_cast<int64_t>(*value >> 1 ^ (~(*value & 1) + 1));
}

std::optional<model::StepStages> TakeStep(std::string_view* bytes) {
  const std::optional<int64_t> number = TakeZigzag(bytes);
  const std::optional<int64_t> start_ns = TakeZigzag(bytes);
  const std::optional<uint64_t> count = TakeVarint(bytes);
  if (!number || !start_ns || !count || *count > bytes->size()) return std::nullopt;
  model::StepStages step{.number = *number, .start_ns = *start_ns};
  step.spans.reserve(*count);
  for (uint64_t i = 0; i < *count; ++i) {
    const std::optional<uint64_t> packed = TakeVarint(bytes);
    if (!packed) return std::nullopt;
    uint64_t stage = *packed & ((1U << kStageBits) - 1);
    const auto duration_ns = static_cast<int64_t>(*packed >> kStageBits);
    model::WaitedFor waited_for;
    if (stage == kWaitInGroup) {
      stage = static_cast<uint64_t>(model::Stage::kCommunication);
      const std::optional<uint64_t> whom = TakeVarint(bytes);
      if (!whom || *whom / 2 > model::kMostGroups) return std::nullopt;
      waited_for = {.group = static_cast<uint16_t>(*whom / 2), .is_pairwise = *whom % 2 != 0};
    }
    if (stage >= model::kStages.size() || duration_ns > kLongestNs - step.duration_ns) return std::nullopt;
    step.duration_ns += duration_ns;
    step.spans.push_back({static_cast<model::Stage>(stage), duration_ns, waited_for});
  }
  return step;
}

}  // namespace

std::string PackStep(const model::StepStages& step) {
  std::string bytes;
  PutZigzag(step.number, &bytes);
  PutZigzag(step.start_ns, &bytes);
  PutVarint(step.spans.size(), &bytes);
  int64_t left_ns = kLongestNs;
  for (const model::StageSpan& span : step.spans) {
    if (span.duration_ns < 0 || span.duration_ns > left_ns) return {};
    left_ns -= span.duration_ns;
    const uint64_t whom = uint64_t{span.waited_for.group} * 2 + (span.waited_for.is_pairwise ? 1 : 0);
    const uint64_t stage = whom != 0 ? kWaitInGroup : static_cast<uint64_t>(span.stage);
    PutVarint(static_cast<uint64_t>(span.duration_ns) << kStageBits | stage, &bytes);
    if (whom != 0) PutVarint(whom, &bytes);
  }
  return bytes;
}

Result<std::vector<model::StepStages>> UnpackSteps(std::string_view bytes) {
  std::vector<model::StepStages> steps;
  while (!bytes.empty()) {
    std::optional<model::StepStages> step = TakeStep(&bytes);
    if (!step || steps.size() == kMostKeptSteps)
      return Error{ErrorCode::kCorruptData, "steps: not what a daemon packs"};
    steps.push_back(std::move(*step));
  }
  return steps;
}

}  // namespace lockstep::control
