#include "model/stages/stage.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace lockstep::model {
namespace {

constexpr std::pair<std::string_view, Stage> kWords[] = {
    {"input", Stage::kInput},
    {"data", Stage::kInput},
    {"dataloader", Stage::kInput},
    {"data_loading", Stage::kInput},
    {"load", Stage::kInput},
    {"fetch", Stage::kInput},
    {"batch", Stage::kInput},
    {"h2d", Stage::kHostToDevice},
    {"to_device", Stage::kHostToDevice},
    {"copy", Stage::kHostToDevice},
    {"forward", Stage::kForward},
    {"loss", Stage::kForward},
    {"backward", Stage::kBackward},
    {"optimizer", Stage::kOptimizer},
    {"optimizer.step", Stage::kOptimizer},
    {"optimizer_step", Stage::kOptimizer},
    {"update", Stage::kOptimizer},
    {"zero_grad", Stage::kOptimizer},
    {"comm", Stage::kCommunication},
    {"communication", Stage::kCommunication},
    {"all_reduce", Stage::kCommunication},
    {"allreduce", Stage::kCommunication},
    {"all_gather", Stage::kCommunication},
    {"reduce_scatter", Stage::kCommunication},
    {"all_to_all", Stage::kCommunication},
    {"broadcast", Stage::kCommunication},
    {"barrier", Stage::kCommunication},
    {"grad_sync", Stage::kCommunication},
    {"p2p", Stage::kCommunication},
    {"checkpoint", Stage::kCheckpoint},
    {"save", Stage::kCheckpoint},
    {"save_checkpoint", Stage::kCheckpoint},
    {"validation", Stage::kValidation},
    {"validate", Stage::kValidation},
    {"eval", Stage::kValidation},
    {"evaluation", Stage::kValidation},
    {"gc", Stage::kGarbageCollection},
};

}  // namespace

const char* StageName(Stage stage) {
  switch (stage) {
    case Stage::kInput: return "input";
    case Stage::kHostToDevice: return "h2d";
    case Stage::kForward: return "forward";
    case Stage::kBackward: return "backward";
    case Stage::kOptimizer: return "optimizer";
    case Stage::kCommunication: return "comm_exposed";
    case Stage::kCheckpoint: return "checkpoint";
    case Stage::kValidation: return "validation";
    case Stage::kGarbageCollection: return "gc";
    case Stage::kOther: break;
  }
  return "other";
}

std::optional<Stage> StageOf(std::string_view span_name) {
  // Whatever groups them: "train/forward", NVTX's "domain:forward".
  const size_t cut = span_name.find_last_of("/:");
  if (cut != std::string_view::npos) span_name.remove_prefix(cut + 1);
  std::string word;
  for (const char c : span_name)
    word += c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto* const found =
      std::find_if(std::begin(kWords), std::end(kWords), [&](const auto& known) { return known.first == word; });
  if (found == std::end(kWords)) return std::nullopt;
  return found->second;
}

WaitOf ReadWait(std::string_view span_name) {
  const size_t cut = span_name.rfind('/');
  const std::string_view word = cut == std::string_view::npos ? span_name : span_name.substr(cut + 1);
  const std::string_view group = cut == std::string_view::npos ? std::string_view() : span_name.substr(0, cut);
  const bool is_group = group.ends_with(']') && group.find('[') != std::string_view::npos;
  return {is_group ? group : std::string_view(), word == "p2p"};
}

bool IsDeviceTime(std::string_view counter) {
  return counter == kDeviceTimesCounter || counter == kDeviceStepCounter || counter == kDeviceStepEndCounter ||
         counter.starts_with(kDeviceStagePrefix);
}

}  // namespace lockstep::model
