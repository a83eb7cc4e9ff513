#include "instrument/process/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace lockstep::instrument {
namespace {

/// Where a launcher says what; the innermost launcher first. As the launchers' own manuals have them.
struct RankVariables {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};
constexpr RankVariables kVariables[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

int32_t ReadNumber(const char* variable) {
  const char* const text = getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  errno = 0;
  char* end = nullptr;
  const long number = strtol(text, &end, 10);
  return errno != 0 || *end != '\0' || number > INT32_MAX ? -1 : static_cast<int32_t>(number);
}

bool IsOfHostName(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
}

}  // namespace

RankFacts ReadRankFacts() {
  for (const RankVariables& variables : kVariables) {
    const int32_t rank = ReadNumber(variables.rank);
    if (rank >= 0) return {rank, ReadNumber(variables.world_size), ReadNumber(variables.local_rank)};
  }
  return {};
}

void ReadHostName(char* host, size_t bytes) {
  if (gethostname(host, bytes) != 0) snprintf(host, bytes, "host");
  host[bytes - 1] = '\0';
  for (char* at = host; *at != '\0'; ++at) {
    if (!IsOfHostName(*at)) *at = '-';
  }
  if (*host == '\0') snprintf(host, bytes, "host");
}

void ReadProgram(char* program, size_t bytes) {
  program[0] = '\0';
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[4096];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return;
  text[got] = '\0';
  const char* const end = text + got;
  const char* const script = text + strlen(text) + 1;
  const char* const slash = strrchr(text, '/');
  const char* const name = slash == nullptr ? text : slash + 1;
  const bool has_script = strncmp(name, "python", 6) == 0 && script < end && *script != '\0' && *script != '-';
  snprintf(program, bytes, "%s%s%s", name, has_script ? " " : "", has_script ? script : "");
}

}  // namespace lockstep::instrument
