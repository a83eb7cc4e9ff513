#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::agent {

/// Inference engines whose own metrics are known.
enum class EngineKind : uint8_t { kVllm, kSglang, kTriton };

/// By EngineKind, as the settings and the label `engine` say.
inline constexpr std::array kEngineKindNames = {"vllm", "sglang", "triton"};

inline const char* EngineKindName(EngineKind kind) { return kEngineKindNames[static_cast<size_t>(kind)]; }
inline std::optional<EngineKind> EngineKindOf(std::string_view name) {
  const auto* const found = std::find(kEngineKindNames.begin(), kEngineKindNames.end(), name);
  if (found == kEngineKindNames.end()) return std::nullopt;
  return static_cast<EngineKind>(found - kEngineKindNames.begin());
}

}  // namespace lockstep::agent
