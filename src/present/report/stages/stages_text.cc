#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/median.h"
#include "model/stages/stage.h"
#include "present/report/format.h"
#include "present/report/section_writer.h"
#include "present/report/sparkline.h"
#include "present/report/stages/stages_report.h"
#include "present/report/text_page.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using frontier::Accounting;
using frontier::Answer;
using frontier::Doubt;
using frontier::Group;
using frontier::JobStages;
using frontier::MostCost;
using frontier::OverTime;
using frontier::StageAccount;
using frontier::StepAccount;
using frontier::Verdict;
using frontier::Window;
using model::Stage;
using rank_memory::Signal;

constexpr size_t kMostGroupRanks = 6;  // Pieces of their list.

/// Over `count` steps; 0 where there is none.
int64_t PerStep(int64_t ns, int64_t count) { return count > 0 ? ns / count : 0; }

std::string StageWords(Stage stage) {
  switch (stage) {
    case Stage::kCommunication: return "waiting for collectives";
    case Stage::kGarbageCollection: return "garbage collection";
    case Stage::kHostToDevice: return "copies to the device";
    case Stage::kOther: return "code that no stage covers";
    default: return StageName(stage);
  }
}

const char* NextOfStage(Stage stage) {
  switch (stage) {
    case Stage::kInput:
      return "give the DataLoader more workers or a longer prefetch_factor, and look at that rank's storage";
    case Stage::kHostToDevice: return "pin the batch's memory and copy with non_blocking=True";
    case Stage::kForward:
    case Stage::kBackward:
    case Stage::kOptimizer:
      return "capture a few steps and see what differs from the other ranks: its data's size, its clocks, its cores";
    case Stage::kCheckpoint: return "save asynchronously (torch.distributed.checkpoint.async_save), or more rarely";
    case Stage::kValidation: return "validate on all ranks alike, or more rarely";
    case Stage::kGarbageCollection: return "call gc.disable() and collect on all ranks in the same step";
    case Stage::kCommunication:
      return "see lockstep analyze of a capture: is it the network, or is too little overlapped?";
    case Stage::kOther: break;
  }
  return "name it with lockstep.trace(\"...\"), or capture a few steps";
}

/// The rank that spent most in the stage.
size_t WorstIdx(const StageAccount& stage) {
  return static_cast<size_t>(std::max_element(stage.rank_ns.begin(), stage.rank_ns.end()) - stage.rank_ns.begin());
}

int64_t MedianRankNs(const StageAccount& stage) {
  std::vector<int64_t> ns = stage.rank_ns;
  return ns.empty() ? 0 : LowerMedian(&ns);
}

std::string Steps(int64_t count) { return fmt::format("{} step{}", count, count == 1 ? "" : "s"); }

/// ", on the devices": whose passing through the steps was timed, where that is not the host.
std::string WhereTimed(const JobStages& job) {
  std::vector<int32_t> on_device;
  for (const model::RankStages& rank : job.ranks) {
    if (rank.has_device_times) on_device.push_back(rank.rank);
  }
  if (on_device.empty()) return "";
  if (on_device.size() == job.ranks.size()) return ", on the devices";
  return fmt::format(", of rank{} {} on the device{}", on_device.size() == 1 ? "" : "s",
                     RankList(on_device, kMostGroupRanks), on_device.size() == 1 ? "" : "s");
}

std::string StragglerSentence(const JobStages& job) {
  const Verdict& verdict = job.verdict;
  const Accounting& account = job.account;
  const int32_t rank = account.ranks[verdict.rank_idx];
  if (verdict.is_occasional) {
    const frontier::Cost& cost = account.At(verdict.stage).cost[verdict.rank_idx];
    return fmt::format(
        "Rank {} holds the job up now and then in {}: {} of all time, in {} of {}, most in step {} ({}).", rank,
        StageWords(verdict.stage), FormatPercent(verdict.cost_ratio), verdict.step_count, Steps(account.step_count),
        cost.largest_step, FormatDuration(cost.largest_ns));
  }
  return fmt::format("Rank {} costs the job {} of its time in {}: {} of each step of {}.", rank,
                     FormatPercent(verdict.cost_ratio), StageWords(verdict.stage),
                     FormatDuration(PerStep(verdict.cost_ns, account.step_count)),
                     FormatDuration(PerStep(account.total_ns, account.step_count)));
}

std::string UndecidedSentence(const JobStages& job) {
  switch (job.verdict.doubt) {
    case Doubt::kTooFewSteps:
      return fmt::format("Undecided: all ranks together have {}, and {} are needed.", Steps(job.account.step_count),
                         frontier::kLeastSteps);
    case Doubt::kOneRank: return "Undecided: one rank alone has nobody who waits for it.";
    case Doubt::kNoMeeting:
    case Doubt::kNone: break;
  }
  return "Undecided: no wait for a collective was seen, so that a rank which is behind may cost nobody anything.";
}

/// Stages, besides the verdict's, in which the straggler costs a fiftieth of the job's time or more.
std::vector<Stage> OtherSlowStages(const JobStages& job) {
  std::vector<Stage> slow;
  for (const Stage stage : model::kStages) {
    const int64_t cost_ns = job.account.At(stage).cost[job.verdict.rank_idx].ns;
    if (stage != job.verdict.stage && cost_ns > job.account.total_ns / 50) slow.push_back(stage);
  }
  return slow;
}

std::string AlsoSlow(const JobStages& job) {
  std::string names;
  for (const Stage stage : OtherSlowStages(job))
    names += fmt::format("{}{}", names.empty() ? "" : ", ", StageName(stage));
  return names.empty() ? "" : "; it is slow in " + names + " as well";
}

/// The straggler's stage among those that wait for it.
const StageAccount& ComparedWith(const JobStages& job) {
  return (job.group_idx ? job.groups[*job.group_idx].account : job.account).At(job.verdict.stage);
}

/// What the straggler costs a group in the verdict's stage.
int64_t CostTo(const JobStages& job, const Group& group) {
  const auto member = std::find(group.members.begin(), group.members.end(), job.verdict.rank_idx);
  if (member == group.members.end()) return 0;
  return group.account.At(job.verdict.stage).cost[static_cast<size_t>(member - group.members.begin())].ns;
}

/// "the others wait", "rank 2 of group tp waits", "rank 2 of group tp and rank 1 of group dp wait": groups that it
/// costs half as much as the one that it costs most, which comes first.
std::string WhoWaits(const JobStages& job) {
  if (!job.group_idx) return "the others wait";
  std::vector<std::pair<int64_t, const Group*>> waiting;
  const int64_t most_ns = CostTo(job, job.groups[*job.group_idx]);
  for (const Group& group : job.groups) {
    if (const int64_t cost_ns = CostTo(job, group); cost_ns > 0 && cost_ns >= most_ns / 2)
      waiting.emplace_back(cost_ns, &group);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  bool is_one = waiting.size() == 1;
  std::string text;
  for (const auto& [cost_ns, group] : waiting) {
    std::vector<int32_t> others = group->account.ranks;
    std::erase(others, job.account.ranks[job.verdict.rank_idx]);
    text += fmt::format("{}rank{} {} of group {}", text.empty() ? "" : " and ", others.size() == 1 ? "" : "s",
                        RankList(others, kMostGroupRanks), group->name);
    is_one = is_one && others.size() == 1;
  }
  return text + (is_one ? " waits" : " wait");
}

constexpr size_t kMostMemorySentences = 6;

const char* SignalWords(Signal signal) {
  switch (signal) {
    case Signal::kAllocated: return "allocated by PyTorch";
    case Signal::kReserved: return "held by PyTorch";
    case Signal::kResident: break;
  }
  return "process";
}

class TextReport : private SectionWriter {
 public:
  TextReport(const JobStages& job, const TextOptions& options, std::ostream& out)
      : SectionWriter(out, {.colour = options.colour, .unicode = options.unicode}, options.width, options.top == 0),
        job_(job),
        options_(options) {}

  void Write() {
    Paragraph(StagesSentence(job_), job_.verdict.answer == Answer::kEven ? Paint::kGood : Paint::kStrong);
    WriteWrapped(StagesWhy(job_), "  why   ", "        ", options_.width, out_);
    WriteWrapped(StagesNext(job_), "  next  ", "        ", options_.width, out_);
    WriteStages();
    WriteGroups();
    WriteOverTime();
    WriteMemory();
    WriteSteps();
    Ledger(job_.ledger);
    out_.flush();
  }

 private:
  void WriteStages() {
    const Accounting& account = job_.account;
    const int64_t count = account.step_count;
    if (count == 0) return;
    Section(fmt::format("Stages of a step ({} of {} rank{}, {} a step{})", Steps(count), account.ranks.size(),
                        account.ranks.size() == 1 ? "" : "s", FormatDuration(PerStep(account.total_ns, count)),
                        WhereTimed(job_)));
    TextTable table({{.header = "stage", .align = Align::kLeft},
                     {.header = "median rank"},
                     {.header = "slowest rank"},
                     {.header = "who", .drop = 2},
                     {.header = "of the job"},
                     {.header = "imbalance", .drop = 1},
                     {.header = "costs most", .align = Align::kLeft}});
    for (const Stage stage : model::kStages) {
      const StageAccount& each = account.At(stage);
      const size_t worst = WorstIdx(each);
      if (each.rank_ns[worst] == 0) continue;
      table.AddRow({StageName(stage), FormatDuration(PerStep(MedianRankNs(each), count)),
                    FormatDuration(PerStep(each.rank_ns[worst], count)), std::to_string(account.ranks[worst]),
                    FormatShare(each.frontier_ns, account.total_ns), FormatShare(each.imbalance_ns, account.total_ns),
                    CostWords(account, stage)});
    }
    table.Write(style_, options_.width, out_);
  }

  void WriteGroups() {
    if (job_.groups.empty()) return;
    Section(fmt::format("Process groups ({})", job_.groups.size()));
    TextTable table({{.header = "group", .align = Align::kLeft},
                     {.header = "ranks", .align = Align::kLeft},
                     {.header = "longest wait"},
                     {.header = "costs most", .align = Align::kLeft}});
    const std::vector<GroupRow> rows = GroupRows(job_);
    const size_t shown = Rows(rows.size(), options_.top);
    for (size_t i = 0; i < shown; ++i) table.AddRow({rows[i].name, rows[i].ranks, rows[i].wait, rows[i].cost});
    table.Write(style_, options_.width, out_);
    More(rows.size(), shown, "groups");
  }

  void WriteOverTime() {
    const OverTime& over_time = job_.over_time;
    if (over_time.windows.size() < 2) return;
    const std::vector<Window>& shown = options_.top == 0 ? over_time.windows : over_time.coarse;
    std::vector<int64_t> steps_ns;
    const bool has_room = static_cast<size_t>(std::max(options_.width - 2, 0)) >= over_time.windows.size();
    for (const Window& window : has_room ? over_time.windows : over_time.coarse) {
      steps_ns.push_back(PerStep(window.ns, window.step_count));
    }
    const auto [least, most] = std::minmax_element(steps_ns.begin(), steps_ns.end());
    Section(fmt::format("Steps over time ({} to {} a step)", FormatDuration(*least), FormatDuration(*most)));
    out_ << "  " << Sparkline(steps_ns, options_.width - 2, style_) << "\n";
    for (const std::string& sentence : ChangeSentences(job_)) WriteWrapped(sentence, "  ", "  ", options_.width, out_);
    TextTable table({{.header = "steps", .align = Align::kLeft},
                     {.header = "a step"},
                     {.header = "largest", .align = Align::kLeft},
                     {.header = "", .align = Align::kRight, .drop = 1},
                     {.header = "costs most", .align = Align::kLeft}});
    for (const Window& window : shown) {
      const std::string cost = window.cost_ns == 0
                                   ? ""
                                   : fmt::format("rank {} in {}: {}", job_.account.ranks[window.rank_idx],
                                                 StageName(window.cost_stage), FormatShare(window.cost_ns, window.ns));
      table.AddRow({StepRange(window), FormatDuration(PerStep(window.ns, window.step_count)),
                    StageName(window.largest_stage),
                    FormatShare(At(window.frontier_ns, window.largest_stage), window.ns), cost});
    }
    table.Write(style_, options_.width, out_);
  }

  void WriteMemory() {
    TextTable table({{.header = "memory", .align = Align::kLeft},
                     {.header = "median rank"},
                     {.header = "most"},
                     {.header = "who"},
                     {.header = "of all there is", .drop = 1}});
    for (const Signal signal : rank_memory::kSignals) {
      std::vector<int64_t> peaks;
      size_t most_idx = 0;
      for (size_t i = 0; i < job_.memory.ranks.size(); ++i) {
        const auto& use = job_.memory.ranks[i][static_cast<size_t>(signal)];
        if (!use) continue;
        if (peaks.empty() || use->peak_bytes > *std::max_element(peaks.begin(), peaks.end())) most_idx = i;
        peaks.push_back(use->peak_bytes);
      }
      if (peaks.empty()) continue;
      const int64_t most = *std::max_element(peaks.begin(), peaks.end());
      const model::RankMemory& rank = job_.ranks[most_idx].memory;
      const std::optional<int64_t>& all = signal == Signal::kResident ? rank.host_bytes : rank.device_bytes;
      table.AddRow({SignalWords(signal), FormatBytes(LowerMedian(&peaks)), FormatBytes(most),
                    std::to_string(job_.account.ranks[most_idx]), all ? FormatShare(most, *all) : ""});
    }
    if (table.empty()) return;
    Section("Memory at its most");
    table.Write(style_, options_.width, out_);
    const auto& findings = job_.memory.findings;
    const size_t shown = Rows(findings.size(), kMostMemorySentences);
    for (size_t i = 0; i < shown; ++i)
      WriteWrapped(MemorySentence(job_, findings[i]), "  ", "  ", options_.width, out_);
    More(findings.size(), shown, "findings");
  }

  void WriteSteps() {
    std::vector<StepAccount> steps = job_.account.steps;
    std::stable_sort(steps.begin(), steps.end(),
                     [](const StepAccount& a, const StepAccount& b) { return a.cost_ns > b.cost_ns; });
    std::erase_if(steps, [](const StepAccount& step) { return step.cost_ns == 0; });
    if (steps.empty()) return;
    Section("Steps in which one rank cost most");
    TextTable table({{.header = "step"},
                     {.header = "took"},
                     {.header = "cost"},
                     {.header = "rank"},
                     {.header = "stage", .align = Align::kLeft}});
    const size_t shown = Rows(steps.size(), options_.top);
    for (size_t i = 0; i < shown; ++i) {
      const StepAccount& step = steps[i];
      table.AddRow({std::to_string(step.number), FormatDuration(step.ns), FormatDuration(step.cost_ns),
                    std::to_string(job_.account.ranks[step.rank_idx]), StageName(step.stage)});
    }
    table.Write(style_, options_.width, out_);
  }

  const JobStages& job_;
  const TextOptions options_;
};

}  // namespace

std::string StagesSentence(const JobStages& job) {
  const Verdict& verdict = job.verdict;
  const int64_t step_ns = PerStep(verdict.cost_ns, job.account.step_count);
  switch (verdict.answer) {
    case Answer::kStraggler: return StragglerSentence(job);
    case Answer::kImbalance:
      return fmt::format("Ranks are unequal in {}, no single one of them: {} of the job's time, {} a step.",
                         StageWords(verdict.stage), FormatPercent(verdict.cost_ratio), FormatDuration(step_ns));
    case Answer::kStage:
      return fmt::format("All ranks alike spend {} of their time in {}: {} a step.", FormatPercent(verdict.cost_ratio),
                         StageWords(verdict.stage), FormatDuration(step_ns));
    case Answer::kEven: return "No rank holds the others up, and no stage but computing stands out.";
    case Answer::kUndecided: break;
  }
  return UndecidedSentence(job);
}

std::string CostWords(const Accounting& account, Stage stage) {
  const MostCost most = FindMostCost(account, stage);
  if (most.ns == 0) return "";
  return fmt::format("rank {}: {}", account.ranks[most.rank_idx], FormatShare(most.ns, account.total_ns));
}

std::vector<GroupRow> GroupRows(const JobStages& job) {
  std::vector<std::pair<MostCost, const Group*>> groups;
  for (const Group& group : job.groups) groups.emplace_back(FindMostCost(group.account), &group);
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first.ns > b.first.ns; });
  std::vector<GroupRow> rows;
  for (const auto& [most, group] : groups) {
    rows.push_back({.name = group->name + (group->is_pairwise ? " (one to one)" : ""),
                    .ranks = RankList(group->account.ranks, kMostGroupRanks),
                    .wait = FormatDuration(PerStep(*std::max_element(group->wait_ns.begin(), group->wait_ns.end()),
                                                   group->account.step_count))});
    if (most.ns == 0) continue;
    rows.back().cost = fmt::format("rank {} in {}: {}", group->account.ranks[most.rank_idx], StageName(most.stage),
                                   FormatShare(most.ns, group->account.total_ns));
  }
  return rows;
}

std::string StepRange(const Window& window) {
  if (window.first_step == window.last_step) return std::to_string(window.first_step);
  return fmt::format("{} to {}", window.first_step, window.last_step);
}

std::string StagesWhy(const JobStages& job) {
  const Verdict& verdict = job.verdict;
  const Accounting& account = job.account;
  const StageAccount& stage = account.At(verdict.stage);
  const int64_t count = account.step_count;
  switch (verdict.answer) {
    case Answer::kStraggler:
      return fmt::format("in {} of {} {} for it; its {} takes {} a step, the median rank's {}{}", verdict.step_count,
                         Steps(count), WhoWaits(job), StageName(verdict.stage),
                         FormatDuration(PerStep(stage.rank_ns[verdict.rank_idx], count)),
                         FormatDuration(PerStep(MedianRankNs(ComparedWith(job)), count)), AlsoSlow(job));
    case Answer::kImbalance:
      return fmt::format("rank {} takes {} a step, the median rank {}, and the others' turns come too",
                         account.ranks[WorstIdx(stage)], FormatDuration(PerStep(stage.rank_ns[WorstIdx(stage)], count)),
                         FormatDuration(PerStep(MedianRankNs(stage), count)));
    case Answer::kStage:
      return fmt::format("{} a step on the median rank, {} on the slowest",
                         FormatDuration(PerStep(MedianRankNs(stage), count)),
                         FormatDuration(PerStep(stage.rank_ns[WorstIdx(stage)], count)));
    case Answer::kEven: return "what ranks cost each other is spread over ranks and stages, as scheduling makes it";
    case Answer::kUndecided: break;
  }
  return "the times of stages alone cannot tell";
}

std::string StagesNext(const JobStages& job) {
  switch (job.verdict.answer) {
    case Answer::kStraggler:
      if (OtherSlowStages(job).size() >= 2)
        return "look at that rank's cores, clocks and neighbours: it is slow in all that it does";
      return NextOfStage(job.verdict.stage);
    case Answer::kStage:
      if (job.is_pipeline && job.verdict.stage == Stage::kCommunication)
        return "cut the batch into more micro-batches: a pipeline's ranks wait while it fills and empties";
      return NextOfStage(job.verdict.stage);
    case Answer::kImbalance: return NextOfStage(job.verdict.stage);
    case Answer::kEven: return "for the time inside the stages capture a few steps: lockstep capture, lockstep analyze";
    case Answer::kUndecided: break;
  }
  if (job.verdict.doubt == Doubt::kTooFewSteps) return "let it run on, and ask again";
  if (job.verdict.doubt == Doubt::kOneRank) return "give the files of all ranks";
  return "capture a few steps of two ranks (lockstep capture) and let lockstep analyze say who waits";
}

std::string MemorySentence(const JobStages& job, const rank_memory::Finding& finding) {
  using rank_memory::Kind;
  const std::string used = FormatBytes(finding.bytes);
  const std::string compared = FormatBytes(finding.compared_bytes);
  if (!finding.rank_idx) {
    return fmt::format("The processes of {} rank{} take up to {} on {}, {} of its memory.", finding.rank_count,
                       finding.rank_count == 1 ? "" : "s", used, Printable(finding.host), FormatPercent(finding.ratio));
  }
  const int32_t rank = job.account.ranks[*finding.rank_idx];
  const std::string what = finding.signal == Signal::kResident
                               ? fmt::format("Rank {}'s process", rank)
                               : fmt::format("What PyTorch has {} on rank {}",
                                             finding.signal == Signal::kAllocated ? "allocated" : "reserved", rank);
  switch (finding.kind) {
    case Kind::kImbalance:
      return fmt::format("{} takes {}, {} more than the median rank's {}.", what, used,
                         FormatPercent(finding.ratio - 1), compared);
    case Kind::kCreep:
      return fmt::format(
          "{} grows from each third of the run to the next: {}, {}, {}; {} an hour.", what, compared,
          FormatBytes((*job.memory.ranks[*finding.rank_idx][static_cast<size_t>(finding.signal)]->third_bytes)[1]),
          used, FormatBytes(static_cast<int64_t>(finding.bytes_per_hour)));
    case Kind::kPressure: break;
  }
  std::string text = fmt::format("{} takes up to {}", what, used);
  if (finding.compared_bytes > 0) text += fmt::format(", {} of its device's memory", FormatPercent(finding.ratio));
  if (finding.retry_count > 0) {
    text += fmt::format(", and {} time{} its cache was freed to make room", finding.retry_count,
                        finding.retry_count == 1 ? "" : "s");
  }
  return text + ".";
}

std::vector<std::string> ChangeSentences(const JobStages& job) {
  std::vector<std::string> sentences;
  for (const frontier::Change& change : job.over_time.changes) {
    std::string sentence = fmt::format("Steps {} took {} longer ({}, else {} a step)", StepRange(change.window),
                                       FormatPercent(change.ratio), FormatDuration(change.window.median_step_ns),
                                       FormatDuration(change.usual_step_ns));
    if (change.rank_idx) {
      sentence += fmt::format(": rank {} in {}", job.account.ranks[*change.rank_idx], StageWords(*change.stage));
    } else if (change.stage) {
      sentence += fmt::format(": {}, and no rank alone", StageWords(*change.stage));
    }
    sentences.push_back(sentence + ".");
  }
  return sentences;
}

void WriteStagesText(const JobStages& job, const TextOptions& options, std::ostream& out) {
  TextReport(job, options, out).Write();
}

}  // namespace lockstep::report
