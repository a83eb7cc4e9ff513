#include "analysis/profile_history/capture_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "base/json_object.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "model/evidence/parse_json.h"

namespace lockstep::profile_history {
namespace {

using analysis::Finding;
using analysis::FindingSeverity;

constexpr std::array kOutcomes = {"done", "partial", "failed"};
constexpr double kLargest = 1e18;  // Nanoseconds of thirty years: whatever is larger was not measured.
constexpr int64_t kLargestInt = 4'000'000'000'000'000'000;

/// At most `most` bytes of it, cut between characters.
std::string Cut(std::string_view text, size_t most) {
  std::string valid = ValidUtf8(text);
  if (valid.size() <= most) return valid;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(valid[end]) & 0xC0) == 0x80) --end;
  valid.resize(end);
  return valid;
}

/// A text that may be longer than what is kept of it.
void ReadCut(JsonObject& object, std::string_view name, size_t most, std::string* out) {
  std::string text;
  object.Read(name, &text);
  *out = Cut(text, most);
}

double FiniteOrZero(double value) { return std::isfinite(value) ? value : 0; }

Figure ReadFigure(JsonObject& object) {
  Figure figure;
  ReadCut(object, "name", kMostNameBytes, &figure.name);
  ReadCut(object, "unit", 16, &figure.unit);
  object.Number("value", kLargest, &figure.value);
  object.Number("whole", kLargest, &figure.whole);
  object.Int("rank", 0, INT32_MAX, &figure.rank);
  object.Require("name", !figure.name.empty());
  return figure;
}

Finding ReadFinding(JsonObject& object) {
  Finding finding;
  std::string severity;
  ReadCut(object, "id", kMostNameBytes, &finding.id);
  ReadCut(object, "title", kMostTextBytes, &finding.title);
  ReadCut(object, "severity", 16, &severity);
  finding.severity = severity == "critical"  ? FindingSeverity::kCritical
                     : severity == "warning" ? FindingSeverity::kWarning
                                             : FindingSeverity::kInfo;
  object.List("ranks", kMostRanks, [&](JsonValue value, const std::string& path) -> Status {
    const std::optional<int32_t> rank = value.Int32();
    if (!rank || *rank < 0) return Error{ErrorCode::kCorruptData, path + " is not a rank"};
    finding.ranks.push_back(*rank);
    return {};
  });
  object.Int("gain_ns_per_step", 0, kLargestInt, &finding.gain_ns_per_step);
  return finding;
}

}  // namespace

const char* OutcomeName(Outcome outcome) { return kOutcomes[static_cast<size_t>(outcome)]; }

std::optional<Outcome> FindOutcome(const std::string& name) {
  for (size_t i = 0; i < kOutcomes.size(); ++i) {
    if (name == kOutcomes[i]) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

std::string WriteRecord(const CaptureRecord& record) {
  JsonWriter line;
  line.StartObject().Key("schema").Text("lockstep.profile/1").Key("capture").Text(Cut(record.capture, kMostNameBytes));
  line.Key("time_unix_ns").Int(record.time_unix_ns).Key("job_id").Text(Cut(record.job_id, kMostNameBytes));
  line.Key("world_size").Int(record.world_size).Key("outcome").Text(OutcomeName(record.outcome));
  line.Key("reason").Text(Cut(record.reason, kMostTextBytes)).Key("took_ns").Int(record.took_ns);
  line.Key("step_count").Int(record.step_count).Key("figures").StartArray();
  for (size_t i = 0; i < std::min(record.figures.size(), kMostFigures); ++i) {
    const Figure& figure = record.figures[i];
    line.StartObject().Key("name").Text(Cut(figure.name, kMostNameBytes)).Key("unit").Text(Cut(figure.unit, 16));
    line.Key("value").Double(FiniteOrZero(figure.value)).Key("whole").Double(FiniteOrZero(figure.whole));
    line.Key("rank").Optional(figure.rank).EndObject();
  }
  line.EndArray().Key("own_ns").StartArray();
  for (size_t i = 0; i < std::min(record.own_ns.size(), kMostRanks); ++i) {
    line.StartArray().Int(record.own_ns[i].first).Int(record.own_ns[i].second).EndArray();
  }
  line.EndArray().Key("findings").StartArray();
  for (size_t i = 0; i < std::min(record.findings.size(), kMostFindings); ++i) {
    const Finding& finding = record.findings[i];
    line.StartObject().Key("id").Text(Cut(finding.id, kMostNameBytes)).Key("severity");
    line.Text(analysis::FindingSeverityName(finding.severity)).Key("ranks").StartArray();
    // The worst come first: a handful says whom it is about.
    for (size_t r = 0; r < std::min<size_t>(finding.ranks.size(), 64); ++r) line.Int(finding.ranks[r]);
    line.EndArray().Key("title").Text(Cut(finding.title, kMostTextBytes));
    line.Key("gain_ns_per_step").Optional(finding.gain_ns_per_step).EndObject();
  }
  return line.EndArray().EndObject().Take();
}

Result<CaptureRecord> ReadRecord(const std::string& line) {
  if (line.size() > kMostLineBytes) return Error{ErrorCode::kLimitExceeded, "the line is longer than 4 MiB"};
  ASSIGN_OR_RETURN(const JsonTree document, evidence::ParseJson(line));
  JsonObject object(document.root(), "");
  CaptureRecord record;
  std::string schema, outcome_name;
  object.Read("schema", &schema);
  if (schema != "lockstep.profile/1") object.Fail(ErrorCode::kCorruptData, "schema", "is not lockstep.profile/1");
  ReadCut(object, "capture", kMostNameBytes, &record.capture);
  // It names a folder.
  const bool is_name = record.capture.find_first_not_of("0123456789TZ-") == std::string::npos;
  if (record.capture.empty() || !is_name) object.Fail(ErrorCode::kCorruptData, "capture", "is not a capture's name");
  object.Int("time_unix_ns", 0, kLargestInt, &record.time_unix_ns);
  ReadCut(object, "job_id", kMostNameBytes, &record.job_id);
  object.Int("world_size", 0, INT32_MAX, &record.world_size);
  object.Read("outcome", &outcome_name);
  const std::optional<Outcome> outcome = FindOutcome(outcome_name);
  if (!outcome) object.Fail(ErrorCode::kCorruptData, "outcome", "is none of done, partial and failed");
  record.outcome = outcome.value_or(Outcome::kFailed);
  ReadCut(object, "reason", kMostTextBytes, &record.reason);
  object.Int("took_ns", 0, kLargestInt, &record.took_ns);
  object.Int("step_count", 0, kLargestInt, &record.step_count);
  std::set<std::string> names;
  object.Objects("figures", kMostFigures, [&](JsonObject& figure) {
    record.figures.push_back(ReadFigure(figure));
    if (!names.insert(record.figures.back().name).second) {
      figure.Fail(ErrorCode::kCorruptData, "name", "comes twice");
    }
  });
  object.List("own_ns", kMostRanks, [&](JsonValue pair, const std::string& path) -> Status {
    const bool is_pair = pair.IsArray() && pair.size() == 2;
    const std::optional<int32_t> rank = is_pair ? pair[0].Int32() : std::nullopt;
    const std::optional<int64_t> time_ns = is_pair ? pair[1].Int() : std::nullopt;
    if (!rank || *rank < 0 || !time_ns || *time_ns < 0 || *time_ns > kLargestInt) {
      return Error{ErrorCode::kCorruptData, path + " is not a rank and a time"};
    }
    record.own_ns.emplace_back(*rank, *time_ns);
    return {};
  });
  object.Objects("findings", kMostFindings,
                 [&](JsonObject& finding) { record.findings.push_back(ReadFinding(finding)); });
  RETURN_IF_ERROR(object.status());
  return record;
}

}  // namespace lockstep::profile_history
