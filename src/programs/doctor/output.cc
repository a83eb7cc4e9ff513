#include "programs/doctor/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/host_name.h"
#include "base/json_writer.h"
#include "present/report/utf8.h"

namespace lockstep::doctor {

size_t CountOf(const std::vector<Check>& checks, CheckStatus status) {
  return static_cast<size_t>(std::ranges::count(checks, status, &Check::status));
}

void WriteText(const std::vector<Check>& checks, std::ostream& out) {
  for (const Check& check : checks) {
    const std::string name = check.subject.empty() ? check.id : fmt::format("{} {}", check.id, check.subject);
    out << fmt::format("{:<8} {}: {}\n", CheckStatusName(check.status), report::Printable(name),
                       report::Printable(check.finding));
    if (!check.advice.empty()) out << fmt::format("{:<8} -> {}\n", "", report::Printable(check.advice));
  }
  const size_t problems = CountOf(checks, CheckStatus::kProblem);
  const size_t warnings = CountOf(checks, CheckStatus::kWarning);
  out << fmt::format("\n{} problem{}, {} warning{}\n", problems, problems == 1 ? "" : "s", warnings,
                     warnings == 1 ? "" : "s");
}

void WriteJson(const std::vector<Check>& checks, std::ostream& out) {
  JsonDocument json(out, 1);
  json.StartObject().Key("schema").Text("lockstep.doctor/1").Key("partial").Bool(false);
  json.Key("data").StartObject().Key("host").Text(HostName());
  json.Key("problem_count").Uint(CountOf(checks, CheckStatus::kProblem));
  json.Key("warning_count").Uint(CountOf(checks, CheckStatus::kWarning));
  json.Key("checks").StartArray();
  for (const Check& check : checks) {
    json.StartObject().Key("id").Text(check.id).Key("subject").Text(check.subject);
    json.Key("status").Text(CheckStatusName(check.status)).Key("finding").Text(check.finding);
    json.Key("advice").Text(check.advice).Key("figures").StartArray();
    for (const CheckFigure& figure : check.figures) {
      json.StartObject().Key("name").Text(figure.name).Key("value").Double(figure.value);
      json.Key("unit").Text(figure.unit).EndObject();
    }
    json.EndArray().Key("hosts").StartArray();
    for (const std::string& host : check.hosts) json.Text(host);
    json.EndArray().Key("ranks").StartArray();
    for (const int32_t rank : check.ranks) json.Int(rank);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject().Key("ledger").StartArray().EndArray().EndObject();
  json.EndLine();
}

}  // namespace lockstep::doctor
