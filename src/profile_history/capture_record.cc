#include "profile_history/capture_record.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "base/utf8.h"
#include "evidence/json_object.h"

namespace lockstep::profile_history {
namespace {

using analysis::Finding;
using analysis::FindingSeverity;
using rapidjson::Value;

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

class LineWriter {
 public:
  LineWriter& Key(std::string_view name) {
    writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    return *this;
  }
  LineWriter& Text(std::string_view text, size_t most) {
    const std::string cut = Cut(text, most);
    writer_.String(cut.data(), static_cast<rapidjson::SizeType>(cut.size()));
    return *this;
  }
  LineWriter& Number(double value) {
    std::isfinite(value) ? writer_.Double(value) : writer_.Double(0);
    return *this;
  }
  LineWriter& Int(int64_t value) {
    writer_.Int64(value);
    return *this;
  }
  template <typename T>
  LineWriter& Optional(const std::optional<T>& value) {
    value ? writer_.Int64(*value) : writer_.Null();
    return *this;
  }
  LineWriter& Begin() {
    writer_.StartObject();
    return *this;
  }
  LineWriter& End() {
    writer_.EndObject();
    return *this;
  }
  LineWriter& BeginList() {
    writer_.StartArray();
    return *this;
  }
  LineWriter& EndList() {
    writer_.EndArray();
    return *this;
  }
  std::string Take() const { return {buffer_.GetString(), buffer_.GetSize()}; }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

/// Reads members of an object; the first that is wrong is kept.
class LineReader {
 public:
  explicit LineReader(const Value& value, const char* where) : value_(value), where_(where) {
    if (!value.IsObject()) Wrong("", "an object");
  }
  std::string Text(const char* name, size_t most) {
    const Value* value = Find(name);
    if (value == nullptr) return {};
    if (!value->IsString()) {
      Wrong(name, "a text");
      return {};
    }
    return Cut({value->GetString(), value->GetStringLength()}, most);
  }
  double Number(const char* name) {
    const Value* value = Find(name);
    if (value == nullptr) return 0;
    if (!value->IsNumber() || !std::isfinite(value->GetDouble()) || std::abs(value->GetDouble()) > kLargest) {
      Wrong(name, "a number");
      return 0;
    }
    return value->GetDouble();
  }
  std::optional<int64_t> Int(const char* name, int64_t least, int64_t most) {
    const Value* value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->IsInt64() || value->GetInt64() < least || value->GetInt64() > most) {
      Wrong(name, "a whole number in its range");
      return std::nullopt;
    }
    return value->GetInt64();
  }
  std::optional<int32_t> Rank(const char* name) {
    const std::optional<int64_t> rank = Int(name, 0, INT32_MAX);
    if (!rank) return std::nullopt;
    return static_cast<int32_t>(*rank);
  }
  /// Null when it is not there.
  const Value* List(const char* name, size_t most) {
    const Value* value = Find(name);
    if (value == nullptr) return nullptr;
    if (!value->IsArray() || value->Size() > most) {
      Wrong(name, "a list that is not too long");
      return nullptr;
    }
    return value;
  }
  void Wrong(const char* name, const char* expected) {
    if (!error_) error_ = Error{ErrorCode::kCorruptData, std::string(where_) + name + " is not " + expected};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const Value* Find(const char* name) {
    if (error_) return nullptr;
    const auto member = value_.FindMember(name);
    return member == value_.MemberEnd() || member->value.IsNull() ? nullptr : &member->value;
  }

  const Value& value_;
  const char* where_;
  std::optional<Error> error_;
};

Result<Figure> ReadFigure(const Value& value) {
  LineReader reader(value, "figures: ");
  Figure figure;
  figure.name = reader.Text("name", kMostNameBytes);
  figure.unit = reader.Text("unit", 16);
  figure.value = reader.Number("value");
  figure.whole = reader.Number("whole");
  figure.rank = reader.Rank("rank");
  if (figure.name.empty()) reader.Wrong("name", "there");
  if (reader.error()) return *reader.error();
  return figure;
}

Result<Finding> ReadFinding(const Value& value) {
  LineReader reader(value, "findings: ");
  Finding finding;
  finding.id = reader.Text("id", kMostNameBytes);
  finding.title = reader.Text("title", kMostTextBytes);
  const std::string severity = reader.Text("severity", 16);
  finding.severity = severity == "critical"  ? FindingSeverity::kCritical
                     : severity == "warning" ? FindingSeverity::kWarning
                                             : FindingSeverity::kInfo;
  if (const Value* ranks = reader.List("ranks", kMostRanks)) {
    for (const Value& rank : ranks->GetArray()) {
      if (!rank.IsInt() || rank.GetInt() < 0) {
        reader.Wrong("ranks", "a list of ranks");
        break;
      }
      finding.ranks.push_back(rank.GetInt());
    }
  }
  finding.gain_ns_per_step = reader.Int("gain_ns_per_step", 0, kLargestInt);
  if (reader.error()) return *reader.error();
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
  LineWriter line;
  line.Begin().Key("schema").Text("lockstep.profile/1", 32).Key("capture").Text(record.capture, kMostNameBytes);
  line.Key("time_unix_ns").Int(record.time_unix_ns).Key("job_id").Text(record.job_id, kMostNameBytes);
  line.Key("world_size").Int(record.world_size).Key("outcome").Text(OutcomeName(record.outcome), 16);
  line.Key("reason").Text(record.reason, kMostTextBytes).Key("took_ns").Int(record.took_ns);
  line.Key("step_count").Int(record.step_count).Key("figures").BeginList();
  for (size_t i = 0; i < std::min(record.figures.size(), kMostFigures); ++i) {
    const Figure& figure = record.figures[i];
    line.Begin().Key("name").Text(figure.name, kMostNameBytes).Key("unit").Text(figure.unit, 16);
    line.Key("value").Number(figure.value).Key("whole").Number(figure.whole);
    line.Key("rank").Optional(figure.rank).End();
  }
  line.EndList().Key("own_ns").BeginList();
  for (size_t i = 0; i < std::min(record.own_ns.size(), kMostRanks); ++i) {
    line.BeginList().Int(record.own_ns[i].first).Int(record.own_ns[i].second).EndList();
  }
  line.EndList().Key("findings").BeginList();
  for (size_t i = 0; i < std::min(record.findings.size(), kMostFindings); ++i) {
    const Finding& finding = record.findings[i];
    line.Begin().Key("id").Text(finding.id, kMostNameBytes).Key("severity");
    line.Text(analysis::FindingSeverityName(finding.severity), 16).Key("ranks").BeginList();
    // The worst come first: a handful says whom it is about.
    for (size_t r = 0; r < std::min<size_t>(finding.ranks.size(), 64); ++r) line.Int(finding.ranks[r]);
    line.EndList().Key("title").Text(finding.title, kMostTextBytes);
    line.Key("gain_ns_per_step").Optional(finding.gain_ns_per_step).End();
  }
  line.EndList().End();
  return line.Take();
}

Result<CaptureRecord> ReadRecord(const std::string& line) {
  if (line.size() > kMostLineBytes) return Error{ErrorCode::kLimitExceeded, "the line is longer than 4 MiB"};
  ASSIGN_OR_RETURN(const rapidjson::Document document, evidence::ParseJson(line));
  LineReader reader(document, "");
  CaptureRecord record;
  if (reader.Text("schema", 32) != "lockstep.profile/1") reader.Wrong("schema", "lockstep.profile/1");
  record.capture = reader.Text("capture", kMostNameBytes);
  // It names a folder.
  const bool is_name = record.capture.find_first_not_of("0123456789TZ-") == std::string::npos;
  if (record.capture.empty() || !is_name) reader.Wrong("capture", "a capture's name");
  record.time_unix_ns = reader.Int("time_unix_ns", 0, kLargestInt).value_or(0);
  record.job_id = reader.Text("job_id", kMostNameBytes);
  record.world_size = reader.Rank("world_size").value_or(0);
  const std::optional<Outcome> outcome = FindOutcome(reader.Text("outcome", 16));
  if (!outcome) reader.Wrong("outcome", "done, partial or failed");
  record.outcome = outcome.value_or(Outcome::kFailed);
  record.reason = reader.Text("reason", kMostTextBytes);
  record.took_ns = reader.Int("took_ns", 0, kLargestInt).value_or(0);
  record.step_count = reader.Int("step_count", 0, kLargestInt).value_or(0);
  const Value* figures = reader.List("figures", kMostFigures);
  const Value* own = reader.List("own_ns", kMostRanks);
  const Value* findings = reader.List("findings", kMostFindings);
  if (reader.error()) return *reader.error();
  std::set<std::string> names;
  for (rapidjson::SizeType i = 0; figures != nullptr && i < figures->Size(); ++i) {
    ASSIGN_OR_RETURN(Figure figure, ReadFigure((*figures)[i]));
    if (!names.insert(figure.name).second) return Error{ErrorCode::kCorruptData, "figures: one comes twice"};
    record.figures.push_back(std::move(figure));
  }
  for (rapidjson::SizeType i = 0; own != nullptr && i < own->Size(); ++i) {
    const Value& pair = (*own)[i];
    if (!pair.IsArray() || pair.Size() != 2 || !pair[0].IsInt() || pair[0].GetInt() < 0 || !pair[1].IsInt64() ||
        pair[1].GetInt64() < 0 || pair[1].GetInt64() > kLargestInt) {
      return Error{ErrorCode::kCorruptData, "own_ns is not a list of ranks and times"};
    }
    record.own_ns.emplace_back(pair[0].GetInt(), pair[1].GetInt64());
  }
  for (rapidjson::SizeType i = 0; findings != nullptr && i < findings->Size(); ++i) {
    ASSIGN_OR_RETURN(Finding finding, ReadFinding((*findings)[i]));
    record.findings.push_back(std::move(finding));
  }
  return record;
}

}  // namespace lockstep::profile_history
