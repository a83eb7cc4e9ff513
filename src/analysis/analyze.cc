#include "analysis/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "analysis/alignment.h"
#include "analysis/kernel_kind.h"
#include "analysis/parallelism/parallelism.h"
#include "analysis/pass_registry.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "analysis/what_if/analyze_operations.h"
#include "analysis/what_if/job_levers.h"
#include "base/cpu_clock.h"

namespace lockstep::analysis {
namespace {

/// What the passes that look at one rank alone make of it.
struct RankTables {
  BreakdownRow breakdown;
  std::vector<BreakdownRow> steps;
  std::vector<IdleRow> idle;
  IdleHostRow idle_host;
  std::vector<KernelRow> kernels;
  std::vector<OperatorRow> operators;
  std::vector<MemoryRow> memory;
  LaunchRow launch;
  std::vector<QueueRow> queues;
  RankGraphs graphs;
  std::optional<RangePath> range_path;
  ParallelismPartial parallelism;
  int64_t step_count = 0;
  std::map<std::string, int64_t, std::less<>> cpu_ns;  ///< By pass.
  std::vector<model::LedgerEntry> ledger;
};

/// Runs one pass: takes its time, and turns an exception into a ledger row, so that the other passes still answer.
template <typename Body>
void RunPass(std::string_view name, std::map<std::string, int64_t, std::less<>>* cpu_ns,
             std::vector<model::LedgerEntry>* ledger, Body body) {
  const int64_t begin_ns = ThreadCpuNs();
  try {
    body();
  } catch (const std::exception& error) {
    model::LedgerEntry entry;
    entry.code = "pass_failed";
    entry.severity = model::Severity::kError;
    entry.message = fmt::format("the pass '{}' stopped: {}", name, error.what());
    entry.advice = "its table is empty or incomplete; the other passes are not affected";
    ledger->push_back(std::move(entry));
  }
  (*cpu_ns)[std::string(name)] += ThreadCpuNs() - begin_ns;
}

using RankPass = void (*)(const RankContext&, RankTables*);

struct NamedRankPass {
  std::string_view name;
  RankPass run;
};

void MapCriticalPath(const RankContext& context, RankTables* tables) {
  tables->graphs = MapJobGraph(context);
  if (const auto& range = context.options().critical_path_range)
    tables->range_path = FindRangePath(context, range->name, range->instance);
}

constexpr NamedRankPass kRankPasses[] = {
    {"breakdown", [](const RankContext& c, RankTables* t) { ComputeBreakdown(c, &t->breakdown, &t->steps); }},
    {"idle", [](const RankContext& c, RankTables* t) { ComputeIdle(c, &t->idle, &t->idle_host); }},
    {"kernels", [](const RankContext& c, RankTables* t) { ComputeKernels(c, &t->kernels); }},
    {"operators", [](const RankContext& c, RankTables* t) { ComputeOperators(c, &t->operators); }},
    {"memory", [](const RankContext& c, RankTables* t) { ComputeMemory(c, &t->memory); }},
    {"launch", [](const RankContext& c, RankTables* t) { ComputeLaunch(c, &t->launch, &t->queues); }},
    {"critical_path", MapCriticalPath},
    {"groups", [](const RankContext& c, RankTables* t) { t->parallelism.traffic = MapTraffic(c); }},
    {"inference", [](const RankContext& c, RankTables* t) { t->parallelism.inference = MapInference(c); }},
    {"regions", [](const RankContext& c, RankTables* t) { t->parallelism.regions = MapRegions(c); }},
    {"counters", [](const RankContext& c, RankTables* t) { t->parallelism.counters = MapCounters(c); }},
    {"flops", [](const RankContext& c, RankTables* t) { t->parallelism.flops = MapFlops(c); }},
};

/// A rank without device events is named: its breakdown is made of other things than the others', or of nothing.
void NoteMissingDeviceEvents(const RankContext& context, bool others_have_them, RankTables* tables) {
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
  tables->ledger.push_back(std::move(entry));
}

RankTables AnalyzeRank(const RunContext& shared, size_t rank_index, const std::vector<std::string>& passes,
                       bool run_has_device_events) {
  RankTables tables;
  RankContext context;
  RunPass("context", &tables.cpu_ns, &tables.ledger, [&] { context = MakeRankContext(shared, rank_index); });
  if (context.shared == nullptr) return tables;
  tables.step_count = static_cast<int64_t>(context.steps.size());
  for (const NamedRankPass& pass : kRankPasses) {
    if (std::find(passes.begin(), passes.end(), pass.name) == passes.end()) continue;
    RunPass(pass.name, &tables.cpu_ns, &tables.ledger, [&] { pass.run(context, &tables); });
  }
  NoteMissingDeviceEvents(context, run_has_device_events, &tables);
  return tables;
}

struct RankTablesArgs {
  std::vector<std::string> passes;
  bool run_has_device_events = false;
};

struct RankTablesPass {
  static constexpr std::string_view kName = "rank_tables";
  using Args = RankTablesArgs;
  using Partial = RankTables;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& args) {
    return AnalyzeRank(shared, rank_index, args.passes, args.run_has_device_events);
  }
};

/// Every rank's tables, by rank index; what a rank yields depends on it alone.
std::vector<RankTables> AnalyzeRanks(const RunContext& shared, const std::vector<std::string>& passes) {
  const bool has_device_events = std::any_of(shared.run->ranks.begin(), shared.run->ranks.end(),
                                             [](const model::RankTrace& rank) { return rank.HasDeviceEvents(); });
  return MapRanks<RankTablesPass>(shared, {passes, has_device_events});
}

template <typename Row>
void MoveRows(std::vector<Row>* from, std::vector<Row>* to) {
  to->insert(to->end(), std::make_move_iterator(from->begin()), std::make_move_iterator(from->end()));
}

/// Puts the ranks' tables together in rank order, so that the result does not depend on who finished first.
void Collect(std::vector<RankTables> ranks, model::Run* run, AnalysisResult* result, std::vector<RankGraphs>* graphs,
             ParallelismPartials* parallelism, std::map<std::string, int64_t, std::less<>>* cpu_ns) {
  std::map<int32_t, int64_t> steps_by_rank;  // over the windows of a rank
  for (size_t i = 0; i < ranks.size(); ++i) {
    RankTables& tables = ranks[i];
    if (result->Has("breakdown")) {
      tables.breakdown.rank_index = i;
      result->breakdown.ranks.push_back(tables.breakdown);
      MoveRows(&tables.steps, &result->breakdown.steps);
    }
    if (result->Has("idle")) {
      tables.idle_host.rank_index = i;
      MoveRows(&tables.idle, &result->idle);
      result->idle_host.push_back(tables.idle_host);
    }
    MoveRows(&tables.kernels, &result->kernels);
    MoveRows(&tables.operators, &result->operators);
    MoveRows(&tables.memory, &result->memory);
    if (result->Has("launch") && run->ranks[i].HasDeviceEvents()) result->launch.push_back(tables.launch);
    MoveRows(&tables.queues, &result->queues);
    graphs->push_back(std::move(tables.graphs));
    if (tables.range_path) result->range_paths.push_back(std::move(*tables.range_path));
    tables.parallelism.traffic.rank_index = i;
    parallelism->Add(std::move(tables.parallelism));
    for (const auto& [name, spent_ns] : tables.cpu_ns) (*cpu_ns)[name] += spent_ns;
    for (model::LedgerEntry& entry : tables.ledger) run->ledger.Add(std::move(entry));
    steps_by_rank[run->ranks[i].rank.value] += tables.step_count;
  }
  for (const auto& entry : steps_by_rank) result->step_count = std::max(result->step_count, entry.second);
}

/// The second halves of the passes about parallelism: they read no events.
void FinishParallelism(const model::Run& run, ParallelismPartials partials, AnalysisResult* result,
                       std::map<std::string, int64_t, std::less<>>* cpu_ns, std::vector<model::LedgerEntry>* ledger) {
  const auto tables = std::make_shared<Parallelism>();
  result->parallelism = tables;
  if (result->Has("groups")) {
    RunPass("groups", cpu_ns, ledger, [&] {
      ProcessGroups groups = FinishGroups(run, partials.traffic);
      tables->groups = std::move(groups.rows);
      tables->group_operations = std::move(groups.operations);
    });
  }
  if (result->Has("ddp")) {
    RunPass("ddp", cpu_ns, ledger, [&] { tables->ddp = FinishDdp(run, partials.traffic, tables->groups); });
  }
  if (result->Has("fsdp")) {
    RunPass("fsdp", cpu_ns, ledger, [&] { tables->fsdp = FinishFsdp(run, partials.traffic, tables->groups); });
  }
  if (result->Has("pipeline")) {
    RunPass("pipeline", cpu_ns, ledger,
            [&] { tables->pipeline = FinishPipeline(run, partials.traffic, tables->groups); });
  }
  if (result->Has("moe")) {
    RunPass("moe", cpu_ns, ledger,
            [&] { tables->moe = FinishMoe(run, partials.traffic, tables->groups, result->collectives); });
  }
  if (result->Has("inference")) {
    RunPass("inference", cpu_ns, ledger, [&] {
      for (InferencePartial& rank : partials.inference) {
        MoveRows(&rank.rows, &tables->inference);
        if (rank.requests) tables->inference_requests.push_back(*rank.requests);
        MoveRows(&rank.recorded_requests, &tables->inference_requests);
      }
    });
  }
  if (result->Has("regions")) {
    RunPass("regions", cpu_ns, ledger, [&] {
      for (std::vector<RegionRow>& rank : partials.regions) MoveRows(&rank, &tables->regions);
      tables->region_balance = BalanceRegions(run, tables->regions);
    });
  }
  if (result->Has("counters")) {
    RunPass("counters", cpu_ns, ledger, [&] {
      for (std::vector<CounterRow>& rank : partials.counters) MoveRows(&rank, &tables->counters);
      tables->counter_balance = BalanceCounters(run, tables->counters);
    });
  }
  if (result->Has("flops")) {
    RunPass("flops", cpu_ns, ledger, [&] {
      for (FlopsPartial& rank : partials.flops) {
        if (rank.rank) tables->flops.push_back(std::move(*rank.rank));
        MoveRows(&rank.rows, &tables->flops_by_operator);
      }
    });
  }
  if (result->Has("measured_kernels")) {
    RunPass("measured_kernels", cpu_ns, ledger, [&] { tables->kernel_profiles = ComputeKernelProfiles(run); });
  }
}

/// Ranks of the first window by pipeline stage.
std::map<uint32_t, std::vector<size_t>> StagesOf(const model::Run& run, const AnalysisResult& result) {
  std::map<uint32_t, std::vector<size_t>> stages;
  for (const PipelineRow& row : ParallelismOf(result).pipeline) {
    if (run.ranks[row.rank_index].window == run.ranks.front().window) stages[row.stage].push_back(row.rank_index);
  }
  return stages;
}

/// First start to last end over the ranks of the first window, on the aligned clock; a rank whose clock nobody knows
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

/// "context" and "alignment" first, then the passes in registry order, "findings" last.
std::vector<PassTiming> ListTimings(const std::map<std::string, int64_t, std::less<>>& cpu_ns) {
  std::vector<std::string> order = {"context", "alignment"};
  for (const PassInfo& pass : Passes()) order.emplace_back(pass.name);
  order.emplace_back("findings");
  std::vector<PassTiming> timings;
  for (const std::string& name : order) {
    if (const auto found = cpu_ns.find(name); found != cpu_ns.end()) timings.push_back({name, found->second});
  }
  return timings;
}

}  // namespace

void AddRankTablesPasses(RankPasses* passes) { passes->Add<RankTablesPass>(); }

bool AnalysisResult::Has(std::string_view pass) const {
  return std::find(computed.begin(), computed.end(), pass) != computed.end();
}

Result<AnalysisResult> Analyze(model::Run* run, const AnalysisOptions& options, const std::vector<std::string>& only) {
  if (run->operations) return AnalyzeOperations(run, options, only);
  AnalysisResult result;
  ASSIGN_OR_RETURN(result.computed, ResolvePasses(only, options.what_if ? "what_if" : ""));
  if (!std::all_of(result.computed.begin(), result.computed.end(), AsksRanks)) FetchEvents(run);
  std::map<std::string, int64_t, std::less<>> cpu_ns;
  std::vector<model::LedgerEntry> ledger;

  RunContext shared;
  shared.run = run;
  shared.options = options;
  RunPass("context", &cpu_ns, &ledger, [&] {
    const DeviceNames device_names = FindDeviceNames(*run, options.thread_count);
    shared.is_communication = ClassifyCommunication(*run, device_names, options.communication_kernels);
    if (auto note = NoteUnclaimedCollectives(*run, device_names, shared.is_communication)) {
      ledger.push_back(std::move(*note));
    }
  });
  shared.is_communication.resize(run->names.size());
  std::vector<RankGraphs> graphs;
  ParallelismPartials parallelism;
  Collect(AnalyzeRanks(shared, result.computed), run, &result, &graphs, &parallelism, &cpu_ns);

  // Matching uses order and sequence only, so it can come before the clocks it is used to align.
  RunPass("collectives", &cpu_ns, &ledger, [&] { result.collectives = MatchCollectives(shared); });
  RunPass("alignment", &cpu_ns, &ledger, [&] { AlignClocks(result.collectives, run); });
  if (result.Has("collectives")) {
    RunPass("collectives", &cpu_ns, &ledger, [&] { TimeCollectives(*run, &result.collectives); });
  }
  FinishParallelism(*run, std::move(parallelism), &result, &cpu_ns, &ledger);
  if (result.Has("critical_path")) {
    RunPass("critical_path", &cpu_ns, &ledger, [&] {
      result.critical_path = FindCriticalPath(*run, result.collectives, graphs, options.thread_count);
      MoveRows(&result.critical_path.notes, &ledger);
    });
  }
  if (result.Has("what_if")) {
    RunPass("what_if", &cpu_ns, &ledger, [&] {
      result.what_if = SimulateJob(*run, result.collectives, graphs, options.thread_count, &run->ledger,
                                   {.speedup = options.what_if_speedup, .stages = StagesOf(*run, result)});
    });
  }
  if (result.Has("wait_states")) {
    RunPass("wait_states", &cpu_ns, &ledger,
            [&] { result.wait_states = ComputeWaitStates(shared, result.collectives); });
  }
  if (result.Has("stragglers")) {
    RunPass("stragglers", &cpu_ns, &ledger,
            [&] { result.stragglers = ComputeStragglers(shared, result.collectives, result.wait_states); });
  }
  if (result.Has("imbalance")) {
    RunPass("imbalance", &cpu_ns, &ledger,
            [&] { result.imbalance = ComputeImbalance(shared, result.breakdown, result.memory); });
  }
  result.job_span_ns = JobSpan(*run);
  RunPass("findings", &cpu_ns, &ledger, [&] {
    result.findings = ComputeFindings(shared, result);
    if (result.Has("what_if")) {
      TakeSimulatedGains(result.what_if, &result.findings);
    } else if (result.Has("critical_path")) {
      model::Ledger unused;  // The pass has told what it could not join.
      TakeSimulatedGains(SimulateJob(*run, result.collectives, graphs, options.thread_count, &unused,
                                     {.only = LeversOfFindings(result.findings)}),
                         &result.findings);
    }
  });
  if (!result.Has("collectives")) result.collectives = {};

  for (model::LedgerEntry& entry : ledger) run->ledger.Add(std::move(entry));
  result.timings = ListTimings(cpu_ns);
  return result;
}

}  // namespace lockstep::analysis
