#include <fmt/format.h>

#include "analysis/collectives.h"
#include "present/query/row_table.h"
#include "present/query/tables.h"

namespace lockstep::query {
namespace {

using analysis::CollectiveInstance;
using analysis::CollectiveMember;
using Type = ColumnType;

const CollectiveInstance& InstanceOf(const Source&, const CollectiveInstance& row) { return row; }
const CollectiveInstance& InstanceOf(const Source& source, const MemberPlace& row) {
  return source.result().Get<analysis::Collectives>().instances[row.instance];
}
const CollectiveMember& MemberOf(const Source& source, const MemberPlace& row) {
  return InstanceOf(source, row).members[row.member];
}
int64_t NumberOf(const Source& source, const CollectiveInstance& row) {
  return &row - source.result().Get<analysis::Collectives>().instances.data();
}
int64_t NumberOf(const Source&, const MemberPlace& row) { return row.instance; }

// What both tables say of an instance.
template <typename Row>
std::vector<Field<Row>> IdentityFields() {
  return {
      {{"instance", Type::kInteger, "",
        "Number of the collective in the run, in order of first arrival; both tables share it.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(NumberOf(source, row)); },
       [](const Source& source, const Row& row) -> std::optional<int64_t> { return NumberOf(source, row); }},
      {{"window", Type::kInteger, "", "Window it belongs to.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(InstanceOf(source, row).window); },
       [](const Source& source, const Row& row) -> std::optional<int64_t> { return InstanceOf(source, row).window; }},
      {{"group_name", Type::kText, "", "Process group: its name, description or members; `default` when unknown.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Static(InstanceOf(source, row).group); }},
      {{"sequence", Type::kInteger, "",
        "Sequence number in the group as recorded, else the order of occurrence from 0.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(InstanceOf(source, row).sequence); },
       [](const Source& source, const Row& row) -> std::optional<int64_t> { return InstanceOf(source, row).sequence; }},
      {{"name", Type::kText, "", "`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `send`, ...",
        ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Static(InstanceOf(source, row).name); }},
      {{"bytes", Type::kInteger, "bytes", "Size of the whole buffer, as nccl-tests count it.", "not recorded"},
       [](const Source& source, const Row& row, CellOut& out) { out.Optional(InstanceOf(source, row).bytes); }},
      {{"group_size", Type::kInteger, "count", "Members of the group, with or without a trace.", "not known"},
       [](const Source& source, const Row& row, CellOut& out) { out.Optional(InstanceOf(source, row).group_size); }},
  };
}

template <typename Row>
std::vector<Field<Row>> OutcomeFields() {
  return {
      {{"last_rank", Type::kInteger, "", "The rank that arrived last.",
        "the margin is below the clocks' uncertainty, or a member lacks it or came later without a trace"},
       [](const Source& source, const Row& row, CellOut& out) {
         const auto& last = InstanceOf(source, row).last_rank_index;
         last ? out.Int(source.rank(*last).rank.value) : out.Null();
       }},
      {{"transfer_ns", Type::kInteger, "ns", "Time of the collective itself after all members have arrived.",
        "not complete"},
       [](const Source& source, const Row& row, CellOut& out) { out.Optional(InstanceOf(source, row).transfer_ns); }},
      {{"algbw_bytes_per_s", Type::kReal, "bytes/s", "`bytes` / `transfer_ns`: waiting is not included.",
        "size or transfer unknown"},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Optional(InstanceOf(source, row).algbw_bytes_per_s);
       }},
      {{"busbw_bytes_per_s", Type::kReal, "bytes/s", "`algbw_bytes_per_s` times nccl-tests' factor for the operation.",
        "size or transfer unknown"},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Optional(InstanceOf(source, row).busbw_bytes_per_s);
       }},
      {{"match", Type::kText, "", "How the ranks' parts were joined: by `sequence` or by `order`.", ""},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Static(analysis::MatchBasisName(InstanceOf(source, row).basis));
       }},
      {{"synchronising", Type::kBoolean, "",
        "No member can finish before all have arrived (`all_reduce`, ..., not `broadcast`).", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Bool(InstanceOf(source, row).synchronising); }},
      {{"complete", Type::kBoolean, "", "Every member of the group is here.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Bool(InstanceOf(source, row).complete); }},
  };
}

template <typename Row>
std::vector<Field<Row>> Join(std::vector<Field<Row>> first, std::vector<Field<Row>> second,
                             std::vector<Field<Row>> third) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

std::vector<Field<MemberPlace>> MemberFields() {
  using Row = MemberPlace;
  return {
      {{"rank", Type::kInteger, "", "Global rank of this member.", ""},
       [](const Source& source, const Row& row, CellOut& out) {
         out.Int(source.rank(MemberOf(source, row).rank_index).rank.value);
       },
       [](const Source& source, const Row& row) -> std::optional<int64_t> {
         return source.rank(MemberOf(source, row).rank_index).rank.value;
       }},
      {{"arrival_ns", Type::kInteger, "ns, aligned clock",
        "Start of this rank's kernel; CPU jobs: of the backend's range.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(MemberOf(source, row).arrival_ns); }},
      {{"end_ns", Type::kInteger, "ns, aligned clock", "End of it.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(MemberOf(source, row).end_ns); }},
      {{"wait_ns", Type::kInteger, "ns",
        "Last arrival (of the members that were recorded) less own arrival; where it is not synchronising, no more "
        "than the "
        "own duration.",
        "a member's window lacks the collective, or it was joined wrongly"},
       [](const Source& source, const Row& row, CellOut& out) { out.Optional(MemberOf(source, row).wait_ns); }},
      {{"duration_ns", Type::kInteger, "ns", "Duration of this rank's kernel or range; needs no clock.", ""},
       [](const Source& source, const Row& row, CellOut& out) { out.Int(MemberOf(source, row).duration_ns); }},
  };
}

std::vector<Field<CollectiveInstance>> InstanceFields() {
  using Row = CollectiveInstance;
  return {
      {{"rank_count", Type::kInteger, "count", "Ranks that have it; a row each in `collectives`.", ""},
       [](const Source&, const Row& row, CellOut& out) { out.Count(row.members.size()); }},
      {{"missing_ranks", Type::kJson, "", "Members that have a trace in this window which lacks it.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         std::string text;
         for (const Rank rank : row.missing_ranks) text += fmt::format("{}{}", text.empty() ? "" : ",", rank.value);
         out.Copy(fmt::format("[{}]", text));
       }},
      {{"first_arrival_ns", Type::kInteger, "ns, aligned clock", "Earliest arrival.", ""},
       [](const Source&, const Row& row, CellOut& out) {
         if (row.members.empty()) return out.Null();
         int64_t first_ns = row.members.front().arrival_ns;
         for (const CollectiveMember& member : row.members) first_ns = std::min(first_ns, member.arrival_ns);
         out.Int(first_ns);
       }},
      {{"last_arrival_ns", Type::kInteger, "ns, aligned clock", "Latest arrival; less the earliest it is the skew.",
        ""},
       [](const Source&, const Row& row, CellOut& out) {
         if (row.members.empty()) return out.Null();
         int64_t last_ns = row.members.front().arrival_ns;
         for (const CollectiveMember& member : row.members) last_ns = std::max(last_ns, member.arrival_ns);
         out.Int(last_ns);
       }},
  };
}

}  // namespace

void AddCollectiveTables(TableList* tables) {
  tables->push_back(std::make_unique<RowTable<MemberPlace>>(RowTable<MemberPlace>::Parts{
      .name = "collectives",
      .sentence = "One row per collective and rank that took part: arrival, waiting, duration",
      .pass = "collectives",
      .fields = Join(IdentityFields<MemberPlace>(), MemberFields(), OutcomeFields<MemberPlace>()),
      .rows = [](const Source& source) { return source.members(); },
      .sorted_by = {0}}));
  tables->push_back(std::make_unique<RowTable<CollectiveInstance>>(RowTable<CollectiveInstance>::Parts{
      .name = "collective_instances",
      .sentence = "One row per collective, over all ranks: size, bandwidth, who was last",
      .pass = "collectives",
      .fields = Join(IdentityFields<CollectiveInstance>(), InstanceFields(), OutcomeFields<CollectiveInstance>()),
      .rows =
          [](const Source& source) {
            return std::span<const CollectiveInstance>(source.result().Get<analysis::Collectives>().instances);
          },
      .sorted_by = {0}}));
}

}  // namespace lockstep::query
