#include "inside/launch/output_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ascii.h"

namespace lockstep::launch {
namespace {

Error BadName(std::string_view pattern, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("the name '{}' {}", pattern, why)};
}

std::string Clean(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    const bool harmless = IsAlphanumeric(c) || c == '.' || c == '-' || c == '_' || c == '=' || c == '+';
    if (!harmless) c = '_';
  }
  return clean;
}

/// What of a pattern tells ranks apart.
struct Distinguishes {
  bool rank = false;
  bool host = false;
  bool local_rank = false;
};

}  // namespace

const char* const kDefaultName = "%t.rank%r-of-%w.%h";

Result<std::string> ExpandName(std::string_view pattern, const NameFacts& facts) {
  const RankIdentity& identity = facts.identity;
  const bool is_alone = identity.launcher == Launcher::kAlone;
  const auto number = [&](const std::optional<int32_t>& value, int32_t alone) {
    return value ? fmt::format("{}", *value) : is_alone ? fmt::format("{}", alone) : "unknown";
  };
  Distinguishes distinguishes;
  std::string name;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      name += pattern[at];
      continue;
    }
    if (++at == pattern.size()) return BadName(pattern, "ends in a single %; %% is a percent sign");
    switch (pattern[at]) {
      case '%': name += '%'; break;
      case 't': name += facts.tool; break;
      case 'h':
        name += facts.host.empty() ? "HOST" : Clean(facts.host);
        distinguishes.host = true;
        break;
      case 'r':
        name += number(identity.rank, 0);
        distinguishes.rank = identity.rank.has_value();
        break;
      case 'w': name += number(identity.world_size, 1); break;
      case 'l':
        name += number(identity.local_rank, 0);
        distinguishes.local_rank = identity.local_rank.has_value();
        break;
      case 'q': {
        const size_t close = pattern.find('}', at);
        if (at + 1 >= pattern.size() || pattern[at + 1] != '{' || close == std::string_view::npos)
          return BadName(pattern, "has a %q without {VARIABLE}");
        const std::string_view variable = pattern.substr(at + 2, close - at - 2);
        if (!facts.environment.Has(variable)) {
          return BadName(pattern, fmt::format("needs {0}, which is not set here: all ranks would write to the same "
                                              "file '%q{{{0}}}'; %r is the rank under every launcher",
                                              variable));
        }
        const std::string value(facts.environment.Get(variable));
        name += Clean(value);
        distinguishes.rank |=
            identity.rank && value == fmt::format("{}", *identity.rank) && variable == identity.rank_variable;
        distinguishes.local_rank |= identity.local_rank && value == fmt::format("{}", *identity.local_rank) &&
                                    variable.find("LOCAL") != std::string_view::npos;
        at = close;
        break;
      }
      case 'p':
        return BadName(
            pattern,
            "has %p, the process id, which is not known before the job runs and may be the same on two hosts; "
            "%r is the rank");
      case 'n':
        return BadName(pattern,
                       "has %n, the next free number, which ranks that start together may share; %r is the rank");
      default:
        return BadName(pattern,
                       fmt::format("has an unknown %{}; there are %r %w %l %h %t %q{{VARIABLE}} %%", pattern[at]));
    }
  }
  const bool is_unique = distinguishes.rank || (distinguishes.host && distinguishes.local_rank);
  if (!is_unique && !is_alone && identity.world_size != 1 && !facts.filter.SelectsOneAtMost()) {
    return BadName(pattern, fmt::format("is the same for several of the ranks {}; put %r (the rank) into it",
                                        facts.filter.text()));
  }
  if (identity.restart > 0) name += fmt::format(".restart{}", identity.restart);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    return BadName(pattern, "is not a file's name; folders go to --out");
  return name;
}

}  // namespace lockstep::launch
