#include "inside/launch/rank_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text_scan.h"

namespace lockstep::launch {
namespace {

constexpr int64_t kMostRanks = 100'000'000;
constexpr const char* kForms =
    "ranks are chosen by all, 3, 8-11, local:0, per-node:1, first:8, every:16, node:0 or host:NAME, with commas "
    "between";

Error NoTerm(std::string_view term, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("--ranks '{}': {}; {}", term, why, kForms)};
}

std::optional<int64_t> Number(std::string_view text) {
  const auto number = WholeNumber(text);
  return number && *number >= 0 && *number <= kMostRanks ? number : std::nullopt;
}

struct Range {
  int64_t first;
  int64_t last;
};

// "3", "8-11".
std::optional<Range> NumberRange(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = Number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : Number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

}  // namespace

Result<RankFilter::Term> RankFilter::ParseTerm(std::string_view text) {
  if (text.empty()) return NoTerm(text, "an empty part");
  if (text == "all") return Term{};
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto range = NumberRange(text);
    if (!range) return NoTerm(text, "no rank and no range of ranks");
    return Term{.kind = Kind::kRanks, .first = range->first, .last = range->last};
  }
  const std::string_view key = text.substr(0, colon);
  const std::string_view value = text.substr(colon + 1);
  if (key == "host") {
    if (value.empty()) return NoTerm(text, "it names no host");
    return Term{.kind = Kind::kHost, .host = std::string(value)};
  }
  if (key == "local" || key == "node" || key == "list") {
    const auto range = NumberRange(value);
    if (!range) return NoTerm(text, "no number and no range");
    const Kind kind = key == "local" ? Kind::kLocal : key == "node" ? Kind::kNode : Kind::kRanks;
    return Term{.kind = kind, .first = range->first, .last = range->last};
  }
  if (key == "first" || key == "per-node" || key == "every") {
    const auto count = Number(value);
    if (!count || *count == 0) return NoTerm(text, "it needs a number from 1 on");
    if (key == "every") return Term{.kind = Kind::kEvery, .first = *count};
    return Term{.kind = key == "first" ? Kind::kRanks : Kind::kLocal, .first = 0, .last = *count - 1};
  }
  return NoTerm(text, fmt::format("'{}' is not a way to choose", key));
}

Result<RankFilter> RankFilter::Parse(std::string_view text) {
  RankFilter filter;
  filter.text_ = text;
  bool previous_had_key = false;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    ASSIGN_OR_RETURN(Term term, ParseTerm(part));
    const bool has_key = part.find(':') != std::string_view::npos && !part.starts_with("list:");
    if (previous_had_key && term.kind == Kind::kRanks && !has_key) {
      // "local:0,1" reads as local ranks 0 and 1, and would have been rank 1 of the job.
      return NoTerm(
          text, fmt::format(
                    "is '{0}' a rank of the job? then put it first; else give it its own name, as in local:0,local:{0}",
                    part));
    }
    previous_had_key = has_key;
    filter.terms_.push_back(std::move(term));
    at = end + 1;
  }
  return filter;
}

Result<bool> RankFilter::Selects(const RankIdentity& identity, std::string_view host) const {
  const bool is_alone = identity.launcher == Launcher::kAlone;
  std::string missing;
  for (const Term& term : terms_) {
    std::optional<int32_t> number;
    const char* what = "";
    switch (term.kind) {
      case Kind::kAll: return true;
      case Kind::kHost:
        // "n3" selects "n3.cluster.local" too.
        if (host == term.host || (host.starts_with(term.host) && host.substr(term.host.size()).starts_with(".")))
          return true;
        continue;
      case Kind::kRanks:
      case Kind::kEvery: number = identity.rank, what = "rank"; break;
      case Kind::kLocal: number = identity.local_rank, what = "local rank"; break;
      case Kind::kNode: number = identity.node, what = "node's number"; break;
    }
    if (is_alone) number = 0;
    if (!number) {
      missing = what;
      continue;
    }
    if (term.kind == Kind::kEvery ? *number % term.first == 0 : *number >= term.first && *number <= term.last)
      return true;
  }
  if (missing.empty()) return false;
  return Error{
      ErrorCode::kFailedPrecondition,
      fmt::format("--ranks {}: {} does not set this process's {}; choose by rank (0,8 or every:8) or host:NAME", text_,
                  LauncherName(identity.launcher), missing)};
}

bool RankFilter::SelectsAll() const {
  return std::ranges::any_of(terms_, [](const Term& term) {
    return term.kind == Kind::kAll || (term.kind == Kind::kEvery && term.first == 1);
  });
}

bool RankFilter::SelectsOneAtMost() const {
  return terms_.size() == 1 && terms_[0].kind == Kind::kRanks && terms_[0].first == terms_[0].last;
}

bool RankFilter::NeedsRankOnly() const {
  return std::ranges::all_of(terms_, [](const Term& term) {
    return term.kind == Kind::kAll || term.kind == Kind::kRanks || term.kind == Kind::kEvery;
  });
}

}  // namespace lockstep::launch
