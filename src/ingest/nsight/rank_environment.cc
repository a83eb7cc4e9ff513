#include "ingest/nsight/rank_environment.h"

#include <charconv>

namespace lockstep::ingest::nsight {
namespace {

struct Launcher {
  const char* rank;
  const char* world;
  const char* other_world = nullptr;
};

constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PALS_RANKID", "PMI_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"JAX_PROCESS_ID", "JAX_NUM_PROCESSES"},
};

std::optional<int32_t> Number(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  int32_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [next, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || next != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

LaunchFacts ReadLaunch(const Environment& environment) {
  LaunchFacts alone;
  for (const Launcher& launcher : kLaunchers) {
    LaunchFacts facts;
    facts.rank = Number(environment(launcher.rank));
    if (!facts.rank) continue;
    facts.world_size = Number(environment(launcher.world));
    if (!facts.world_size && launcher.other_world != nullptr)
      facts.world_size = Number(environment(launcher.other_world));
    facts.variable = launcher.rank;
    if (facts.world_size && *facts.rank >= *facts.world_size) continue;
    const bool is_slurm = facts.variable == "SLURM_PROCID";
    if (facts.world_size.value_or(0) > 1 || (!facts.world_size && !is_slurm)) return facts;
    if (!alone.rank && !is_slurm) alone = facts;
  }
  return alone;
}

std::optional<std::string> FindVariable(std::string_view joined, std::string_view name) {
  // Until schema 3 variables stand on lines of their own.
  constexpr std::string_view kSeparators(";\n\0", 3);
  for (size_t at = joined.find(name); at != std::string_view::npos; at = joined.find(name, at + 1)) {
    const size_t equals = at + name.size();
    if (at > 0 && kSeparators.find(joined[at - 1]) == std::string_view::npos) continue;
    if (equals >= joined.size() || joined[equals] != '=') continue;
    const std::string_view value = joined.substr(equals + 1);
    return std::string(value.substr(0, value.find_first_of(kSeparators)));
  }
  return std::nullopt;
}

}  // namespace lockstep::ingest::nsight
