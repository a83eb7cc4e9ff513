#include "node/agent/job_metrics/phase.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace lockstep::agent {
namespace {

constexpr std::pair<std::string_view, Phase> kWords[] = {
    {"input", Phase::kInput},
    {"data", Phase::kInput},
    {"dataloader", Phase::kInput},
    {"data_loading", Phase::kInput},
    {"load", Phase::kInput},
    {"fetch", Phase::kInput},
    {"batch", Phase::kInput},
    {"h2d", Phase::kHostToDevice},
    {"to_device", Phase::kHostToDevice},
    {"copy", Phase::kHostToDevice},
    {"forward", Phase::kForward},
    {"loss", Phase::kForward},
    {"backward", Phase::kBackward},
    {"optimizer", Phase::kOptimizer},
    {"optimizer.step", Phase::kOptimizer},
    {"optimizer_step", Phase::kOptimizer},
    {"update", Phase::kOptimizer},
    {"zero_grad", Phase::kOptimizer},
    {"comm", Phase::kCommunication},
    {"communication", Phase::kCommunication},
    {"all_reduce", Phase::kCommunication},
    {"allreduce", Phase::kCommunication},
    {"all_gather", Phase::kCommunication},
    {"reduce_scatter", Phase::kCommunication},
    {"all_to_all", Phase::kCommunication},
    {"broadcast", Phase::kCommunication},
    {"barrier", Phase::kCommunication},
    {"grad_sync", Phase::kCommunication},
    {"checkpoint", Phase::kCheckpoint},
    {"save", Phase::kCheckpoint},
    {"save_checkpoint", Phase::kCheckpoint},
};

}  // namespace

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kInput: return "input";
    case Phase::kHostToDevice: return "h2d";
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kOptimizer: return "optimizer";
    case Phase::kCommunication: return "comm_exposed";
    case Phase::kCheckpoint: return "checkpoint";
    case Phase::kOther: break;
  }
  return "other";
}

std::optional<Phase> PhaseOf(std::string_view span_name) {
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

}  // namespace lockstep::agent
