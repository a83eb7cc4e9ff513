#include "analysis/host_role.h"

#include <algorithm>
#include <array>

#include "analysis/kernel_kind.h"
#include "model/step_name.h"

namespace lockstep::analysis {
namespace {

constexpr std::array<std::string_view, 4> kCallPrefixes = {
    "c10d::", "_c10d_functional::", "c10d_functional::", "record_param_comms"};

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ContainsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::search(text.begin(), text.end(), lower.begin(), lower.end(),
                     [](char a, char b) { return LowerAscii(a) == b; }) != text.end();
}

}  // namespace

HostRole HostRoleOf(std::string_view name) {
  if (StartsWith(name, "ProfilerStep#") || model::ReadNumberedStep(name)) return HostRole::kStep;
  if (IsCpuCollectiveName(name)) return HostRole::kCollective;
  if (std::any_of(kCallPrefixes.begin(), kCallPrefixes.end(),
                  [&](std::string_view prefix) { return StartsWith(name, prefix); })) {
    return HostRole::kCollectiveCall;
  }
  if (ContainsIgnoringCase(name, "dataloader")) return HostRole::kDataLoader;
  return HostRole::kWork;
}

}  // namespace lockstep::analysis
