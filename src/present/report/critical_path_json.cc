#include <string>

#include "analysis/critical_path/critical_path.h"
#include "analysis/critical_path/range_path.h"
#include "present/report/flat_table.h"
#include "present/report/surroundings_json.h"
namespace lockstep::report {
namespace {

using analysis::AnalysisResult;
using analysis::CriticalPathStep;
using analysis::NameSlack;
using analysis::RangeBound;
using analysis::RangeEdge;
using analysis::RangeEdgeType;
using analysis::RangeInstant;
using analysis::RangePath;
using graph::EdgeKind;
using model::Run;

/// Kinds that can have weight; the others only say what waits for what.
constexpr EdgeKind kWeighted[] = {EdgeKind::kHost,     EdgeKind::kDataLoader, EdgeKind::kCompute,   EdgeKind::kCopy,
                                  EdgeKind::kTransfer, EdgeKind::kLaunch,     EdgeKind::kKernelGap, EdgeKind::kDelay};

void WriteStep(JsonDocument& json, const Run& run, const CriticalPathStep& step) {
  JsonRow row;
  row.Key("window").Int(step.window).Key("step").Int(step.step).Key("start_ns").Int(step.start_ns);
  row.Key("step_ns").Int(step.step_ns).Key("path_ns").Int(step.path_ns);
  row.Key("rank_count").Uint(step.rank_count).Key("unmatched_count").Uint(step.unmatched_count);
  for (const EdgeKind kind : kWeighted)
    row.Key(std::string(graph::EdgeKindName(kind)) + "_ns").Int(step.kind_ns[static_cast<size_t>(kind)]);
  row.Key("slack").Each(step.slack, [&](const analysis::RankSlack& slack) {
    row.Key("rank").Int(run.ranks[slack.rank_index].rank.value);
    row.Key("slack_ns").Int(slack.slack_ns);
  });
  WriteRow(json, row);
}

void WriteInstant(JsonRow& row, const char* key, const Run& run, const RangeInstant& instant) {
  row.Key(key).StartObject().Key("name").Text(run.names[instant.event]).Key("start_ns").Int(instant.event_start_ns);
  row.Key("duration_ns").Int(instant.event_duration_ns).Key("instant").Text(instant.is_start ? "start" : "end");
  row.Key("device").Bool(instant.on_device).EndObject();
}

void WriteRange(JsonDocument& json, const Run& run, const RangePath& path) {
  json.StartObject();
  const auto number = [&](const char* key, int64_t value) {
    json.Key(key);
    json.Int(value);
  };
  number("rank", run.ranks[path.rank_index].rank.value);
  number("window", run.ranks[path.rank_index].window);
  number("start_ns", path.start_ns);
  number("end_ns", path.end_ns);
  number("length_ns", path.length_ns);
  for (size_t i = 1; i < analysis::kRangeBoundCount; ++i)
    number((std::string(RangeBoundName(static_cast<RangeBound>(i))) + "_ns").c_str(), path.bound_ns[i]);
  number("node_count", static_cast<int64_t>(path.node_count));
  number("critical_node_count", static_cast<int64_t>(path.critical_node_count));
  number("critical_event_count", static_cast<int64_t>(path.critical_event_count));
  json.Key("edge_counts");
  JsonRow counts;
  for (size_t i = 0; i < analysis::kRangeEdgeTypeCount; ++i)
    counts.Key(RangeEdgeTypeName(static_cast<RangeEdgeType>(i))).Uint(path.edge_counts[i]);
  WriteRow(json, counts);
  WriteTable(json, "edges", path.edges, [&](JsonRow& row, const RangeEdge& edge) {
    row.Key("type").Text(RangeEdgeTypeName(edge.type)).Key("bound").Text(RangeBoundName(edge.bound));
    row.Key("critical").Bool(edge.critical).Key("weight_ns").Int(edge.weight_ns).Key("name");
    edge.of ? row.Text(run.names[*edge.of]) : row.Null();
    WriteInstant(row, "from", run, edge.from);
    WriteInstant(row, "to", run, edge.to);
  });
  json.EndObject();
}

}  // namespace

void WriteCriticalPath(JsonDocument& json, const Run& run, const AnalysisResult& result) {
  json.Key("critical_path");
  if (!result.Has<analysis::CriticalPath>()) {
    json.Null();
    return;
  }
  const analysis::CriticalPath& path = result.Get<analysis::CriticalPath>();
  json.StartObject();
  json.Key("steps");
  json.StartArray();
  for (const CriticalPathStep& step : path.steps) WriteStep(json, run, step);
  json.EndArray();
  WriteTablesWithin(json, run, result, "critical_path");
  WriteTable(json, "slack", path.names, [&](JsonRow& row, const NameSlack& entry) {
    row.Key("category").Text(graph::EdgeKindName(entry.kind)).Key("name").TextOrNull(run.names[entry.name]);
    row.Key("slack_ns").Int(entry.slack_ns);
  });
  json.Key("ranges");
  json.StartArray();
  for (const RangePath& range : result.Get<analysis::CriticalPath>().range_paths) WriteRange(json, run, range);
  json.EndArray();
  json.EndObject();
}

}  // namespace lockstep::report
