#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::agent {

/// Inference engines whose own metrics are known.
enum class EngineKind : uint8_t { kVllm, kSglang };

/// As the settings and the label `engine` say: "vllm", "sglang".
inline const char* EngineKindName(EngineKind kind) { return kind == EngineKind::kVllm ? "vllm" : "sglang"; }
inline std::optional<EngineKind> EngineKindOf(std::string_view name) {
  if (name == "vllm") return EngineKind::kVllm;
  if (name == "sglang") return EngineKind::kSglang;
  return std::nullopt;
}

}  // namespace lockstep::agent
