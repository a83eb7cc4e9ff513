#include "analysis/hang/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/nanoseconds.h"

namespace lockstep::hang {
namespace {

std::string_view BaseName(std::string_view file) {
  const size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? file : file.substr(slash + 1);
}

}  // namespace

std::string Capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string Ranks(const std::vector<int32_t>& ranks) {
  if (ranks.empty()) {
    return "no rank";
  }
  if (ranks.size() == 1) {
    return "rank " + std::to_string(ranks.front());
  }
  std::vector<std::string> parts;
  size_t shown = 0;
  for (size_t i = 0; i < ranks.size() && parts.size() < 12;) {
    size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) {
      ++end;
    }
    if (end >= i + 2) {
      parts.push_back(fmt::format("{}-{}", ranks[i], ranks[end]));
    } else {
      end = i;
      parts.push_back(std::to_string(ranks[i]));
    }
    shown = end + 1;
    i = end + 1;
  }
  if (shown < ranks.size()) {
    parts.push_back(fmt::format("{} more", ranks.size() - shown));
  }
  std::string text = "ranks ";
  for (size_t i = 0; i < parts.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == parts.size() ? " and " : ", ");
    text += parts[i];
  }
  return text;
}

std::string Seconds(int64_t nanoseconds) {
  constexpr int64_t kHours = 3600 * kSecondNs;
  if (nanoseconds >= 48 * kHours) {
    return fmt::format("{} days", nanoseconds / (24 * kHours));
  }
  if (nanoseconds >= 10 * kHours) {
    return fmt::format("{} hours", nanoseconds / kHours);
  }
  if (nanoseconds >= 10 * kSecondNs) {
    return fmt::format("{} s", nanoseconds / kSecondNs);
  }
  if (nanoseconds >= kSecondNs) {
    return fmt::format("{:.1f} s", static_cast<double>(nanoseconds) / 1e9);
  }
  return fmt::format("{} ms", nanoseconds / kMillisecondNs);
}

std::string Place(std::string_view function, std::string_view file, int32_t line) {
  if (file.empty()) {
    return "";
  }
  std::string text = fmt::format("{}:{}", BaseName(file), line);
  if (!function.empty() && function != "<module>") {
    text += fmt::format(" ({})", function);
  }
  return text;
}

std::string Place(const JobView& view, uint32_t site) {
  return Place(view.sites[site].function, view.sites[site].file, view.sites[site].line);
}

std::string GroupText(const GroupView& group) {
  if (group.description.empty() || group.description == "undefined") {
    return "group " + group.name;
  }
  return group.description == "default_pg" ? group.description : fmt::format("{} ({})", group.description, group.name);
}

std::string Plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

CodeSite SiteOfEntry(const JobView& view, const Track& track, uint32_t entry, std::string role, std::string what) {
  CodeSite site;
  site.ranks = {track.rank};
  site.role = std::move(role);
  site.what = std::move(what);
  const evidence::FlightRecord& record = *view.ranks[track.rank_index].evidence->record;
  for (const evidence::FlightFrame& frame : record.stacks[record.entries[entry].stack]) {
    site.stack.push_back({record.texts[frame.function], record.texts[frame.file], frame.line});
    if (site.file.empty() && IsUserFile(site.stack.back().file)) {
      site.function = site.stack.back().function;
      site.file = site.stack.back().file;
      site.line = frame.line;
    }
  }
  return site;
}

CodeSite SiteOfCall(const JobView& view, const Track& track, const Call& call, std::string role, std::string what) {
  return SiteOfEntry(view, track, call.entry, std::move(role), std::move(what));
}

CodeSite SiteOfMain(const RankCondition& condition, int32_t rank, std::string role, std::string what) {
  const MainThread& main = condition.main;
  return {{rank}, std::move(role), std::move(what), main.function, main.file, main.line, main.frames};
}

CodeSite SiteOfError(const evidence::LogEvent& event, int32_t rank, std::string role, std::string what) {
  const evidence::StackFrame& frame = event.frame;
  CodeSite site = {{rank}, std::move(role), std::move(what), frame.function, frame.file, frame.line, {}};
  if (frame.line > 0) {
    site.stack = {frame};
  }
  return site;
}

bool WaitsForAny(const Wait& wait, const std::vector<int32_t>& ranks, bool perhaps) {
  const auto is_one = [&](int32_t rank) { return Has(ranks, rank); };
  return std::any_of(wait.waits_for.begin(), wait.waits_for.end(), is_one) ||
         (perhaps && std::any_of(wait.perhaps_waits.begin(), wait.perhaps_waits.end(), is_one));
}

void AddVictims(const Findings& findings, Verdict& verdict) {
  for (const Wait& wait : findings.waits.waits) {
    if (WaitsForAny(wait, verdict.culprit_ranks, true)) {
      const std::string operation = PlainNameOf(findings.view, *wait.track, wait.entry);
      AddSite(verdict.sites, SiteOfEntry(findings.view, *wait.track, wait.entry, "victim",
                                         wait.sequence ? fmt::format("waits in {} #{}", operation, *wait.sequence)
                                                       : "waits in " + operation));
    }
  }
}

void AddSite(std::vector<CodeSite>& sites, CodeSite site) {
  if (site.file.empty() && site.stack.empty()) {
    return;
  }
  for (CodeSite& known : sites) {
    if (known.role == site.role && known.what == site.what && known.file == site.file && known.line == site.line &&
        known.function == site.function) {
      known.ranks.insert(known.ranks.end(), site.ranks.begin(), site.ranks.end());
      std::sort(known.ranks.begin(), known.ranks.end());
      known.ranks.erase(std::unique(known.ranks.begin(), known.ranks.end()), known.ranks.end());
      return;
    }
  }
  sites.push_back(std::move(site));
}

std::string MainThreadText(const RankCondition& condition) {
  const MainThread& main = condition.main;
  const std::string place = Place(main.function, main.file, main.line);
  const std::string at = place.empty() ? "" : " at " + place;
  if (condition.stopped) {
    return "is stopped (state T)" + at;
  }
  switch (main.place) {
    case MainThreadPlace::kUnknown: return condition.disk_wait ? "is in an uninterruptible wait (state D)" : "";
    case MainThreadPlace::kCollective:
    case MainThreadPlace::kP2p:
      return "is in " + (main.operation_name.empty() ? std::string("communication") : main.operation_name) + at;
    case MainThreadPlace::kDeviceSync: return "waits for its device" + at;
    case MainThreadPlace::kStoreWait:
      return "waits for the store" + (main.operation_name.empty() ? "" : " in " + main.operation_name) + at;
    case MainThreadPlace::kRaised: return "has raised an exception";
    case MainThreadPlace::kExiting: return "is shutting down";
    case MainThreadPlace::kOutside: return "is " + (main.activity.empty() ? "busy" : main.activity) + at;
  }
  return "";
}

void FillGroup(const JobView& view, uint32_t group, Verdict& verdict) {
  verdict.group = view.groups[group].name;
  verdict.group_description = view.groups[group].description;
  verdict.group_ranks = view.groups[group].members;
}

std::vector<int32_t> Without(const std::vector<int32_t>& ranks, const std::vector<int32_t>& without) {
  std::vector<int32_t> rest;
  std::set_difference(ranks.begin(), ranks.end(), without.begin(), without.end(), std::back_inserter(rest));
  return rest;
}

bool Has(const std::vector<int32_t>& ranks, int32_t rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

}  // namespace lockstep::hang
