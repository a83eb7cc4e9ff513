#pragma once

#include <stddef.h>

#include <cstdint>

namespace lockstep::instrument {

/// What the launcher says of this process; -1: it does not.
struct RankFacts {
  int32_t rank = -1;
  int32_t world_size = -1;
  int32_t local_rank = -1;
};
RankFacts ReadRankFacts();

/// Letters, digits, dots and hyphens alone: it becomes part of a file's name.
void ReadHostName(char* host, size_t bytes);

/// The command line's first word and, for an interpreter, its script.
void ReadProgram(char* program, size_t bytes);

}  // namespace lockstep::instrument
