#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "inside/launch/environment.h"
#include "inside/launch/rank_filter.h"

namespace lockstep::launch {

/// What a pattern is expanded with.
struct NameFacts {
  const RankIdentity& identity;
  const Environment& environment;
  const RankFilter& filter;
  std::string host;  ///< Empty: this is a plan for hosts that are not known yet, and "HOST" is put.
  std::string tool;  ///< "nsys": %t.
};

/// "%t.rank%r-of-%w.%h".
extern const char* const kDefaultName;

/// A file's name from a pattern, in nsys's notation and ours: %h host, %q{VAR} a variable, %% a percent sign; %r rank,
/// %w world size, %l local rank, %t tool. The whole is expanded here, and not by the tool, so that every file is known
/// before the job runs; a restart by torchrun gets ".restartN" behind it. Characters that no file's name should have
/// become '_'. Errors: kInvalidArgument for a pattern that two of the chosen ranks would share, that holds a variable
/// that is not set, the job's process id (%p, not known before) or the next free number (%n, which ranks race for).
Result<std::string> ExpandName(std::string_view pattern, const NameFacts& facts);

}  // namespace lockstep::launch
