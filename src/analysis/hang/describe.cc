#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

std::vector<const Wait*> WaitsIn(const Findings& findings, int32_t rank, uint32_t group) {
  std::vector<const Wait*> found;
  for (const uint32_t index : findings.waits.of_rank[static_cast<size_t>(rank)]) {
    if (findings.waits.waits[index].group == group) {
      found.push_back(&findings.waits.waits[index]);
    }
  }
  return found;
}

RankInGroup PlaceOf(const Findings& findings, uint32_t g, const Track& track, bool has_p2p) {
  RankInGroup place;
  place.rank = track.rank;
  const bool status = track.on_device && !has_p2p;
  if (track.issued_exact || track.issued_upto > 0) {
    place.last_enqueued = track.issued_upto;
  }
  place.last_started = status ? track.last_started : std::nullopt;
  if (status && track.last_completed) {
    place.last_completed = track.last_completed;
  }
  for (auto call = track.calls.rbegin(); call != track.calls.rend(); ++call) {
    if (call->done) {
      place.last_completed = std::max(place.last_completed.value_or(0), call->sequence);
      break;
    }
  }
  if (!place.last_completed && !track.calls.empty() && track.calls.front().sequence == 1) {
    place.last_completed = 0;
  }
  if (!track.calls.empty() && !findings.view.ranks[track.rank_index].active_only) {
    place.oldest_retained = track.calls.front().sequence;
  }
  uint32_t open = kNone;
  for (const Call& call : track.calls) {
    if (!call.done) {
      open = call.entry;
      break;
    }
  }
  for (const P2pCall& call : track.p2p) {
    if (!call.done && call.entry < open) {
      open = call.entry;
      break;
    }
  }
  for (const Wait* wait : WaitsIn(findings, track.rank, g)) {
    place.waits_for.insert(place.waits_for.end(), wait->waits_for.begin(), wait->waits_for.end());
    place.waits_for.insert(place.waits_for.end(), wait->perhaps_waits.begin(), wait->perhaps_waits.end());
    open = std::min(open, wait->entry);
  }
  std::sort(place.waits_for.begin(), place.waits_for.end());
  place.waits_for.erase(std::unique(place.waits_for.begin(), place.waits_for.end()), place.waits_for.end());
  if (open != kNone) {
    place.open_operation = PlainNameOf(findings.view, track, open);
    const int64_t created = findings.view.EntryOf(track, open).created_unix_ns;
    if (created != evidence::kNotRecorded) {
      place.open_since_unix_ns = created;
    }
  }
  return place;
}

void DescribeGroups(const Findings& findings, Diagnosis& diagnosis) {
  for (uint32_t g = 0; g < findings.view.groups.size(); ++g) {
    const GroupView& group = findings.view.groups[g];
    GroupState state;
    state.name = group.name;
    state.description = group.description;
    state.members = group.members;
    state.members_inferred = group.members_inferred;
    const bool has_p2p =
        std::any_of(group.tracks.begin(), group.tracks.end(), [](const Track& track) { return !track.p2p.empty(); });
    for (const Track& track : group.tracks) {
      state.ranks.push_back(PlaceOf(findings, g, track, has_p2p));
    }
    diagnosis.groups.push_back(std::move(state));
  }
  const auto is_number = [](const std::string& name) {
    return !name.empty() && name.size() < 18 && name.find_first_not_of("0123456789") == std::string::npos;
  };
  std::stable_sort(diagnosis.groups.begin(), diagnosis.groups.end(), [&](const GroupState& a, const GroupState& b) {
    if (is_number(a.name) && is_number(b.name)) {
      return std::stoll(a.name) < std::stoll(b.name);
    }
    return a.name < b.name;
  });
}

std::string Doing(const Findings& findings, int32_t rank) {
  const RankCondition& condition = findings.conditions[static_cast<size_t>(rank)];
  if (condition.signal != 0 || condition.gone) {
    return condition.finished ? "has ended" : "is gone";
  }
  if (condition.raised) {
    return "has raised an exception";
  }
  const std::string main = condition.main.dumps_itself ? "" : MainThreadText(condition);
  const auto& waits = findings.waits.of_rank[static_cast<size_t>(rank)];
  if (!waits.empty() && !condition.stopped) {
    const Wait& wait = findings.waits.waits[waits.front()];
    const std::string place = Place(findings.view, wait.site);
    return fmt::format("waits in {}{} of {}{}", PlainNameOf(findings.view, *wait.track, wait.entry),
                       wait.sequence ? fmt::format(" #{}", *wait.sequence) : "",
                       GroupText(findings.view.groups[wait.group]), place.empty() ? "" : ", " + place);
  }
  return main;
}

void DescribeRanks(const Findings& findings, Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  const bool measured = findings.arrival.span_ns > 0;
  for (const RankView& view : findings.view.ranks) {
    const auto index = static_cast<size_t>(view.rank);
    RankState state;
    state.rank = view.rank;
    if (view.evidence != nullptr) {
      state.host = view.evidence->host;
      state.pid = view.evidence->pid;
      state.liveness = view.evidence->liveness;
      state.has_stacks = !view.evidence->stacks.empty();
      state.has_log = !view.evidence->log_file.empty() || !view.evidence->log.empty();
    }
    if (findings.conditions[index].gone) {
      state.liveness = evidence::Liveness::kGone;
    }
    state.has_record = view.has_record;
    const bool known = view.has_record || state.has_stacks || state.has_log;
    state.role = Has(verdict.culprit_ranks, view.rank)  ? RankRole::kCulprit
                 : Has(verdict.victim_ranks, view.rank) ? RankRole::kVictim
                 : known                                ? RankRole::kUninvolved
                                                        : RankRole::kUnknown;
    state.doing = Doing(findings, view.rank);
    state.silent_since_unix_ns = view.newest_created_ns;
    const Arrival& arrival = findings.arrival.ranks[index];
    if (measured && arrival.calls > 0) {
      state.mean_lateness_ns = arrival.lateness_ns / arrival.calls;
    }
    diagnosis.ranks.push_back(std::move(state));
  }
}

using FrameKey = std::tuple<std::string, std::string, int32_t>;

void GroupStacks(const Findings& findings, Diagnosis& diagnosis) {
  std::map<std::vector<FrameKey>, StackGroup> groups;
  for (const RankView& view : findings.view.ranks) {
    if (view.evidence == nullptr) {
      continue;
    }
    const evidence::ThreadStack* main = FindMainThread(view.evidence->stacks);
    if (main == nullptr) {
      continue;
    }
    const std::vector<evidence::StackFrame>& frames = main->python.empty() ? main->native : main->python;
    std::vector<FrameKey> key;
    for (const evidence::StackFrame& frame : frames) {
      key.emplace_back(frame.function, frame.file, frame.line);
    }
    if (key.empty()) {
      continue;
    }
    StackGroup& group = groups[key];
    group.ranks.push_back(view.rank);
    if (group.frames.empty()) {
      group.frames = frames;
      group.source = main->source;
    }
  }
  for (auto& [key, group] : groups) {
    diagnosis.stacks.push_back(std::move(group));
  }
  std::stable_sort(diagnosis.stacks.begin(), diagnosis.stacks.end(), [](const StackGroup& a, const StackGroup& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() < b.ranks.size() : a.ranks.front() < b.ranks.front();
  });
}

}  // namespace

void DescribeJob(const Findings& findings, Diagnosis& diagnosis) {
  DescribeGroups(findings, diagnosis);
  DescribeRanks(findings, diagnosis);
  GroupStacks(findings, diagnosis);
}

}  // namespace lockstep::hang
