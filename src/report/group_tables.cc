// The tables of the pass "groups".
#include "analysis/analysis_result.h"
#include "analysis/parallelism/process_groups.h"
#include "report/declared_tables.h"

namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::GroupOperationRow;
using analysis::ProcessGroupRow;
using model::Run;
using Type = DeclaredType;

const std::vector<ProcessGroupRow>& Groups(const AnalysisResult& result) {
  return result.Get<analysis::ProcessGroups>().rows;
}
const std::vector<GroupOperationRow>& Operations(const AnalysisResult& result) {
  return result.Get<analysis::ProcessGroups>().operations;
}

std::vector<RowColumn<ProcessGroupRow>> GroupColumns() {
  using Row = ProcessGroupRow;
  return {
      {"group_number", Type::kInteger, "", "Number of the group in this table, from 0.", "",
       [](const Run&, const Row& row) { return Cell(uint64_t{row.number}); }},
      {"window", Type::kInteger, "", "Window it belongs to.", "",
       [](const Run&, const Row& row) { return Cell(int64_t{row.window}); }},
      {"name", Type::kText, "",
       "Name as recorded; `default` without metadata, `communicator 0x...` where only that is known.", "",
       [](const Run&, const Row& row) { return TextCell(row.name); }},
      {"description", Type::kText, "", "Description as recorded.", "not recorded",
       [](const Run&, const Row& row) { return TextOrNullCell(row.description); }},
      {"backend", Type::kText, "", "Backend as recorded.", "not recorded",
       [](const Run&, const Row& row) { return TextOrNullCell(row.backend); }},
      {"kind", Type::kText, "",
       "What it is for: `data`, `tensor`, `pipeline`, `expert`, `context`, `embedding`, `mixed`, `world`, `unknown`.",
       "", [](const Run&, const Row& row) { return TextCell(analysis::GroupKindName(row.kind)); }},
      {"basis", Type::kText, "", "What that was taken from: `description`, `name`, `membership`, `traffic`, `none`.",
       "", [](const Run&, const Row& row) { return TextCell(analysis::GroupBasisName(row.basis)); }},
      {"confidence", Type::kText, "", "How sure that is: `high`, `medium`, `low`, `none`.", "",
       [](const Run&, const Row& row) { return TextCell(analysis::ConfidenceName(row.confidence)); }},
      {"evidence", Type::kText, "", "Why this kind, or why none.", "",
       [](const Run&, const Row& row) { return TextCell(row.evidence); }},
      {"size", Type::kInteger, "count", "Members, with or without a trace.", "not known",
       [](const Run&, const Row& row) { return OptionalCell(row.size); }},
      {"is_world", Type::kBoolean, "", "All ranks of the job.", "",
       [](const Run&, const Row& row) { return Cell(row.is_world); }},
      {"ranks", Type::kIntegers, "", "Global ranks of the members; those with calls where no file lists the members.",
       "",
       [](const Run&, const Row& row) {
         return Cell(IntegerList{{row.members.begin(), row.members.end()}});
       }},
      {"trace_count", Type::kInteger, "count", "Members whose trace has its calls: what the sums are over.", "",
       [](const Run&, const Row& row) { return Cell(uint64_t{row.rank_indices.size()}); }},
      {"call_count", Type::kInteger, "count", "Calls of all operations, all ranks.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"calls_per_step", Type::kReal, "count", "Calls per rank and step.", "no steps",
       [](const Run&, const Row& row) { return OptionalCell(row.calls_per_step); }},
      {"bytes", Type::kInteger, "bytes", "Sum of the calls' sizes, all ranks.", "no call has one",
       [](const Run&, const Row& row) { return OptionalCell(row.bytes); }},
      {"communication_ns", Type::kInteger, "ns", "Sum over ranks of the union of its calls; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.communication_ns); }},
      {"exposed_ns", Type::kInteger, "ns", "Part of that in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.exposed_ns); }},
      {"communication_ratio", Type::kReal, "0..1", "`communication_ns` of the ranks' spans.", "spans are 0",
       [](const Run&, const Row& row) { return OptionalCell(row.communication_ratio); }},
      {"exposed_ratio", Type::kReal, "0..1", "`exposed_ns` of the ranks' spans.", "spans are 0",
       [](const Run&, const Row& row) { return OptionalCell(row.exposed_ratio); }},
  };
}

std::vector<RowColumn<GroupOperationRow>> OperationColumns() {
  using Row = GroupOperationRow;
  return {
      GroupColumn<Row>(),
      {"name", Type::kText, "", "`all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `broadcast`, `send`, ...",
       "", [](const Run&, const Row& row) { return TextCell(analysis::CollectiveKindName(row.kind)); }},
      {"call_count", Type::kInteger, "count", "Calls, all ranks.", "",
       [](const Run&, const Row& row) { return Cell(row.call_count); }},
      {"backward_count", Type::kInteger, "count", "Calls issued during a backward pass.", "",
       [](const Run&, const Row& row) { return Cell(row.backward_count); }},
      {"bytes", Type::kInteger, "bytes", "Sum of the calls' sizes.", "no call has one",
       [](const Run&, const Row& row) { return OptionalCell(row.bytes); }},
      {"duration_ns", Type::kInteger, "ns", "Sum of the calls' durations; waiting is in it.", "",
       [](const Run&, const Row& row) { return Cell(row.duration_ns); }},
      {"exposed_ns", Type::kInteger, "ns", "Sum of their parts in which the rank computes nothing.", "",
       [](const Run&, const Row& row) { return Cell(row.exposed_ns); }},
  };
}

}  // namespace

void DeclareGroupTables(std::vector<DeclaredTable>* tables) {
  tables->push_back(DeclareTable<ProcessGroupRow>("groups", "process_groups",
                                                  "A process group with traffic, and what it is for", "groups", Groups,
                                                  GroupColumns()));
  tables->push_back(DeclareTable<GroupOperationRow>("group_operations", "group_operations",
                                                    "Calls of one operation in a process group, all ranks together",
                                                    "groups", Operations, OperationColumns()));
}

}  // namespace lockstep::report
