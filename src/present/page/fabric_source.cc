// What the page says of the fabric: curves to hold collectives against.
#include <fmt/format.h>

#include "analysis/fabric/fabric.h"
#include "present/page/depth_tables.h"
#include "present/report/format.h"

namespace lockstep::page {

using report::JsonRow;

void AddFabricSource(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  json->Key("fabric_source");
  if (!model.result().Has<analysis::FabricComparison>()) {
    json->Null();
    return;
  }
  const auto& [rows, fabric] = model.result().Get<analysis::FabricComparison>();
  json->StartObject().Key("source").Text(fabric.source).Key("backend").Text(fabric.backend);
  json->Key("rank_count").Int(fabric.rank_count).Key("ratio").Optional(analysis::FabricRatio(rows));
  // A curve with every second of its points is the same curve.
  size_t stride = 1;
  while (fabric.points.size() / stride > model.limits.table_rows) stride *= 2;
  json->Key("points").StartArray();
  for (size_t i = 0; i < fabric.points.size(); i += stride) {
    const model::FabricPoint& point = fabric.points[i];
    json->StartObject().Key("operation").Text(point.operation).Key("bytes").Int(point.bytes);
    json->Key("busbw_bytes_per_s").Double(point.busbw_bytes_per_s);
    json->Key("slowest_busbw_bytes_per_s").Optional(point.slowest_busbw_bytes_per_s);
    json->Key("fastest_busbw_bytes_per_s").Optional(point.fastest_busbw_bytes_per_s);
    json->Key("mean_ns").Optional(point.mean_ns).EndObject();
  }
  json->EndArray().EndObject();
  if (stride > 1) {
    reductions->push_back({"fabric_source", fmt::format("what the fabric can do: one of {} of {} measured points",
                                                        stride, report::FormatCount(fabric.points.size()))});
  }
}

}  // namespace lockstep::page
