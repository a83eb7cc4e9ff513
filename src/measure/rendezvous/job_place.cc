#include "measure/rendezvous/job_place.h"

#include <fmt/format.h>

#include "inside/launch/rank_environment.h"

namespace lockstep::rendezvous {
namespace {

constexpr int32_t kUsualPort = 29500;  // PyTorch's.
// Names of jobs, the same on all ranks of one.
constexpr const char* kJobVariables[] = {
    "WORLD_SIZE",   "MASTER_PORT",   "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
    "SLURM_JOB_ID", "SLURM_STEP_ID", "LOCKSTEP_BENCH_TOKEN"};

/// FNV-1a. Against mistakes, not against malice: a process that can read the job's environment can join it.
uint64_t Digest(const launch::Environment& environment) {
  uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    digest = (digest ^ 0xff) * 0x100000001b3;
  };
  for (const char* variable : kJobVariables) add(environment.Get(variable));
  return digest;
}

Error Missing(std::string message) { return {.code = ErrorCode::kFailedPrecondition, .message = std::move(message)}; }

}  // namespace

Result<JobPlace> PlaceFromEnvironment(const launch::Environment& environment) {
  const launch::RankIdentity identity = launch::FindRank(environment);
  if (!identity.rank || !identity.world_size) {
    return Missing(
        "this process's rank is not known: start it with torchrun or srun, or set RANK, WORLD_SIZE, LOCAL_RANK, "
        "MASTER_ADDR and MASTER_PORT for each process");
  }
  if (environment.Get("MASTER_ADDR").empty()) {
    return Missing("MASTER_ADDR is not set: set it to the name of rank 0's host, on all ranks");
  }
  const auto port =
      environment.Get("MASTER_PORT").empty() ? kUsualPort : environment.Number("MASTER_PORT").value_or(-1);
  if (port < 1 || port + kPortCount > UINT16_MAX) {
    return Missing(fmt::format("MASTER_PORT={} is not a port with {} more ports above it",
                               environment.Get("MASTER_PORT"), kPortCount));
  }
  JobPlace place;
  place.rank = static_cast<uint32_t>(*identity.rank);
  place.world_size = static_cast<uint32_t>(*identity.world_size);
  place.address = environment.Get("MASTER_ADDR");
  place.listen_address = environment.Get("LOCKSTEP_BENCH_LISTEN");
  if (place.listen_address.empty()) place.listen_address = place.address;
  place.first_port = static_cast<uint16_t>(port + 1);
  place.job = Digest(environment);
  return place;
}

}  // namespace lockstep::rendezvous
