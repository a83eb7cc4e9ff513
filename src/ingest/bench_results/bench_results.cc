#include "ingest/bench_results/bench_results.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kMostPoints = 100'000;

Error NoResults(const std::string& source, std::string why) {
  return {.code = ErrorCode::kCorruptData,
          .message = std::move(why) + "; write it by: lockstep bench collectives -n N --json > bench.json",
          .file = source};
}

/// busbw of a timing; NaN where there is none.
double BusBandwidth(simdjson::dom::element timing) {
  double busbw = std::nan("");
  if (timing["busbw_bytes_per_s"].get_double().get(busbw) != simdjson::SUCCESS) return std::nan("");
  return busbw;
}

}  // namespace

Result<model::Fabric> ParseBenchResults(std::string_view json, const std::string& source) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  std::string_view schema;
  if (parser.parse(json.data(), json.size()).get(document) != simdjson::SUCCESS ||
      document["schema"].get_string().get(schema) != simdjson::SUCCESS || schema != "lockstep.bench-collectives/1") {
    return NoResults(source, "is no result of lockstep bench collectives");
  }
  model::Fabric fabric;
  fabric.source = source;
  std::string_view backend;
  if (document["data"]["setup"]["backend"].get_string().get(backend) == simdjson::SUCCESS) {
    fabric.backend = Printable(backend.substr(0, 100));
  }
  simdjson::dom::array ranks;
  if (document["data"]["ranks"].get_array().get(ranks) == simdjson::SUCCESS) {
    fabric.rank_count = static_cast<int64_t>(ranks.size());
  }
  simdjson::dom::array rows;
  if (document["data"]["rows"].get_array().get(rows) != simdjson::SUCCESS) return NoResults(source, "has no rows");
  for (const simdjson::dom::element row : rows) {
    std::string_view operation;
    int64_t bytes = 0;
    if (row["operation"].get_string().get(operation) != simdjson::SUCCESS ||
        row["bytes"].get_int64().get(bytes) != simdjson::SUCCESS || bytes <= 0) {
      continue;
    }
    double busbw = std::nan("");
    for (const char* form : {"out_of_place", "in_place"}) {
      simdjson::dom::element timing;
      if (std::isnan(busbw) && row[form].get(timing) == simdjson::SUCCESS) busbw = BusBandwidth(timing);
    }
    if (!(busbw > 0) || !std::isfinite(busbw) || fabric.points.size() >= kMostPoints) continue;
    fabric.points.push_back({Printable(operation.substr(0, 40)), bytes, busbw});
  }
  if (fabric.points.empty()) return NoResults(source, "holds no bandwidth that two ranks or more measured");
  std::sort(fabric.points.begin(), fabric.points.end(), [](const auto& a, const auto& b) {
    return std::tie(a.operation, a.bytes) < std::tie(b.operation, b.bytes);
  });
  return fabric;
}

Result<model::Fabric> ReadBenchResults(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, OpenFile(path, ByteLimits{}));
  std::string bytes;
  while (true) {
    const size_t before = bytes.size();
    bytes.resize(before + (size_t{1} << 20));
    ASSIGN_OR_RETURN(const size_t got, file->Read(std::span(bytes.data() + before, bytes.size() - before)));
    bytes.resize(before + got);
    if (got == 0) break;
    if (bytes.size() > kMostBytes) {
      return Error{.code = ErrorCode::kLimitExceeded, .message = "is longer than 64 MiB", .file = path};
    }
  }
  return ParseBenchResults(bytes, path);
}

}  // namespace lockstep::ingest
