#include <fmt/format.h>

#include "measure/report/collective_bench_report.h"
#include "present/report/json_stream.h"

namespace lockstep::report {
namespace {

using collective_bench::Pair;
using collective_bench::Plan;
using collective_bench::RankFacts;
using collective_bench::Results;
using collective_bench::Row;
using collective_bench::Timing;

void AddTiming(std::string_view key, const std::optional<Timing>& timing, JsonRow* row) {
  row->Key(key);
  if (!timing) {
    row->Null();
    return;
  }
  row->StartObject().Key("mean_ns").Double(timing->mean_ns);
  row->Key("fastest_ns").Double(timing->fastest_ns).Key("fastest_rank").Int(timing->fastest_rank);
  row->Key("slowest_ns").Double(timing->slowest_ns).Key("slowest_rank").Int(timing->slowest_rank);
  row->Key("median_ns").Optional(timing->median_ns).Key("p99_ns").Optional(timing->p99_ns);
  row->Key("algbw_bytes_per_s").Optional(timing->algbw_bytes_per_s);
  row->Key("busbw_bytes_per_s").Optional(timing->busbw_bytes_per_s);
  row->Key("wrong_count");
  timing->wrong_count ? row->Uint(*timing->wrong_count) : row->Null();
  row->Key("wrong_ranks").StartArray();
  for (const int rank : timing->wrong_ranks) row->Int(rank);
  row->EndArray().EndObject();
}

template <typename Items, typename Write>
void WriteArray(JsonDocument& json, const char* key, const Items& items, const Write& write) {
  json.Key(key);
  json.StartArray();
  for (const auto& item : items) write(item);
  json.EndArray();
}

std::string OrEmpty(const std::optional<double>& value) { return value ? fmt::to_string(*value) : ""; }

}  // namespace

void WriteBenchJson(const Results& results, std::ostream& out) {
  {
    JsonDocument json(out, 2);
    json.StartObject();
    json.Key("schema");
    json.Text("lockstep.bench-collectives/1");
    json.Key("data");
    json.StartObject();
    const Plan& plan = results.plan;
    json.Key("setup");
    JsonRow setup;
    setup.Key("backend").Text(results.backend).Key("dtype").Text(DataTypeName(plan.type));
    setup.Key("reduction").Text(ReductionName(plan.reduction)).Key("root").Int(plan.root);
    setup.Key("iterations").Int(plan.iterations).Key("warmup").Int(plan.warmup).Key("checked").Bool(plan.check);
    WriteRow(json, setup);
    WriteArray(json, "ranks", results.ranks, [&](const RankFacts& rank) {
      JsonRow row;
      row.Key("host").Text(rank.host).Key("pid").Int(rank.pid).Key("device").TextOrNull(rank.device);
      WriteRow(json, row);
    });
    WriteArray(json, "rows", results.rows, [&](const Row& one) {
      JsonRow row;
      row.Key("operation").Text(OperationName(one.operation)).Key("bytes").Int(one.bytes);
      row.Key("count").Uint(one.count).Key("skipped").TextOrNull(one.skipped);
      AddTiming("out_of_place", one.out_of_place, &row);
      AddTiming("in_place", one.in_place, &row);
      WriteRow(json, row);
    });
    WriteArray(json, "pairs", results.pairs, [&](const Pair& pair) {
      JsonRow row;
      row.Key("rank_a").Int(pair.a).Key("rank_b").Int(pair.b).Key("same_host").Bool(pair.same_host);
      row.Key("latency_ns").Double(pair.latency_ns).Key("bytes_per_s").Double(pair.bytes_per_s);
      row.Key("back_bytes_per_s").Double(pair.back_bytes_per_s).Key("is_slow").Bool(pair.is_slow);
      WriteRow(json, row);
    });
    json.EndObject();
    json.EndObject();
    json.EndLine();
  }
  out.flush();
}

void WriteBenchCsv(const Results& results, std::ostream& out) {
  out << "operation,bytes,count,dtype,reduction,root,in_place,mean_ns,fastest_ns,fastest_rank,slowest_ns,slowest_rank,"
         "median_ns,p99_ns,algbw_bytes_per_s,busbw_bytes_per_s,wrong_count\n";
  const Plan& plan = results.plan;
  for (const Row& row : results.rows) {
    for (const auto* timing : {&row.out_of_place, &row.in_place}) {
      if (!*timing) continue;
      const Timing& one = **timing;
      out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", OperationName(row.operation),
                         row.bytes, row.count, DataTypeName(plan.type),
                         HasReduction(row.operation) ? ReductionName(plan.reduction) : "",
                         HasRoot(row.operation) ? fmt::to_string(plan.root) : "", timing == &row.in_place ? 1 : 0,
                         one.mean_ns, one.fastest_ns, one.fastest_rank, one.slowest_ns, one.slowest_rank,
                         OrEmpty(one.median_ns), OrEmpty(one.p99_ns), OrEmpty(one.algbw_bytes_per_s),
                         OrEmpty(one.busbw_bytes_per_s), one.wrong_count ? fmt::to_string(*one.wrong_count) : "");
    }
  }
}

}  // namespace lockstep::report
