#include "ingest/perfetto/process_facts.h"

#include <simdjson.h>

#include <utility>

namespace lockstep::ingest::perfetto {
namespace {

using simdjson::dom::element;

std::optional<int64_t> Integer(const auto& value) {
  int64_t number = 0;
  if (value.get(number)) return std::nullopt;
  return number;
}

std::optional<int32_t> SmallInteger(const auto& value) {
  const auto number = Integer(value);
  if (!number || *number < INT32_MIN || *number > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*number);
}

std::string Text(const auto& value) {
  std::string_view text;
  if (value.get(text)) return {};
  return std::string(text);
}

model::ClockMap ReadClock(const element& facts) {
  model::ClockMap clock;
  const auto member = [&](const char* key) { return facts["clock"][key]; };
  const std::string basis = Text(member("basis"));
  clock.basis = basis == "reference"     ? model::ClockMap::Basis::kReference
                : basis == "collectives" ? model::ClockMap::Basis::kCollectives
                                         : model::ClockMap::Basis::kWallClock;
  clock.reference_ns = Integer(member("reference_ns")).value_or(0);
  clock.uncertainty_ns = Integer(member("uncertainty_ns"));
  clock.sample_count = static_cast<uint32_t>(SmallInteger(member("sample_count")).value_or(0));
  return clock;
}

void ReadGroups(const element& facts, model::RankTrace* trace) {
  simdjson::dom::array groups;
  if (facts["groups"].get(groups)) return;
  for (const element item : groups) {
    model::ProcessGroup group;
    group.name = Text(item["name"]);
    group.description = Text(item["description"]);
    group.backend = Text(item["backend"]);
    group.size = SmallInteger(item["size"]);
    simdjson::dom::array ranks;
    if (!item["ranks"].get(ranks)) {
      for (const element rank : ranks) group.ranks.push_back(SmallInteger(rank).value_or(0));
    }
    trace->groups.push_back(std::move(group));
  }
}

void ReadDevices(const element& facts, model::RankTrace* trace) {
  simdjson::dom::array devices;
  if (facts["devices"].get(devices)) return;
  for (const element item : devices) {
    model::Device device;
    device.ordinal = {SmallInteger(item["ordinal"]).value_or(0)};
    device.name = Text(item["name"]);
    device.memory_bytes = Integer(item["memory_bytes"]);
    device.multiprocessor_count = SmallInteger(item["multiprocessor_count"]);
    trace->devices.push_back(std::move(device));
  }
}

std::optional<TrackPlace> ReadPlace(const element& item) {
  TrackPlace place;
  const std::string lane = Text(item["lane"]);
  constexpr std::pair<std::string_view, model::Lane> kLanes[] = {
      {"operators", model::Lane::kOperators}, {"python", model::Lane::kPython},
      {"runtime", model::Lane::kRuntime},     {"device", model::Lane::kDevice},
      {"other", model::Lane::kOther},         {"device_annotation", model::Lane::kDeviceAnnotation}};
  if (lane == "steps" || lane == "critical_path" || lane == "requests" || lane == "log") {  // Not events of a thread.
    place.kind = TrackPlace::Kind::kSteps;
  } else if (lane == "memory") {
    place.kind = TrackPlace::Kind::kMemory;
  } else {
    bool known = false;
    for (const auto& [name, value] : kLanes) {
      if (name != lane) continue;
      place.lane = value;
      known = true;
    }
    if (!known) return std::nullopt;
  }
  place.process_id = Integer(item["process_id"]).value_or(0);
  place.thread_id = Integer(item["thread_id"]).value_or(0);
  place.thread_name = Text(item["thread_name"]);
  return place;
}

}  // namespace

std::optional<int64_t> ReadRunFacts(std::string_view json) {
  if (json.empty()) return std::nullopt;  // simdjson copies from a null pointer.
  simdjson::dom::parser parser;
  element facts;
  if (parser.parse(json.data(), json.size()).get(facts)) return std::nullopt;
  if (Text(facts["format"]) != "lockstep.timeline/1") return std::nullopt;
  return Integer(facts["shift_ns"]).value_or(0);
}

std::optional<ProcessFacts> ReadProcessFacts(std::string_view json) {
  if (json.empty()) return std::nullopt;  // simdjson copies from a null pointer.
  simdjson::dom::parser parser;
  element facts;
  if (parser.parse(json.data(), json.size()).get(facts)) return std::nullopt;
  const auto rank = SmallInteger(facts["rank"]);
  if (!rank || *rank < 0) return std::nullopt;
  ProcessFacts found;
  model::RankTrace& trace = found.trace;
  trace.rank = {*rank};
  trace.rank_source = model::RankSource::kDistributedInfo;
  trace.window = SmallInteger(facts["window"]).value_or(0);
  trace.world_size = SmallInteger(facts["world_size"]);
  trace.host = Text(facts["host"]);
  trace.backend = Text(facts["backend"]);
  bool base_time_known = false;
  if (!facts["base_time_known"].get(base_time_known)) trace.base_time_known = base_time_known;
  trace.json_bytes = static_cast<uint64_t>(std::max<int64_t>(Integer(facts["json_bytes"]).value_or(0), 0));
  if (const auto count = Integer(facts["event_count"]); count && *count >= 0)
    found.event_count = static_cast<uint64_t>(*count);
  trace.clock = ReadClock(facts);
  ReadGroups(facts, &trace);
  ReadDevices(facts, &trace);
  simdjson::dom::array tracks;
  if (!facts["tracks"].get(tracks)) {
    for (const element item : tracks) {
      const auto thread = Integer(item["tid"]);
      auto place = ReadPlace(item);
      if (thread && place) found.track_by_thread[*thread] = std::move(*place);
    }
  }
  return found;
}

}  // namespace lockstep::ingest::perfetto
