#include "ingest/torch_trace/top_level.h"

#include <simdjson.h>

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "ingest/torch_trace/decimal.h"

namespace lockstep::ingest {
namespace {

using simdjson::dom::element;

/// An integer, or a string that holds one.
std::optional<int64_t> Integer(const auto& value) {
  int64_t number = 0;
  if (!value.get(number)) return number;
  std::string_view text;
  if (!value.get(text)) return ParseInt64(text);
  return std::nullopt;
}

std::optional<int32_t> SmallInteger(const auto& value) {
  const auto number = Integer(value);
  if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*number);
}

std::string Text(const auto& value) {
  std::string_view text;
  if (!value.get(text)) return std::string(text);
  int64_t number = 0;
  if (!value.get(number)) return std::to_string(number);
  return {};
}

/// Ranks as a list of numbers, or as text such as "[0, 1, ...]". A list that its producer cut ("...") counts as not
/// given.
std::vector<int32_t> Ranks(const auto& value) {
  std::vector<int32_t> ranks;
  simdjson::dom::array list;
  if (!value.get(list)) {
    for (const element item : list) {
      if (const auto rank = SmallInteger(item)) ranks.push_back(*rank);
    }
    return ranks;
  }
  std::string_view text;
  if (value.get(text) || text.find("...") != std::string_view::npos) return ranks;
  const char* cursor = text.data();
  const char* const end = text.data() + text.size();
  while (cursor < end) {
    int32_t rank = 0;
    const auto [next, error] = std::from_chars(cursor, end, rank);
    if (error == std::errc()) {
      ranks.push_back(rank);
      cursor = next;
    } else {
      ++cursor;
    }
  }
  return ranks;
}

void ReadDistributedInfo(const element& info, TraceContent* content) {
  model::RankTrace& trace = content->trace;
  if (const auto rank = SmallInteger(info["rank"])) {
    trace.rank = {*rank};
    trace.rank_source = model::RankSource::kDistributedInfo;
    content->has_rank = true;
  }
  if (const auto world_size = SmallInteger(info["world_size"]); world_size && *world_size > 0)
    trace.world_size = *world_size;
  trace.backend = Text(info["backend"]);
  simdjson::dom::array groups;
  if (info["pg_config"].get(groups)) return;
  for (const element item : groups) {
    model::ProcessGroup group;
    group.name = Text(item["pg_name"]);
    group.description = Text(item["pg_desc"]);
    group.backend = Text(item["backend_config"]);
    group.size = SmallInteger(item["pg_size"]);
    group.ranks = Ranks(item["ranks"]);
    trace.groups.push_back(std::move(group));
  }
}

void ReadDevices(const element& list, model::RankTrace* trace) {
  simdjson::dom::array devices;
  if (list.get(devices)) return;
  for (const element item : devices) {
    const auto ordinal = SmallInteger(item["id"]);
    if (!ordinal) continue;
    trace->devices.push_back({.ordinal = {*ordinal},
                              .name = Text(item["name"]),
                              .memory_bytes = Integer(item["totalGlobalMem"]),
                              .multiprocessor_count = SmallInteger(item["numSms"])});
  }
}

}  // namespace

void ReadTopLevelMember(std::string_view key, ValueKind kind, std::string_view raw, uint64_t byte_offset,
                        Damage* damage, TraceAssembler* assembler) {
  TraceContent& content = assembler->content();
  if (key == "baseTimeNanoseconds") {
    const auto base_ns = ParseInt64(raw);
    if (base_ns && *base_ns >= 0 && *base_ns < INT64_MAX / 2)
      assembler->set_base_ns(*base_ns);
    else
      damage->Add(DamageKind::kBadMetadata, byte_offset, "baseTimeNanoseconds");
    return;
  }
  if (key == "host_name" && kind == ValueKind::kString) {
    content.trace.host = std::string(raw);
    return;
  }
  const bool is_info = key == "distributedInfo" && kind == ValueKind::kObject;
  const bool is_devices = key == "deviceProperties" && kind == ValueKind::kArray;
  const bool is_merged = key == "lockstep" && kind == ValueKind::kObject;
  if (!is_info && !is_devices && !is_merged) return;
  simdjson::dom::parser parser;
  const simdjson::padded_string text(raw);
  element value;
  if (parser.parse(text).get(value)) {
    damage->Add(DamageKind::kBadMetadata, byte_offset, std::string(key));
    return;
  }
  if (is_merged) {
    if (Text(value["format"]) == "lockstep.timeline/1")
      content.merged_rank_count = Integer(value["process_count"]).value_or(0);
    return;
  }
  if (is_info)
    ReadDistributedInfo(value, &content);
  else
    ReadDevices(value, &content.trace);
}

}  // namespace lockstep::ingest
