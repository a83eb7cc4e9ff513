#include "model/step_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/ascii.h"
#include "base/letter_case.h"

namespace lockstep::model {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";
constexpr std::array<std::string_view, 8> kStepWords = {
    "step", "iteration", "iter", "train step", "training step", "train_step", "train iter", "training iteration"};

/// The digits that `name` ends with, as a number.
std::optional<NumberedStep> SplitNumber(std::string_view name) {
  size_t begin = name.size();
  while (begin > 0 && IsDigit(name[begin - 1])) --begin;
  NumberedStep step{name.substr(0, begin)};
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), step.number);
  if (error != std::errc()) return std::nullopt;
  return step;
}

}  // namespace

std::optional<NumberedStep> ReadProfilerStep(std::string_view name) {
  if (!name.starts_with(kProfilerStep)) return std::nullopt;
  const auto step = SplitNumber(name);
  return step && step->prefix == kProfilerStep ? step : std::nullopt;
}

std::optional<NumberedStep> ReadNumberedStep(std::string_view name) {
  if (name.empty() || !IsDigit(name.back())) return std::nullopt;
  const auto step = SplitNumber(name);
  if (!step) return std::nullopt;
  std::string_view word = step->prefix;
  // A domain may stand in front: "train:step 3".
  if (const size_t colon = word.rfind(':'); colon != std::string_view::npos && colon + 1 < word.size() &&
                                            word.find_first_not_of(" #_:=-", colon) != std::string_view::npos) {
    word.remove_prefix(colon + 1);
  }
  while (!word.empty() && std::string_view(" #_:=-").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  std::string lower = Lowered(word);
  if (std::find(kStepWords.begin(), kStepWords.end(), lower) == kStepWords.end()) return std::nullopt;
  return step;
}

}  // namespace lockstep::model
