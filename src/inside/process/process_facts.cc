#include "inside/process/process_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/launchers/launchers.h"

namespace lockstep::instrument {
namespace {

bool IsOfHostName(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
}

}  // namespace

RankFacts ReadRankFacts() {
  const auto get = [](const char* name) {
    const char* const text = getenv(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  const launchers::FoundRank found = launchers::FindRank(get, launchers::Viewpoint::kInProgram);
  return {found.rank.value_or(-1), found.world_size.value_or(-1), found.local_rank.value_or(-1)};
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
