#include "present/live_site/prometheus_alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "base/nanoseconds.h"
#include "node/control/api/parse_json.h"
#include "present/live_site/shipped_files.h"

namespace lockstep::live_site {
namespace {

constexpr size_t kTextBytes = 4096;

std::string Text(std::string_view text) { return std::string(text.substr(0, kTextBytes)); }

std::string Text(JsonValue value) { return Text(value.Text().value_or("")); }

/// "docs/runbook/xid.md" -> "xid".
std::string RunbookOf(const std::string& url) {
  const size_t slash = url.rfind('/');
  const std::string name = slash == std::string::npos ? url : url.substr(slash + 1);
  constexpr std::string_view kEnding = ".md";
  if (!name.ends_with(kEnding) || !ShippedFile(name)) return "";
  return name.substr(0, name.size() - kEnding.size());
}

Alert ReadAlert(JsonValue value) {
  Alert alert;
  for (const auto& [label, label_value] : value["labels"].members()) {
    const std::string name = Text(label);
    std::string text = Text(label_value);
    if (name == "alertname") {
      alert.name = std::move(text);
    } else if (name == "severity") {
      alert.severity = std::move(text);
    } else if (alert.labels.size() < kMostAlertLabels) {
      alert.labels[name] = std::move(text);
    }
  }
  alert.summary = Text(value.At({"annotations", "summary"}));
  alert.runbook = RunbookOf(Text(value.At({"annotations", "runbook_url"})));
  alert.is_firing = Text(value["state"]) == "firing";
  alert.since_unix_ns = ReadTimestamp(Text(value["activeAt"]));
  const std::string number = Text(value["value"]);
  if (!number.empty()) {
    char* end = nullptr;
    const double read = std::strtod(number.c_str(), &end);
    if (*end == '\0' && std::isfinite(read)) alert.value = read;
  }
  return alert;
}

int SeverityRank(const std::string& severity) {
  return severity == "critical" ? 0 : severity == "warning" ? 1 : severity == "info" ? 2 : 3;
}

}  // namespace

std::optional<int64_t> ReadTimestamp(std::string_view text) {
  // Digits at fixed places; what stands between them is known.
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = IsDigit(text[i]);
    if (kForm[i] == 'd' ? !is_digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](size_t at, size_t count) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + count, value);
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!day.ok() || number(0, 4) < 1970 || number(0, 4) > 2200 || number(11, 2) > 23 || number(14, 2) > 59 ||
      number(17, 2) > 60) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  int64_t fraction_ns = 0;
  if (!rest.empty()) {
    if (rest.front() != '.' || rest.size() < 2 || rest.size() > 10) return std::nullopt;
    int64_t unit_ns = 100'000'000;
    for (const char c : rest.substr(1)) {
      if (c < '0' || c > '9') return std::nullopt;
      fraction_ns += (c - '0') * unit_ns;
      unit_ns /= 10;
    }
  }
  const auto days = std::chrono::sys_days(day).time_since_epoch().count();
  const int64_t seconds = int64_t{days} * 86'400 + number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2);
  return seconds * kSecondNs + fraction_ns;
}

Result<std::vector<Alert>> ReadAlerts(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree tree, control::ParseJson(json));
  const JsonValue document = tree.root();
  if (Text(document["status"]) != "success") {
    const std::string words = Text(document["error"]);
    return Error{words.empty() ? ErrorCode::kCorruptData : ErrorCode::kIo,
                 words.empty() ? "is not an answer of Prometheus" : "Prometheus says: " + words};
  }
  const JsonValue list = document.At({"data", "alerts"});
  if (!list.IsArray()) return Error{ErrorCode::kCorruptData, "has no list of alerts"};
  std::vector<Alert> alerts;
  for (const JsonValue value : list.elements()) {
    if (value.IsObject()) alerts.push_back(ReadAlert(value));
  }
  const auto order = [](const Alert& alert) {
    return std::tuple(!alert.is_firing, SeverityRank(alert.severity), alert.since_unix_ns.value_or(0), alert.name);
  };
  std::stable_sort(alerts.begin(), alerts.end(), [&](const Alert& a, const Alert& b) { return order(a) < order(b); });
  if (alerts.size() > kMostAlerts) alerts.resize(kMostAlerts);
  return alerts;
}

}  // namespace lockstep::live_site
