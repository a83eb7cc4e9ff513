#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/hang/unrecorded.h"
#include "analysis/hang/wording.h"

namespace lockstep::hang {
namespace {

constexpr size_t kMaxItems = 200;

void Add(Diagnosis& diagnosis, std::string source, std::vector<int32_t> ranks, std::string file, std::string fact,
         bool contradicts = false) {
  if (diagnosis.evidence.size() < kMaxItems) {
    diagnosis.evidence.push_back({std::move(source), std::move(ranks), std::move(file), std::move(fact), contradicts});
  }
}

/// Ranks that wait for the same in the same operation are one fact.
void AddWaits(const Findings& findings, Diagnosis& diagnosis) {
  struct Fact {
    std::vector<int32_t> ranks;
    std::string file;
  };
  std::map<std::string, Fact> facts;
  for (const Wait& wait : findings.waits.waits) {
    const std::string operation = DescribeCall(findings.view, *wait.track, wait.entry);
    std::string fact =
        fmt::format("issued {}{} of group {}", operation, wait.sequence ? fmt::format(" #{}", *wait.sequence) : "",
                    GroupText(findings.view.groups[wait.group]));
    if (!wait.waits_for.empty()) {
      fact += fmt::format("; {} did not", Ranks(wait.waits_for));
    }
    if (!wait.perhaps_waits.empty()) {
      fact += fmt::format("; the record of {} does not say", Ranks(wait.perhaps_waits));
    }
    if (wait.failed) {
      fact += ". It is marked as complete, but it cannot be: it failed";
    }
    Fact& known = facts[fact];
    known.ranks.push_back(wait.rank);
    if (known.file.empty()) {
      known.file = findings.view.ranks[static_cast<size_t>(wait.rank)].evidence->record_file;
    }
  }
  for (auto& [fact, of] : facts) {
    std::string text = Ranks(of.ranks);
    text[0] = 'R';
    Add(diagnosis, "flight_recorder", of.ranks, of.file, text + " " + fact + ".");
  }
}

void AddMismatches(const Findings& findings, Diagnosis& diagnosis) {
  for (const Mismatch& mismatch : findings.mismatches) {
    for (const std::vector<int32_t>& party : mismatch.parties) {
      const Track* track = findings.view.groups[mismatch.group].TrackOf(party.front());
      const Call* call = FindCall(*track, mismatch.sequence);
      const std::string place = Place(findings.view, call->site);
      std::string who = Ranks(party);
      who[0] = 'R';
      Add(diagnosis, "flight_recorder", party,
          findings.view.ranks[static_cast<size_t>(party.front())].evidence->record_file,
          fmt::format("{} called {} as #{} of group {}{}.", who, DescribeCall(findings.view, *track, call->entry),
                      mismatch.sequence, GroupText(findings.view.groups[mismatch.group]),
                      place.empty() ? "" : " at " + place));
    }
  }
}

void AddStacks(const Findings& findings, Diagnosis& diagnosis) {
  for (size_t i = 0; i < findings.conditions.size(); ++i) {
    const RankCondition& condition = findings.conditions[i];
    const auto rank = static_cast<int32_t>(i);
    if (condition.main.place == MainThreadPlace::kUnknown || condition.main.dumps_itself) {
      continue;
    }
    const bool culprit = Has(diagnosis.verdict.culprit_ranks, rank);
    if (!culprit && findings.conditions.size() > 16) {
      continue;  // Grouped stacks show them; the list is for what matters.
    }
    const evidence::RankEvidence& of = *findings.view.ranks[i].evidence;
    const bool communicates =
        condition.main.place == MainThreadPlace::kCollective || condition.main.place == MainThreadPlace::kP2p;
    const bool contradicts =
        (diagnosis.verdict.kind == VerdictKind::kStuckOutsideCollective && culprit && communicates) ||
        (diagnosis.verdict.kind == VerdictKind::kCrash && culprit && !condition.raised && !condition.gone);
    const evidence::ThreadStack* main = FindMainThread(of.stacks);
    Add(diagnosis, main != nullptr && main->python.empty() ? "native_stack" : "python_stack", {rank}, of.stacks_file,
        fmt::format("The main thread of rank {} {}.", rank, MainThreadText(condition)), contradicts);
    if (const evidence::ThreadStack* holder = culprit ? FindLockHolder(of.stacks) : nullptr) {
      Add(diagnosis, "python_stack", {rank}, of.stacks_file,
          fmt::format("The interpreter's lock of rank {} is held by thread {}.", rank,
                      holder->name.empty() ? std::to_string(holder->tid) : holder->name));
    }
  }
}

void AddProcesses(const Findings& findings, Diagnosis& diagnosis) {
  for (size_t i = 0; i < findings.conditions.size(); ++i) {
    const RankCondition& condition = findings.conditions[i];
    const auto rank = static_cast<int32_t>(i);
    const evidence::RankEvidence* of = findings.view.ranks[i].evidence;
    if (condition.stopped) {
      Add(diagnosis, "process", {rank}, "", fmt::format("The process of rank {} is stopped (state T).", rank));
    }
    if (condition.disk_wait) {
      Add(diagnosis, "process", {rank}, "",
          fmt::format("The process of rank {} is in state D: storage or a driver.", rank));
    }
    if (condition.gone) {
      Add(diagnosis, "process", {rank}, "",
          condition.absent ? fmt::format("No process of rank {} was found.", rank)
                           : fmt::format("The process of rank {} has ended{}.", rank,
                                         condition.signal != 0 ? fmt::format(" by signal {}", condition.signal) : ""));
    }
    if (of != nullptr && of->process && of->process->cpu_ns && of->process->window_ns > 0 &&
        Has(diagnosis.verdict.culprit_ranks, rank)) {
      Add(diagnosis, "process", {rank}, "",
          fmt::format("Rank {} used {} of processor time in {}.", rank, Seconds(*of->process->cpu_ns),
                      Seconds(of->process->window_ns)));
    }
  }
}

void AddLogs(const Findings& findings, Diagnosis& diagnosis) {
  size_t shown = 0;
  for (size_t i = 0; i < findings.conditions.size() && shown < 32; ++i) {
    const evidence::LogEvent* error = findings.conditions[i].first_error;
    if (error == nullptr) {
      continue;
    }
    ++shown;
    const auto rank = static_cast<int32_t>(i);
    Add(diagnosis, "log", {rank}, error->line == 0 ? error->file : fmt::format("{}:{}", error->file, error->line),
        fmt::format("First error of rank {}: {}", rank, error->text.substr(0, 300)),
        diagnosis.verdict.kind == VerdictKind::kHealthy);
  }
  const auto add_blame = [&](const evidence::LogEvent& event, const std::string& whose) {
    if (event.blamed_ranks.empty() || shown >= 48) return;
    ++shown;
    std::vector<int32_t> blamed = event.blamed_ranks;
    std::sort(blamed.begin(), blamed.end());
    const bool shared = std::any_of(blamed.begin(), blamed.end(),
                                    [&](int32_t rank) { return Has(diagnosis.verdict.culprit_ranks, rank); });
    Add(diagnosis, "log", blamed, event.line == 0 ? event.file : fmt::format("{}:{}", event.file, event.line),
        fmt::format("{} points to {}: {}", whose, Ranks(blamed), event.text.substr(0, 200)),
        !shared && !diagnosis.verdict.culprit_ranks.empty());
  };
  for (const evidence::RankEvidence& rank : findings.job->ranks) {
    for (const evidence::LogEvent& event : rank.log) add_blame(event, fmt::format("The log of rank {}", rank.rank));
  }
  for (const evidence::LogEvent& event : findings.job->log) add_blame(event, "A log");
}

void AddNccl(const Findings& findings, Diagnosis& diagnosis) {
  for (const evidence::NcclLogFinding& finding : findings.job->nccl) {
    if (finding.severity != "error" || finding.kind == "ras_stuck") continue;  // AddRas says that, by the job's ranks.
    const bool is_ras = finding.kind.starts_with("ras_");
    Add(diagnosis, is_ras ? "ras" : "nccl_log", finding.ranks,
        finding.line == 0 ? finding.file : fmt::format("{}:{}", finding.file, finding.line), finding.text);
  }
}

void AddLags(const Findings& findings, Diagnosis& diagnosis) {
  for (const DeviceLag& lag : findings.lags) {
    const std::string others = lag.has_not_begun() ? fmt::format("has not begun; on rank {} it has", lag.ahead_rank)
                                                   : fmt::format("is open; rank {} has completed {} more of that group",
                                                                 lag.ahead_rank, lag.behind);
    Add(diagnosis, "flight_recorder", {lag.rank},
        findings.view.ranks[static_cast<size_t>(lag.rank)].evidence->record_file,
        fmt::format("On rank {} {} #{} of group {} {}.", lag.rank, PlainNameOf(findings.view, *lag.track, lag.entry),
                    lag.sequence, GroupText(findings.view.groups[lag.group]), others));
  }
}

}  // namespace

void CollectEvidence(const Findings& findings, Diagnosis& diagnosis) {
  AddMismatches(findings, diagnosis);
  AddLags(findings, diagnosis);
  AddProcesses(findings, diagnosis);
  AddWaits(findings, diagnosis);
  AddStacks(findings, diagnosis);
  AddLogs(findings, diagnosis);
  AddRas(findings, diagnosis);
  AddNccl(findings, diagnosis);
  std::stable_sort(diagnosis.evidence.begin(), diagnosis.evidence.end(),
                   [](const EvidenceItem& a, const EvidenceItem& b) { return !a.contradicts && b.contradicts; });
}

void FindMissing(const Findings& findings, Diagnosis& diagnosis) {
  const JobView& view = findings.view;
  const bool settled =
      diagnosis.verdict.kind == VerdictKind::kHealthy || diagnosis.verdict.kind == VerdictKind::kStraggler;
  std::vector<evidence::MissingEvidence> stacks;
  std::vector<evidence::MissingEvidence> records;
  constexpr size_t kMost = 64;
  for (const RankView& rank : view.ranks) {
    const bool told =
        rank.evidence != nullptr && std::any_of(rank.evidence->missing.begin(), rank.evidence->missing.end(),
                                                [](const auto& missing) { return missing.what == "flight_recorder"; });
    if (!rank.has_record && !told && !findings.conditions[static_cast<size_t>(rank.rank)].gone &&
        records.size() < kMost) {
      records.push_back({rank.rank, rank.evidence == nullptr ? "" : rank.evidence->host, "flight_recorder",
                         "this rank has no dump",
                         "Set TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 before the job starts; of a "
                         "running job: lockstep hang --job ID"});
    }
    const bool no_stacks = rank.evidence == nullptr || rank.evidence->stacks.empty();
    const bool wanted =
        Has(diagnosis.verdict.culprit_ranks, rank.rank) || diagnosis.verdict.kind == VerdictKind::kUndecidable;
    if (no_stacks && wanted && !settled && !findings.conditions[static_cast<size_t>(rank.rank)].gone &&
        stacks.size() < kMost) {
      const std::string sign = rank.has_record ? SignOfUnrecorded(findings, rank.rank) : "";
      const bool awaited = Has(findings.waits.roots, rank.rank);
      evidence::MissingEvidence missing{
          rank.rank, rank.evidence == nullptr ? "" : rank.evidence->host, "python_stacks",
          awaited && !sign.empty() ? "others wait for it, and " + sign : "this rank has no stack",
          "lockstep hang --job ID, or py-spy dump --pid PID while the job hangs"};
      // Those that everything waits for first: theirs decide.
      stacks.insert(awaited ? stacks.begin() : stacks.end(), std::move(missing));
    }
  }
  const bool undecided = diagnosis.verdict.kind == VerdictKind::kUndecidable;
  std::vector<evidence::MissingEvidence>& all = diagnosis.missing;
  const auto append = [&all](const std::vector<evidence::MissingEvidence>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  if (!records.empty() && undecided && view.record_count == 0) {
    append(records);
    append(stacks);
  } else {
    append(stacks);
    append(records);
  }
  if (undecided && all.empty()) {
    all.push_back({std::nullopt, "", "log", "the records and stacks do not decide",
                   "Collect the ranks' logs, NCCL_DEBUG=INFO output and, with NCCL, the RAS status twice"});
  }
  append(findings.job->missing);
  for (const evidence::RankEvidence& rank : findings.job->ranks) {
    for (evidence::MissingEvidence missing : rank.missing) {
      missing.rank = missing.rank ? missing.rank : std::optional<int32_t>(rank.rank);
      all.push_back(std::move(missing));
    }
  }
}

}  // namespace lockstep::hang
