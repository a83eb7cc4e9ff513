#include "inside/launch/debug_environment.h"

#include <fmt/format.h>

#include "inside/launch/tool_command.h"

namespace lockstep::launch {

std::vector<std::pair<std::string, std::string>> DebugVariables(const std::string& folder,
                                                                const Environment& environment,
                                                                const RankIdentity& identity, const std::string& host) {
  // NCCL puts host and process for %h and %p.
  std::string log = WithoutPatterns(folder) + "/nccl.";
  log += identity.rank ? WithoutPatterns(fmt::format("rank{}.{}", *identity.rank, host)) : "%h.%p";
  if (identity.restart > 0) log += fmt::format(".restart{}", identity.restart);
  const std::string records = folder + "/nccl_trace_rank_";  // PyTorch puts the rank behind it.
  const std::pair<const char*, std::string> wanted[] = {
      {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_FILE", log + ".log"},
      {"TORCH_DISTRIBUTED_DEBUG", "DETAIL"},
      {"TORCH_CPP_LOG_LEVEL", "INFO"},  // Without it the line above says little.
      {"TORCH_SHOW_CPP_STACKTRACES", "1"},
      {"TORCH_FR_BUFFER_SIZE", "20000"},
      {"TORCH_NCCL_TRACE_BUFFER_SIZE", "20000"},  // Its name before PyTorch 2.9.
      {"TORCH_FR_DUMP_TEMP_FILE", records},
      {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", records},  // As above.
      {"TORCH_NCCL_DUMP_ON_TIMEOUT", "1"},
      {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "60000"},  // For the dump, before the process is ended.
      {"PYTHONFAULTHANDLER", "1"},
  };
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, value] : wanted) {
    if (!environment.Has(name)) variables.emplace_back(name, value);
  }
  return variables;
}

}  // namespace lockstep::launch
