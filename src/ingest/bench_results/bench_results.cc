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
constexpr size_t kMostPairs = 1'000'000;

Error NoResults(const std::string& source, std::string why) {
  return {.code = ErrorCode::kCorruptData,
          .message = std::move(why) + "; write it by: lockstep bench collectives -n N --json > bench.json",
          .file = source};
}

/// NaN where there is none.
double Number(simdjson::dom::element object, std::string_view key) {
  double value = std::nan("");
  return object[key].get_double().get(value) == simdjson::SUCCESS ? value : std::nan("");
}

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }

/// The bandwidth of a timing; false where it has none.
bool TakeTiming(simdjson::dom::element timing, model::FabricPoint* point) {
  const double busbw = Number(timing, "busbw_bytes_per_s");
  if (!IsPositive(busbw)) return false;
  point->busbw_bytes_per_s = busbw;
  const double mean_ns = Number(timing, "mean_ns");
  if (!IsPositive(mean_ns)) return true;
  point->mean_ns = mean_ns;
  // Bandwidth is so many bytes over the mean: over another rank's time it is that much more or less.
  const double slowest = busbw * mean_ns / Number(timing, "slowest_ns");
  const double fastest = busbw * mean_ns / Number(timing, "fastest_ns");
  if (IsPositive(slowest) && slowest <= busbw) point->slowest_busbw_bytes_per_s = slowest;
  if (IsPositive(fastest) && fastest >= busbw) point->fastest_busbw_bytes_per_s = fastest;
  return true;
}

void TakeHosts(simdjson::dom::array ranks, model::Fabric* fabric) {
  for (const simdjson::dom::element rank : ranks) {
    std::string_view host;
    if (rank["host"].get_string().get(host) != simdjson::SUCCESS) host = {};
    fabric->hosts.push_back(Printable(host.substr(0, 100)));
  }
}

void TakePairs(simdjson::dom::array pairs, model::Fabric* fabric) {
  for (const simdjson::dom::element element : pairs) {
    model::FabricPair pair;
    if (element["rank_a"].get_int64().get(pair.rank_a) != simdjson::SUCCESS ||
        element["rank_b"].get_int64().get(pair.rank_b) != simdjson::SUCCESS || fabric->pairs.size() >= kMostPairs) {
      continue;
    }
    const auto is_rank = [&](int64_t rank) { return rank >= 0 && rank < fabric->rank_count; };
    pair.latency_ns = Number(element, "latency_ns");
    pair.bytes_per_s = Number(element, "bytes_per_s");
    pair.back_bytes_per_s = Number(element, "back_bytes_per_s");
    if (!is_rank(pair.rank_a) || !is_rank(pair.rank_b) || !IsPositive(pair.latency_ns) ||
        !IsPositive(pair.bytes_per_s) || !IsPositive(pair.back_bytes_per_s)) {
      continue;
    }
    if (element["same_host"].get_bool().get(pair.same_host) != simdjson::SUCCESS) pair.same_host = false;
    if (element["is_slow"].get_bool().get(pair.is_slow) != simdjson::SUCCESS) pair.is_slow = false;
    fabric->pairs.push_back(pair);
  }
  std::sort(fabric->pairs.begin(), fabric->pairs.end(),
            [](const auto& a, const auto& b) { return std::tie(a.rank_a, a.rank_b) < std::tie(b.rank_a, b.rank_b); });
}

}  // namespace

Result<model::Fabric> ParseBenchResults(std::string_view json, const std::string& source) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  std::string_view schema;
  if (parser.parse(json.data(), json.size()).get(document) != simdjson::SUCCESS ||
      document["schema"].get_string().get(schema) != simdjson::SUCCESS || schema != "lockstep.bench-collectives/1") {
    return NoResults(source, "is not a result of lockstep bench collectives");
  }
  model::Fabric fabric;
  fabric.source = source;
  std::string_view backend;
  if (document["data"]["setup"]["backend"].get_string().get(backend) == simdjson::SUCCESS) {
    fabric.backend = Printable(backend.substr(0, 100));
  }
  simdjson::dom::array ranks;
  if (document["data"]["ranks"].get_array().get(ranks) == simdjson::SUCCESS) {
    TakeHosts(ranks, &fabric);
    fabric.rank_count = static_cast<int64_t>(fabric.hosts.size());  // An array's own size ends at 2^24 - 1.
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
    model::FabricPoint point;
    bool is_measured = false;
    for (const char* form : {"out_of_place", "in_place"}) {
      simdjson::dom::element timing;
      if (!is_measured && row[form].get(timing) == simdjson::SUCCESS) is_measured = TakeTiming(timing, &point);
    }
    if (!is_measured || fabric.points.size() >= kMostPoints) continue;
    point.operation = Printable(operation.substr(0, 40));
    point.bytes = bytes;
    fabric.points.push_back(std::move(point));
  }
  simdjson::dom::array pairs;
  if (document["data"]["pairs"].get_array().get(pairs) == simdjson::SUCCESS) TakePairs(pairs, &fabric);
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
