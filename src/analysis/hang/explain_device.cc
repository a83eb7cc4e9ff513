#include <fmt/format.h>

#include <algorithm>

#include "analysis/hang/record_age.h"
#include "analysis/hang/wording.h"

namespace lockstep::hang {

std::vector<Candidate> ExplainDeviceLag(const Findings& findings) {
  if (findings.lags.empty() || findings.went_on) {
    return {};
  }
  // A dump of a running job may show one rank one operation behind: not a stall, unless a rank waits or time has
  // passed.
  std::vector<const DeviceLag*> stalled;
  const auto lags = [&](int32_t rank) {
    return std::any_of(findings.lags.begin(), findings.lags.end(),
                       [&](const DeviceLag& lag) { return lag.rank == rank; });
  };
  bool others_wait = false;
  for (const Flight& flight : findings.waits.flights) {
    others_wait = others_wait ||
                  std::any_of(flight.open_on.begin(), flight.open_on.end(), [&](int32_t rank) { return !lags(rank); });
  }
  for (const DeviceLag& lag : findings.lags) {
    const std::optional<int64_t> age = OpenFor(findings, *lag.track, lag.entry);
    if (age ? *age > findings.patience_ns : lag.behind > 1 || !findings.waits.waits.empty() || others_wait) {
      stalled.push_back(&lag);
    }
  }
  if (stalled.empty()) {
    return {};
  }
  Candidate candidate;
  candidate.order = 20;
  Verdict& verdict = candidate.verdict;
  verdict.kind = VerdictKind::kDeviceStalled;
  const DeviceLag& first = *stalled.front();
  int64_t most = 0;
  for (const DeviceLag* lag : stalled) {
    verdict.culprit_ranks.push_back(lag->rank);
    most = std::max(most, lag->behind);
    AddSite(verdict.sites, SiteOfEntry(findings.view, *lag->track, lag->entry, "culprit",
                                       fmt::format("enqueued {} #{}, which its device has not {}",
                                                   PlainNameOf(findings.view, *lag->track, lag->entry), lag->sequence,
                                                   lag->has_not_begun() ? "begun" : "completed")));
  }
  FillGroup(findings.view, first.group, verdict);
  verdict.sequence = first.sequence;
  verdict.operation = PlainNameOf(findings.view, *first.track, first.entry);
  // A device that has not begun it may still be in an earlier kernel; one that has not completed what others have
  // completed is certainly behind.
  verdict.confidence = most > 1 ? 0.9 : first.has_not_begun() ? 0.8 : 0.65;
  std::vector<int32_t> victims = findings.waits.HeldUpBy(verdict.culprit_ranks);
  for (const DeviceLag* lag : stalled) {
    const std::vector<int32_t>& members = findings.view.groups[lag->group].members;
    victims.insert(victims.end(), members.begin(), members.end());
  }
  for (size_t rank = 0; rank < findings.waits.has_open.size(); ++rank) {
    if (findings.waits.has_open[rank] != 0) {
      victims.push_back(static_cast<int32_t>(rank));
    }
  }
  std::sort(victims.begin(), victims.end());
  victims.erase(std::unique(victims.begin(), victims.end()), victims.end());
  verdict.victim_ranks = Without(victims, verdict.culprit_ranks);
  verdict.explanation = fmt::format(
      "The {} of {} did not {} {} #{} of group {}, which {}: {} enqueued it, so the host made the call and the device "
      "does not {}.",
      verdict.culprit_ranks.size() == 1 ? "device" : "devices", Ranks(verdict.culprit_ranks),
      first.has_not_begun() ? "begin" : "complete", verdict.operation, first.sequence,
      GroupText(findings.view.groups[first.group]),
      first.has_not_begun() ? findings.view.groups[first.group].members.size() == 2
                                  ? "the other member's device has begun"
                                  : "most other members' devices have begun"
                            : fmt::format("the device of rank {} completed", first.ahead_rank),
      Ranks({first.rank}), first.has_not_begun() ? "get to it" : "run it or does not finish it");
  verdict.advice = {
      fmt::format("Look for Xid, ECC and NVLink errors on the GPUs of {} (dmesg, nvidia-smi -q, dcgmi diag).",
                  Ranks(verdict.culprit_ranks)),
      "If the GPUs are healthy, look for another kernel that blocks the stream: a custom op, or send and receive on "
      "the "
      "same stream."};
  return {candidate};
}

}  // namespace lockstep::hang
