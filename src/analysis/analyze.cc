#include "analysis/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <any>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "analysis/alignment.h"
#include "analysis/collectives.h"
#include "analysis/critical_path/critical_path.h"
#include "analysis/findings.h"
#include "analysis/job_graph/rank_graph.h"
#include "analysis/kernel_kind.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "analysis/what_if/analyze_operations.h"
#include "analysis/what_if/job_levers.h"
#include "analysis/what_if/what_if.h"
#include "base/cpu_clock.h"

namespace lockstep::analysis {
namespace {

using CpuTimes = std::map<std::string, int64_t, std::less<>>;  // by pass

/// Runs one part of a pass: takes its time, and turns an exception into a ledger row, so that the other passes still
/// answer.
template <typename Body>
void Guard(std::string_view name, CpuTimes* cpu_ns, model::Ledger* ledger, Body body) {
  const int64_t begin_ns = ThreadCpuNs();
  try {
    body();
  } catch (const std::exception& error) {
    model::LedgerEntry entry;
    entry.code = "pass_failed";
    entry.severity = model::Severity::kError;
    entry.message = fmt::format("the pass '{}' stopped: {}", name, error.what());
    entry.advice = "its table is empty or incomplete; the other passes are not affected";
    ledger->Add(std::move(entry));
  }
  (*cpu_ns)[std::string(name)] += ThreadCpuNs() - begin_ns;
}

/// A pass's Partial with its pass, so that it finds its way into bytes and back.
struct NamedPartial {
  std::string pass;
  std::any value;
};

template <typename Archive>
void Fields(Archive& archive, NamedPartial& partial) {
  archive(partial.pass);
  const Pass* pass = FindPass(partial.pass);
  if (pass == nullptr || pass->map == nullptr) throw TeamError("the pass '" + partial.pass + "' asks no rank");
  if constexpr (Archive::kReads) {
    std::string bytes;
    archive(bytes);
    Result<std::any> value = pass->partial_from_bytes(bytes);
    if (!value) throw TeamError(value.error().ToString());
    partial.value = *std::move(value);
  } else {
    archive(pass->partial_to_bytes(partial.value));
  }
}

/// What the passes make of one rank.
struct RankAnswers {
  std::vector<NamedPartial> partials;
  int64_t step_count = 0;
  CpuTimes cpu_ns;
  std::vector<model::LedgerEntry> ledger;
};

/// A rank without device events is named: its breakdown is made of other things than the others', or of nothing.
void NoteMissingDeviceEvents(const RankContext& context, bool others_have_them, model::Ledger* ledger) {
  const model::RankTrace& trace = context.trace();
  if (trace.HasDeviceEvents()) return;
  bool has_cpu = false;
  for (const model::Track& track : trace.tracks) {
    has_cpu = has_cpu || (track.lane == model::Lane::kOperators && !track.events.empty());
  }
  if (has_cpu && !others_have_them) return;  // A CPU-only job: that is what was asked for.
  model::LedgerEntry entry;
  entry.code = "no_device_events";
  entry.rank = trace.rank.value;
  entry.message = has_cpu ? "no kernels, copies or sets, while other ranks have them; its time split counts CPU work"
                          : "neither device events nor CPU operators; its time split is empty, not idle";
  entry.advice = "record with ProfilerActivity.CUDA (or the device's own) and check that the profiler could attach";
  entry.source = trace.source;
  ledger->Add(std::move(entry));
}

struct RankQuestion {
  std::vector<std::string> passes;
  bool run_has_device_events = false;
};

struct RankAnswersPass {
  static constexpr std::string_view kName = "rank_answers";
  using Args = RankQuestion;
  using Partial = RankAnswers;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& args) {
    RankAnswers answers;
    model::Ledger ledger;
    RankContext context;
    Guard("context", &answers.cpu_ns, &ledger, [&] { context = MakeRankContext(shared, rank_index); });
    if (context.shared != nullptr) {
      answers.step_count = static_cast<int64_t>(context.steps.size());
      for (const std::string& name : args.passes) {
        const Pass* pass = FindPass(name);
        if (pass == nullptr || pass->map == nullptr) throw TeamError("asked for '" + name + "', which asks no rank");
        Guard(name, &answers.cpu_ns, &ledger, [&] { answers.partials.push_back({name, pass->map(context)}); });
      }
      NoteMissingDeviceEvents(context, args.run_has_device_events, &ledger);
    }
    answers.ledger = ledger.entries();
    return answers;
  }
};

/// First start to last end over the ranks of the first window, on the aligned clock; a rank whose clock is not known
/// counts with its own length.
int64_t JobSpan(const model::Run& run) {
  std::optional<int64_t> first_ns;
  std::optional<int64_t> last_ns;
  int64_t adrift_ns = 0;
  for (const model::RankTrace& rank : run.ranks) {
    if (rank.window != run.ranks.front().window || !rank.first_ns || !rank.last_ns) continue;
    if (model::IsAdrift(run.ranks.front(), rank)) {
      adrift_ns = std::max(adrift_ns, *rank.last_ns - *rank.first_ns);
      continue;
    }
    const int64_t rank_first_ns = rank.clock.ToRun(*rank.first_ns);
    const int64_t rank_last_ns = rank.clock.ToRun(*rank.last_ns);
    first_ns = std::min(first_ns.value_or(rank_first_ns), rank_first_ns);
    last_ns = std::max(last_ns.value_or(rank_last_ns), rank_last_ns);
  }
  return std::max(first_ns && last_ns ? *last_ns - *first_ns : 0, adrift_ns);
}

/// One analysis of a run by passes that were chosen.
class Analysis {
 public:
  Analysis(model::Run* run, const AnalysisOptions& options, std::vector<const Pass*> passes)
      : run_(run), passes_(std::move(passes)) {
    shared_.run = run;
    shared_.options = options;
  }

  AnalysisResult Run() {
    RunPart("context", [&] { ClassifyNames(); });
    shared_.is_communication.resize(run_->names.size());
    AskRanks();
    // Matching uses order and sequence only, so it can come before the clocks it is used to align.
    RunPart(Collectives::kPass, [&] { result_.Edit<Collectives>() = MatchCollectives(shared_); });
    RunPart("alignment", [&] { AlignClocks(result_.Get<Collectives>(), run_); });
    for (const Pass* pass : passes_) Finish(*pass);
    result_.job_span_ns = JobSpan(*run_);
    RunPart("findings", [&] { FindFindings(); });
    for (const Pass& pass : AllPasses()) {
      if (pass.info.kind == PassKind::kInternal || !finished_.contains(pass.info.name)) result_.Drop(pass.info.name);
    }
    run_->ledger.Append(std::move(ledger_));
    ListTimings();
    return std::move(result_);
  }

 private:
  template <typename Body>
  void RunPart(std::string_view name, Body body) {
    Guard(name, &cpu_ns_, &ledger_, body);
  }

  void ClassifyNames() {
    const DeviceNames device_names = FindDeviceNames(*run_, shared_.options.thread_count);
    shared_.is_communication = ClassifyCommunication(*run_, device_names, shared_.options.communication_kernels);
    if (auto note = NoteUnclaimedCollectives(*run_, device_names, shared_.is_communication)) {
      ledger_.Add(std::move(*note));
    }
  }

  /// Asks every rank for what the passes map, and keeps it by pass and rank index, so that the result does not depend
  /// on who finished first.
  void AskRanks() {
    RankQuestion question;
    for (const Pass* pass : passes_) {
      if (pass->map != nullptr) question.passes.emplace_back(pass->info.name);
    }
    question.run_has_device_events = std::any_of(run_->ranks.begin(), run_->ranks.end(),
                                                 [](const model::RankTrace& rank) { return rank.HasDeviceEvents(); });
    std::vector<RankAnswers> ranks = MapRanks<RankAnswersPass>(shared_, question);
    std::map<int32_t, int64_t> steps_by_rank;  // over the windows of a rank
    for (size_t i = 0; i < ranks.size(); ++i) {
      for (NamedPartial& partial : ranks[i].partials) {
        std::vector<std::any>& by_rank = partials_[partial.pass];
        by_rank.resize(ranks.size());
        by_rank[i] = std::move(partial.value);
      }
      for (const auto& [name, spent_ns] : ranks[i].cpu_ns) cpu_ns_[name] += spent_ns;
      for (model::LedgerEntry& entry : ranks[i].ledger) run_->ledger.Add(std::move(entry));
      steps_by_rank[run_->ranks[i].rank.value] += ranks[i].step_count;
    }
    for (const auto& entry : steps_by_rank) result_.step_count = std::max(result_.step_count, entry.second);
  }

  /// The pass's second half, after those that it needs.
  void Finish(const Pass& pass) {
    if (!finished_.insert(pass.info.name).second) return;
    for (const std::string_view need : pass.info.needs) Finish(*FindPass(need));
    std::vector<std::any> partials;
    if (const auto found = partials_.find(pass.info.name); found != partials_.end()) {
      partials = std::move(found->second);
    }
    if (pass.map != nullptr) partials.resize(run_->ranks.size());
    PassContext context(shared_, &result_, &ledger_);
    RunPart(pass.info.name, [&] { pass.finish(context, std::move(partials), &result_); });
  }

  void FindFindings() {
    result_.findings = ComputeFindings(shared_, result_);
    if (result_.Has<WhatIf>()) {
      TakeSimulatedGains(result_.Get<WhatIf>(), &result_.findings);
    } else if (result_.Has<CriticalPath>()) {
      model::Ledger unused;  // The pass has told what it could not join.
      TakeSimulatedGains(
          SimulateJob(*run_, result_.Get<Collectives>(), result_.Get<JobGraphs>().ranks, shared_.options.thread_count,
                      &unused, {.only = LeversOfFindings(result_.findings)}),
          &result_.findings);
    }
  }

  /// "context" and "alignment" first, then the passes in registry order, "findings" last.
  void ListTimings() {
    std::vector<std::string> order = {"context", "alignment"};
    for (const Pass& pass : AllPasses()) order.emplace_back(pass.info.name);
    order.emplace_back("findings");
    for (const std::string& name : order) {
      if (const auto found = cpu_ns_.find(name); found != cpu_ns_.end())
        result_.timings.push_back({name, found->second});
    }
  }

  model::Run* run_;
  std::vector<const Pass*> passes_;
  RunContext shared_;
  AnalysisResult result_;
  CpuTimes cpu_ns_;
  model::Ledger ledger_;  // Goes to the run's in the end, behind what the ranks have to tell.
  std::map<std::string, std::vector<std::any>, std::less<>> partials_;
  std::set<std::string_view> finished_;
};

}  // namespace

void AddRankAnswersPasses(RankPasses* passes) { passes->Add<RankAnswersPass>(); }

Result<AnalysisResult> Analyze(model::Run* run, const AnalysisOptions& options, const std::vector<std::string>& only) {
  if (run->operations) return AnalyzeOperations(run, options, only);
  ASSIGN_OR_RETURN(std::vector<const Pass*> passes, ResolvePasses(only, options.what_if ? "what_if" : ""));
  return Analysis(run, options, std::move(passes)).Run();
}

}  // namespace lockstep::analysis
