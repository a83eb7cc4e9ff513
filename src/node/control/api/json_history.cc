#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/json_object.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "node/control/api/history.h"
#include "node/control/api/names.h"
#include "node/control/api/parse_json.h"
#include "node/control/api/query_text.h"

namespace lockstep::control {
namespace {

constexpr NameTable<HistoryKind, 4> kKinds = {{"rank", "gpu", "serving", "job"}};
constexpr size_t kMostLabels = 32;
constexpr size_t kMostFigures = 64;
constexpr size_t kMostNameBytes = 64;
constexpr size_t kMostLabelBytes = 1024;

using Labels = std::map<std::string, std::string>;

void WriteLabels(const Labels& labels, JsonWriter* json) {
  json->Key("labels").StartObject();
  for (const auto& [name, value] : labels) json->Key(name).Text(value);
  json->EndObject();
}

Status ReadLabels(JsonValue owner, const std::string& where, Labels* labels) {
  JsonObject reader(owner, where);
  const JsonValue object = reader.Object("labels");
  RETURN_IF_ERROR(reader.status());
  for (const auto& [member_name, member] : object.members()) {
    if (labels->size() == kMostLabels) return Error{ErrorCode::kLimitExceeded, where + ": too many labels"};
    std::string name = ValidUtf8(member_name);
    std::string value = ValidUtf8(member.Text().value_or(""));
    if (!member.IsText() || name.empty() || name.size() > kMostNameBytes || value.size() > kMostLabelBytes) {
      return Error{ErrorCode::kCorruptData, where + ".labels has one that is not a short text"};
    }
    (*labels)[std::move(name)] = std::move(value);
  }
  return {};
}

Status ReadFigures(JsonValue owner, const std::string& where, size_t instants, size_t* values_left,
                   HistorySeries* series) {
  JsonObject reader(owner, where);
  const JsonValue object = reader.Object("figures");
  RETURN_IF_ERROR(reader.status());
  for (const auto& [member_name, member] : object.members()) {
    std::string name = ValidUtf8(member_name);
    const std::string path = where + ".figures." + name;
    if (name.empty() || name.size() > kMostNameBytes || !member.IsArray()) {
      return Error{ErrorCode::kCorruptData, path + " is not a list"};
    }
    if (member.size() != instants) return Error{ErrorCode::kCorruptData, path + " is not as long as the times"};
    if (series->figures.size() == kMostFigures || *values_left < instants) {
      return Error{ErrorCode::kLimitExceeded, path + ": more figures than an answer holds"};
    }
    *values_left -= instants;
    std::vector<std::optional<double>>& values = series->figures[std::move(name)];
    values.clear();
    values.reserve(instants);
    for (const JsonValue value : member.elements()) {
      const std::optional<double> number = value.Number();
      if (!value.IsNull() && (!number || !std::isfinite(*number))) {
        return Error{ErrorCode::kCorruptData, path + " holds what is not a number"};
      }
      values.push_back(number);
    }
  }
  return {};
}

}  // namespace

const char* HistoryKindName(HistoryKind kind) { return kKinds.Name(kind); }

std::string HistoryPath(const HistoryQuery& query) {
  std::vector<std::string> parts;
  if (!query.job_id.empty()) parts.push_back("job=" + EncodeQueryValue(query.job_id));
  if (query.since_unix_ns) parts.push_back(fmt::format("since_ns={}", std::max<int64_t>(*query.since_unix_ns, 0)));
  if (query.until_unix_ns) parts.push_back(fmt::format("until_ns={}", std::max<int64_t>(*query.until_unix_ns, 0)));
  if (query.points) parts.push_back(fmt::format("points={}", *query.points));
  return "/api/v1/history" + (parts.empty() ? "" : fmt::format("?{}", fmt::join(parts, "&")));
}

Result<HistoryQuery> ReadHistoryQuery(std::string_view text) {
  HistoryQuery query;
  RETURN_IF_ERROR(ReadQueryText(text, [&](std::string_view name, const std::string& value) -> Status {
    if (name == "job") {
      query.job_id = value;
    } else if (name == "since_ns") {
      ASSIGN_OR_RETURN(query.since_unix_ns, ReadQueryNumber(name, value));
    } else if (name == "until_ns") {
      ASSIGN_OR_RETURN(query.until_unix_ns, ReadQueryNumber(name, value));
    } else if (name == "points") {
      ASSIGN_OR_RETURN(query.points, ReadQueryNumber(name, value, 1, kMostHistoryPoints));
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("unknown '{}': there are job, since_ns, until_ns and points", Printable(name))};
    }
    return {};
  }));
  return query;
}

std::string ToJson(const History& history) {
  JsonWriter json;
  json.StartObject().Key("host").Text(history.host).Key("now_unix_ns").Int(history.now_unix_ns);
  json.Key("is_cut").Bool(history.is_cut).Key("times_unix_ns").StartArray();
  for (const int64_t time_ns : history.times_unix_ns) json.Int(time_ns);
  json.EndArray().Key("series").StartArray();
  for (const HistorySeries& series : history.series) {
    json.StartObject().Key("kind").Text(HistoryKindName(series.kind));
    WriteLabels(series.labels, &json);
    json.Key("figures").StartObject();
    for (const auto& [name, values] : series.figures) {
      json.Key(name).StartArray();
      for (const std::optional<double>& value : values) json.Optional(value);
      json.EndArray();
    }
    json.EndObject().EndObject();
  }
  json.EndArray().Key("events").StartArray();
  for (const HistoryEvent& event : history.events) {
    json.StartObject().Key("unix_ns").Int(event.unix_ns).Key("kind").Text(event.kind);
    WriteLabels(event.labels, &json);
    json.Key("count").Double(event.count).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

Result<History> ReadHistory(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree document, ParseJson(json));
  JsonObject reader(document.root(), "");
  History history;
  reader.Text("host", &history.host);
  reader.Int("now_unix_ns", 0, kAnyInt, &history.now_unix_ns);
  reader.Bool("is_cut", &history.is_cut);
  reader.List("times_unix_ns", kMostHistoryPoints + 1, [&](JsonValue value, const std::string& where) -> Status {
    const std::optional<int64_t> time_ns = value.Int();
    if (!time_ns || *time_ns < 0) return Error{ErrorCode::kCorruptData, where + " is not a time"};
    if (!history.times_unix_ns.empty() && *time_ns <= history.times_unix_ns.back()) {
      return Error{ErrorCode::kCorruptData, where + " is not after the one before it"};
    }
    history.times_unix_ns.push_back(*time_ns);
    return {};
  });
  size_t values_left = kMostHistoryValues + kMostFigures * (kMostHistoryPoints + 1);
  reader.List("series", kMostHistorySeries, [&](JsonValue value, const std::string& where) -> Status {
    HistorySeries series;
    JsonObject member(value, where);
    std::string kind;
    member.Text("kind", &kind, kMostNameBytes);
    RETURN_IF_ERROR(member.status());
    const std::optional<HistoryKind> known = kKinds.Find(kind);
    if (!known) return {};  // Of a newer version.
    series.kind = *known;
    RETURN_IF_ERROR(ReadLabels(value, where, &series.labels));
    RETURN_IF_ERROR(ReadFigures(value, where, history.times_unix_ns.size(), &values_left, &series));
    history.series.push_back(std::move(series));
    return {};
  });
  reader.List("events", kMostHistoryEvents, [&](JsonValue value, const std::string& where) -> Status {
    HistoryEvent event;
    JsonObject member(value, where);
    member.Int("unix_ns", 0, kAnyInt, &event.unix_ns);
    member.Text("kind", &event.kind, kMostNameBytes);
    RETURN_IF_ERROR(member.status());
    RETURN_IF_ERROR(ReadLabels(value, where, &event.labels));
    if (const auto count = value["count"].Number(); count && std::isfinite(*count)) event.count = *count;
    history.events.push_back(std::move(event));
    return {};
  });
  RETURN_IF_ERROR(reader.status());
  return history;
}

}  // namespace lockstep::control
