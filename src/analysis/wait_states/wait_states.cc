#include "analysis/wait_states/wait_states.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/pass.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "analysis/rank_steps.h"
#include "analysis/wait_states/blame.h"
#include "analysis/wait_states/chain_text.h"
#include "analysis/wait_states/stretch_activity.h"
#include "analysis/wait_states/wait_plan.h"

namespace lockstep::analysis {

const char* WaitStateKindName(WaitStateKind kind) {
  switch (kind) {
    case WaitStateKind::kLateSender: return "late_sender";
    case WaitStateKind::kLateReceiver: return "late_receiver";
    case WaitStateKind::kWaitAtCollective: return "wait_at_collective";
  }
  return "wait_at_collective";
}

const char* RootCauseName(RootCause cause) {
  switch (cause) {
    case RootCause::kKernel: return "kernel";
    case RootCause::kCopy: return "copy";
    case RootCause::kLaunchDelay: return "launch_delay";
    case RootCause::kHost: return "host";
    case RootCause::kDataLoading: return "data_loading";
    case RootCause::kGarbageCollection: return "garbage_collection";
    case RootCause::kAllocator: return "allocator";
    case RootCause::kCheckpoint: return "checkpoint";
    case RootCause::kNothingRecorded: return "nothing_recorded";
    case RootCause::kSlowLink: return "slow_link";
  }
  return "host";
}

const char* WaitPatternName(WaitPattern pattern) {
  switch (pattern) {
    case WaitPattern::kChronic: return "chronic";
    case WaitPattern::kPeriodic: return "periodic";
    case WaitPattern::kOneOff: return "one_off";
    case WaitPattern::kIrregular: return "irregular";
  }
  return "irregular";
}

namespace {

struct WaitActivityPass {
  static constexpr std::string_view kName = "wait_activity";
  using Args = std::map<size_t, WaitRankTask>;  // By rank index.
  using Partial = WaitRankActivity;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& args) {
    const auto task = args.find(rank_index);
    return task != args.end() ? MapWaitActivity(shared, task->second, rank_index) : Partial();
  }
};

}  // namespace

void AddWaitStatePasses(RankPasses* passes) { passes->Add<WaitActivityPass>(); }

WaitStates ComputeWaitStates(const RunContext& shared, const Collectives& collectives) {
  const size_t rank_count = shared.run->ranks.size();
  std::vector<WaitRankFacts> facts;
  for (std::vector<model::Step>& steps : FindRankSteps(shared)) facts.push_back({std::move(steps)});
  const WaitPlan plan = PlanWaitStates(*shared.run, collectives, facts);
  std::map<size_t, WaitRankTask> tasks;
  std::vector<size_t> asked;
  for (size_t r = 0; r < rank_count; ++r) {
    if (plan.stretches[r].empty()) continue;
    tasks.emplace(r, MakeWaitRankTask(collectives, plan, r));
    asked.push_back(r);
  }
  std::vector<WaitRankActivity> measured = MapRanks<WaitActivityPass>(shared, tasks, asked);
  std::vector<WaitRankActivity> activity(rank_count);
  for (size_t i = 0; i < asked.size(); ++i) activity[asked[i]] = std::move(measured[i]);
  return FinishWaitStates(*shared.run, collectives, plan, activity);
}

namespace {

std::vector<RowColumn<WaitStateRow>> StateColumns() {
  using Row = WaitStateRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      NamedField<&Row::kind, WaitStateKindName>(
          "kind", "Scalasca's wait state: `late_sender`, `late_receiver` or `wait_at_collective`.",
          {"late_sender", "late_receiver", "wait_at_collective"}),
      Field<&Row::count>("count", "count", "Collectives or messages in which it waited."),
      Field<&Row::wait_ns>("wait_ns", "ns", "Its waiting in them, added up."),
  };
}

/// The window of the rank that caused it.
template <typename Row>
RowColumn<Row> FirstWindowColumn() {
  return {"window",
          ColumnType::kInteger,
          "",
          "0 for the first trace of this rank in time, 1 for the next, and so on.",
          "",
          [](const TableSource& source, const Row& row) {
            return Cell(int64_t{source.run.ranks[row.rank_indices.front()].window});
          }};
}

/// A chain, and the cause that it ends at.
struct CauseChain {
  const RootCauseRow* cause = nullptr;
  const WaitChain* chain = nullptr;
};

std::vector<RowColumn<WaitHop>> HopColumns() {
  using Row = WaitHop;
  const auto instance = [](const TableSource& source, const Row& row) {
    return &source.result.Get<Collectives>().instances[row.instance];
  };
  return {
      FieldAt<Row>(instance, Field<&CollectiveInstance::group>("group", "", "As in `data.collectives[]`.")),
      FieldAt<Row>(instance, Field<&CollectiveInstance::sequence>("sequence", "", "As there.")),
      FieldAt<Row>(instance, Field<&CollectiveInstance::name>("name", "", "As there.")),
      RankField<&Row::victim_rank_index>("rank", "Rank that waited here."),
      RankField<&Row::late_rank_index>("late_rank", "Rank it waited for."),
      Field<&Row::wait_ns>("wait_ns", "ns", "What it waited here."),
  };
}

std::vector<RowColumn<CauseChain>> ChainColumns() {
  using Row = CauseChain;
  const auto chain = [](const TableSource&, const Row& row) { return row.chain; };
  return {
      FieldAt<Row>(chain, RankField<&WaitChain::victim_rank_index>("rank", "Rank that waited.")),
      Field<&Row::chain, &WaitChain::wait_ns>("wait_ns", "ns", "All its waiting that goes back to the cause."),
      {"text", ColumnType::kText, "", "Its worst wait in words, link by link.", "",
       [](const TableSource& source, const Row& row) {
         return Cell(ChainText(source.run, source.result.Get<Collectives>(), *row.cause, *row.chain));
       }},
      ListField<Row>(
          [](const Row& row) -> const auto& { return row.chain->hops; },
          ObjectField("hops", "The same links; fields below.", "", HopColumns())),
  };
}

std::vector<CauseChain> ToldChains(const RootCauseRow& cause) {
  std::vector<CauseChain> chains;
  for (const WaitChain& chain : cause.chains) chains.push_back({&cause, &chain});
  return chains;
}

std::vector<RowColumn<RootCauseRow>> CauseColumns() {
  using Row = RootCauseRow;
  return {
      NamedField<&Row::cause, RootCauseName>(
          "cause",
          "What it was: `kernel`, `copy`, `launch_delay`, `host`, `data_loading`, `garbage_collection`, `allocator`, "
          "`checkpoint`, `nothing_recorded` or `slow_link`.",
          {"kernel", "copy", "launch_delay", "host", "data_loading", "garbage_collection", "allocator", "checkpoint",
           "nothing_recorded", "slow_link"}),
      RankField<&Row::rank_index>("rank", "Rank that began it.", "a slow link that no single rank has part in"),
      FirstWindowColumn<Row>(),
      In(ColumnPlace::kOnlyInJson, RankListField<&Row::rank_indices>(
                                       "ranks", "That rank, or the ranks among which a slow link is to be sought.")),
      Field<&Row::name>("name", "",
                        "Kernel, operator, range or call that took longest beyond the peers'; of a link its group.",
                        "nothing recorded"),
      Field<&Row::own_ns>("own_ns", "ns", "Its time in the worst stretch; of a link the slowest transfer."),
      Field<&Row::peers_ns>("peers_ns", "ns", "The peers' median of the same."),
      Field<&Row::direct_wait_ns>("direct_wait_ns", "ns",
                                  "Waiting of others for this rank itself; of a link, members x excess transfer."),
      Field<&Row::propagated_wait_ns>("propagated_wait_ns", "ns",
                                      "Waiting for ranks that were late because they waited for this one."),
      Field<&Row::wait_ratio>(
          "wait_ratio", "0..1",
          "Both together / all waiting of the job, at most 1: a slow link's transfers can outweigh all waiting.",
          "not finite"),
      Field<&Row::collective_count>("collective_count", "count",
                                    "Collectives and messages in which a rank waited because of it."),
      Field<&Row::delay_ns>("delay_ns", "ns", "What the rank lost by it, over `steps`: those in which it showed."),
      NamedField<&Row::pattern, WaitPatternName>(
          "pattern", "In which steps it showed: `chronic`, `periodic`, `one_off` or `irregular`.",
          {"chronic", "periodic", "one_off", "irregular"}),
      Field<&Row::period_steps>("period_steps", "steps", "Every so-many-th step.", "not periodic"),
      Field<&Row::step_count>("step_count", "count", "Steps that were looked at; 0 without steps."),
      In(ColumnPlace::kNotInCsv, ListField<&Row::steps>("steps", "", "Numbers of the steps in which it showed.")),
      {"text", ColumnType::kText, "", "The cause in words.", "",
       [](const TableSource& source, const Row& row) { return Cell(CauseText(source.run, row)); },
       ColumnPlace::kOnlyInJson},
      In(ColumnPlace::kOnlyInJson,
         ListField<Row>(
             ToldChains,
             ObjectField("chains", "How it reached other ranks, most waiting first, at most 8; fields below.", "",
                         ChainColumns()))),
  };
}

std::vector<RowColumn<WaitCulprit>> CulpritColumns() {
  using Row = WaitCulprit;
  return {
      RankField<&Row::rank_index>("rank", "Rank that is behind it.", "a slow link that no single rank has part in"),
      FirstWindowColumn<Row>(),
      In(ColumnPlace::kNotInCsv,
         RankListField<&Row::rank_indices>("ranks", "That rank, or those among which a slow link is to be sought.")),
      JoinedInCsv<Row>("ranks",
                       [](const TableSource& source, const Row& row) {
                         std::string text;
                         for (const size_t rank_index : row.rank_indices) {
                           text +=
                               fmt::format("{}{}", text.empty() ? "" : " ", source.run.ranks[rank_index].rank.value);
                         }
                         return text;
                       }),
      In(ColumnPlace::kOnlyInJson,
         ListField<&Row::causes>("causes", "", "Places in `data.wait_states.causes`, from 0, largest waiting first.")),
      {"cause", ColumnType::kText, "", "Its largest first cause, as in `root_causes`.", "",
       [](const TableSource& source, const Row& row) {
         return Cell(std::string(RootCauseName(source.result.Get<WaitStates>().causes[row.causes.front()].cause)));
       },
       ColumnPlace::kNotInJson},
      Field<&Row::wait_ns>("wait_ns", "ns", "Waiting that its causes began, direct and passed on."),
      Field<&Row::wait_ratio>(
          "wait_ratio", "0..1",
          "`wait_ns` / all waiting of the job, at most 1: a slow link's transfers can outweigh all waiting.",
          "not finite"),
      Field<&Row::chance>("chance", "0..1",
                          "How often, at most, a job whose ranks are alike shows one as much; 0 for a link."),
      Field<&Row::delay_ns>("delay_ns", "ns", "What it lost by its causes."),
  };
}

}  // namespace

Pass WaitStatesPass() {
  constexpr TableOrder kOrder = TableOrder::kVerdicts;
  return RunPass<WaitStates>(
      {.question = "What made the others wait first of all, and on which rank?",
       .needs = {"collectives"},
       .tables = {DeclareTable("wait_states", "wait_states", "Waiting of each rank by kind of wait state",
                               &WaitStates::rows, StateColumns(), {"wait_states.states[]", kOrder}),
                  DeclareTable("root_causes", "root_causes", "What made ranks wait first of all, most waiting first",
                               &WaitStates::causes, CauseColumns(), {"wait_states.causes[]", kOrder}),
                  DeclareTable("culprits", "culprits",
                               "The ranks and links that cause more waiting than chance explains, and are named for it "
                               "(metrics.md#who-is-named); most waiting first",
                               &WaitStates::culprits, CulpritColumns(), {"wait_states.culprits[]", kOrder})}},
      [](PassContext& context) { return ComputeWaitStates(context.shared(), context.Get<Collectives>()); });
}

}  // namespace lockstep::analysis
