#include <fmt/format.h>

#include "analysis/critical_path/critical_path.h"
#include "analysis/finding.h"
#include "analysis/imbalance.h"
#include "analysis/stragglers.h"
#include "analysis/wait_states/wait_states.h"
#include "present/query/rank_fields.h"
#include "present/query/tables.h"
#include "present/report/json_stream.h"

namespace lockstep::query {
namespace {

using analysis::CriticalPathRow;
using analysis::Finding;
using analysis::ImbalanceRow;
using analysis::RootCauseRow;
using analysis::StragglerRow;
using analysis::WaitCulprit;
using analysis::WaitStateRow;
using model::LedgerEntry;
using Type = ColumnType;

// An array as JSON text: what `write` adds to it.
template <typename Write>
std::string JsonArray(Write write) {
  report::JsonRow row;
  row.Key("").StartArray();
  write(row);
  row.EndArray();
  const std::string_view object = row.Finish();  // {"":[...]}
  return std::string(object.substr(4, object.size() - 5));
}

std::vector<Field<StragglerRow>> StragglerFields() {
  using Row = StragglerRow;
  return {
      RankField<Row>(),
      WindowField<Row>(),
      {{"collective_count", Type::kInteger, "count", "Complete synchronising collectives it took part in.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.collective_count); }},
      {{"last_count", Type::kInteger, "count", "Times it arrived last, beyond the clocks' uncertainty.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.last_count); }},
      {{"last_ratio", Type::kReal, "0..1", "`last_count` / `collective_count`.", "no collective"},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.last_ratio); }},
      {{"wait_ns", Type::kInteger, "ns", "Its own waiting for others.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.wait_ns); }},
      {{"wait_given_ns", Type::kInteger, "ns", "Waiting of all others where it was last.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.wait_given_ns); }},
      {{"delay_ns", Type::kInteger, "ns",
        "Time the job lost to it: its arrival less the second-last one, where it was last.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.delay_ns); }},
      {{"role", Type::kText, "",
        "`straggler`: it is named; `passes_on`: late since it waited for one that is; or `none`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(WaitRoleName(row.role)); }},
      {{"chronic", Type::kBoolean, "", "Named, and late in most steps, not in one.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Bool(row.chronic); }},
      {{"step_count", Type::kInteger, "count", "Steps that hold a collective of the rank; 0 without steps.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.step_count); }},
      {{"late_step_count", Type::kInteger, "count", "Those of them in which it caused more delay than any other rank.",
        ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.late_step_count); }},
      {{"worst_instance", Type::kInteger, "",
        "The collective with the most delay from it: `collective_instances.instance`.", "never last"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.worst_instance); }},
      {{"activities", Type::kJson, "",
        "What it did more of than its peers before it arrived, largest first: `cause`, `name`, `excess_ns`.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         out.Copy(JsonArray([&](report::JsonRow& json) {
           for (const analysis::LateActivity& activity : row.activities) {
             json.StartObject().Key("cause").Text(analysis::LateCauseName(activity.cause));
             json.Key("name").Text(activity.name).Key("excess_ns").Int(activity.excess_ns).EndObject();
           }
         }));
       }},
  };
}

std::vector<Field<WaitStateRow>> WaitStateFields() {
  using Row = WaitStateRow;
  return {
      RankField<Row>(),
      WindowField<Row>(),
      {{"kind", Type::kText, "", "`late_sender`, `late_receiver` or `wait_at_collective`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(WaitStateKindName(row.kind)); }},
      {{"count", Type::kInteger, "count", "Collectives or messages in which it waited.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.count); }},
      {{"wait_ns", Type::kInteger, "ns", "Its waiting in them, added up.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.wait_ns); }},
  };
}

std::vector<Field<RootCauseRow>> RootCauseFields() {
  using Row = RootCauseRow;
  return {
      {{"cause", Type::kText, "",
        "`kernel`, `copy`, `launch_delay`, `host`, `data_loading`, `garbage_collection`, `allocator`, `checkpoint`, "
        "`nothing_recorded` or `slow_link`.",
        ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(RootCauseName(row.cause)); }},
      {{"rank", Type::kInteger, "", "Rank that began it.", "a slow link that no single rank has part in"},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Optional(row.rank_index ? std::optional(source.rank(*row.rank_index).rank.value) : std::nullopt);
       }},
      {{"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Int(source.rank(row.rank_indices.front()).window);
       }},
      {{"name", Type::kText, "",
        "Kernel, operator, range or call that took longest beyond the peers'; of a link its "
        "group.",
        "nothing recorded"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.name); }},
      {{"own_ns", Type::kInteger, "ns", "Its time in the worst stretch; of a link the slowest transfer.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.own_ns); }},
      {{"peers_ns", Type::kInteger, "ns", "The peers' median of the same.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.peers_ns); }},
      {{"direct_wait_ns", Type::kInteger, "ns", "Waiting of others for this rank itself.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.direct_wait_ns); }},
      {{"propagated_wait_ns", Type::kInteger, "ns", "Waiting for ranks that were late because they waited for it.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.propagated_wait_ns); }},
      {{"wait_ratio", Type::kReal, "0..1", "Both together / all waiting of the job, at most 1.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.wait_ratio); }},
      {{"collective_count", Type::kInteger, "count", "Collectives and messages in which somebody waited for it.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.collective_count); }},
      {{"delay_ns", Type::kInteger, "ns", "What the rank lost by it, over the steps in which it showed.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.delay_ns); }},
      {{"pattern", Type::kText, "", "`chronic`, `periodic`, `one_off` or `irregular`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(WaitPatternName(row.pattern)); }},
      {{"period_steps", Type::kInteger, "steps", "Every so-many-th step.", "not periodic"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.period_steps); }},
      {{"step_count", Type::kInteger, "count", "Steps that were looked at.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.step_count); }},
      {{"steps", Type::kJson, "", "Numbers of the steps in which it showed.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Copy(fmt::format("[{}]", fmt::join(row.steps, ","))); }},
  };
}

std::vector<Field<WaitCulprit>> CulpritFields() {
  using Row = WaitCulprit;
  return {
      {{"rank", Type::kInteger, "", "Rank that is behind it.", "a slow link that no single rank has part in"},
       [](const Source& source, const Row& row, CellOut& out) {
         row.rank_index ? out.Int(source.rank(*row.rank_index).rank.value) : out.Null();
       }},
      {{"window", Type::kInteger, "", "0 for the first trace of this rank in time, 1 for the next, and so on.", ""},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Int(source.rank(row.rank_indices.front()).window);
       }},
      {{"ranks", Type::kJson, "", "That rank, or those among which a slow link is to be sought.", ""},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Copy(JsonArray([&](report::JsonRow& array) {
           for (const size_t rank_index : row.rank_indices) array.Int(source.rank(rank_index).rank.value);
         }));
       }},
      {{"cause", Type::kText, "", "Its largest first cause, as in `root_causes`.", ""},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Static(RootCauseName(source.result().Get<analysis::WaitStates>().causes[row.causes.front()].cause));
       }},
      {{"wait_ns", Type::kInteger, "ns", "Waiting that its causes began, direct and passed on.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.wait_ns); }},
      {{"wait_ratio", Type::kReal, "0..1", "`wait_ns` / all waiting of the job, at most 1.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.wait_ratio); }},
      {{"chance", Type::kReal, "0..1", "How often, at most, a job whose ranks are alike shows one as much; 0: a link.",
        ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.chance); }},
      {{"delay_ns", Type::kInteger, "ns", "What it lost by its causes.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.delay_ns); }},
  };
}

std::vector<Field<ImbalanceRow>> ImbalanceFields() {
  using Row = ImbalanceRow;
  return {
      {{"quantity", Type::kText, "", "What is compared: `compute_ns`, `busy_ns`, `peak_allocated_bytes`, ...", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.quantity); }},
      {{"mean", Type::kReal, "the quantity's", "Mean over ranks.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.mean); }},
      {{"min", Type::kReal, "the quantity's", "Smallest.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.min); }},
      {{"max", Type::kReal, "the quantity's", "Largest.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Real(row.max); }},
      {{"ratio", Type::kReal, "", "`max` / `mean` - 1; 0 = balanced.", "the mean is 0"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.ratio); }},
      {{"min_rank", Type::kInteger, "", "Rank with the smallest.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(source.rank(row.min_rank_index).rank.value); }},
      {{"max_rank", Type::kInteger, "", "Rank with the largest.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(source.rank(row.max_rank_index).rank.value); }},
  };
}

std::vector<Field<Finding>> FindingFields() {
  using Row = Finding;
  return {
      {{"id", Type::kText, "",
        "Stable name: `straggler`, `exposed_communication`, `host_bound`, ... (metrics.md#findings).", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.id); }},
      {{"severity", Type::kText, "", "`info`, `warning` or `critical`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(analysis::FindingSeverityName(row.severity)); }},
      {{"ranks", Type::kJson, "", "Ranks concerned, worst first; `[]` = the whole job.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Copy(fmt::format("[{}]", fmt::join(row.ranks, ","))); }},
      {{"title", Type::kText, "", "One sentence.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.title); }},
      {{"evidence", Type::kJson, "", "The numbers behind it: `name`, `value`, `text`.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         out.Copy(JsonArray([&](report::JsonRow& json) {
           for (const analysis::Evidence& evidence : row.evidence) {
             json.StartObject().Key("name").Text(evidence.name).Key("value").Double(evidence.value);
             json.Key("text").Text(evidence.text).EndObject();
           }
         }));
       }},
      {{"advice", Type::kJson, "", "What to do, first thing first.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         out.Copy(JsonArray([&](report::JsonRow& json) {
           for (const std::string& advice : row.advice) json.Text(advice);
         }));
       }},
      {{"gain_ns_per_step", Type::kInteger, "ns",
        "Upper bound on what the fix saves per step; per window without steps.", "not known"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.gain_ns_per_step); }},
      {{"gain_ratio", Type::kReal, "0..1",
        "The same / the step that it was reckoned with: the mean of the ranks', or the simulated one.", "not known"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.gain_ratio); }},
  };
}

std::vector<Field<LedgerEntry>> LedgerFields() {
  using Row = LedgerEntry;
  return {
      {{"code", Type::kText, "", "Stable name (json.md, codes of the ledger).", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.code); }},
      {{"severity", Type::kText, "", "`info`, `warning` or `error`; an `error` means that something is missing.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(model::SeverityName(row.severity)); }},
      {{"source", Type::kText, "", "File, and member of an archive.", "concerns the whole run"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.source); }},
      {{"rank", Type::kInteger, "", "Rank.", "not known, or the whole run"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.rank); }},
      {{"byte_offset", Type::kInteger, "bytes", "Where it was seen first, in the unpacked JSON.", "no place"},
       [](const Source&, const Row& row, CellOut& out) { out.Optional(row.byte_offset); }},
      {{"count", Type::kInteger, "count", "How often.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.count); }},
      {{"message", Type::kText, "", "What was seen.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(row.message); }},
      {{"advice", Type::kText, "", "What to do.", "nothing to do"},
       [](const Source&, const Row& row, CellOut& out) { out.StaticOrNull(row.advice); }},
  };
}

std::vector<Field<CriticalPathRow>> CriticalPathFields() {
  using Row = CriticalPathRow;
  return {
      RankField<Row>(),
      WindowField<Row>(),
      {{"step", Type::kInteger, "", "Number of the step; 0 where the traces mark no steps.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.step); }},
      {{"category", Type::kText, "",
        "`host`, `data_loader`, `compute`, `copy`, `transfer`, `launch`, `kernel_gap` or `delay`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Static(graph::EdgeKindName(row.kind)); }},
      {{"name", Type::kText, "", "Operator, call or kernel.", "nobody's: gaps, delays, launches"},
       [](const Source& source, const Row& row, CellOut& out) { out.StaticOrNull(source.run().names[row.name]); }},
      {{"path_ns", Type::kInteger, "ns", "Time on the step's critical path.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Int(row.path_ns); }},
  };
}

template <typename Row>
void AddTable(TableList* tables, std::string_view name, std::string_view sentence, std::string_view pass,
              std::vector<Field<Row>> fields, std::function<std::span<const Row>(const Source&)> rows) {
  tables->push_back(std::make_unique<RowTable<Row>>(typename RowTable<Row>::Parts{
      .name = name, .sentence = sentence, .pass = pass, .fields = std::move(fields), .rows = std::move(rows)}));
}

}  // namespace

void AddVerdictTables(TableList* tables) {
  AddTable<StragglerRow>(tables, "stragglers", "Each rank's part in waiting at collectives, most waiting given first",
                         "stragglers", StragglerFields(), [](const Source& source) {
                           return std::span<const StragglerRow>(source.result().Get<analysis::Stragglers>().rows);
                         });
  AddTable<WaitStateRow>(tables, "wait_states", "Waiting of each rank by kind of wait state", "wait_states",
                         WaitStateFields(), [](const Source& source) {
                           return std::span<const WaitStateRow>(source.result().Get<analysis::WaitStates>().rows);
                         });
  AddTable<RootCauseRow>(tables, "root_causes", "What made ranks wait first of all, most waiting first", "wait_states",
                         RootCauseFields(), [](const Source& source) {
                           return std::span<const RootCauseRow>(source.result().Get<analysis::WaitStates>().causes);
                         });
  AddTable<WaitCulprit>(tables, "culprits",
                        "Who is behind the waiting beyond chance, and is named for it; most waiting first",
                        "wait_states", CulpritFields(), [](const Source& source) {
                          return std::span<const WaitCulprit>(source.result().Get<analysis::WaitStates>().culprits);
                        });
  AddTable<ImbalanceRow>(tables, "imbalance", "Spread of one quantity over the ranks", "imbalance", ImbalanceFields(),
                         [](const Source& source) {
                           return std::span<const ImbalanceRow>(source.result().Get<analysis::Imbalance>().rows);
                         });
  AddTable<CriticalPathRow>(
      tables, "critical_path", "Time on the steps' critical paths by rank, category and name", "critical_path",
      CriticalPathFields(), [](const Source& source) {
        return std::span<const CriticalPathRow>(source.result().Get<analysis::CriticalPath>().rows);
      });
  AddTable<Finding>(tables, "findings", "What is wrong, for whom, how that is known, what to do; largest gain first",
                    "all", FindingFields(),
                    [](const Source& source) { return std::span<const Finding>(source.result().findings); });
  AddTable<LedgerEntry>(
      tables, "ledger", "Everything that was repaired, skipped, guessed or refused while reading", "all",
      LedgerFields(), [](const Source& source) { return std::span<const LedgerEntry>(source.run().ledger.entries()); });
}

}  // namespace lockstep::query
