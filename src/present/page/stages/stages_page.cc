#include "present/page/stages/stages_page.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <vector>

#include "analysis/rank_memory/rank_memory.h"
#include "model/stages/rank_memory.h"
#include "present/page/answer_page.h"
#include "present/report/json_stream.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::page {
namespace {

using frontier::JobStages;
using model::MemorySample;
using rank_memory::Signal;
using report::JsonRow;

constexpr size_t kMostMemoryLines = 64;

const std::vector<MemorySample>& SamplesOf(const JobStages& job, size_t rank_idx, Signal signal) {
  return rank_memory::SeriesOf(job.ranks[rank_idx].memory, signal).samples();
}

/// Ranks with two samples or more; those that findings name come first.
std::vector<size_t> RanksToDraw(const JobStages& job, Signal signal, const std::set<size_t>& named) {
  std::vector<size_t> drawn(named.begin(), named.end());
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    if (!named.contains(i)) drawn.push_back(i);
  }
  std::erase_if(drawn, [&](size_t i) { return SamplesOf(job, i, signal).size() < 2; });
  if (drawn.size() > kMostMemoryLines) drawn.resize(kMostMemoryLines);
  return drawn;
}

/// Times from the first sample of all on.
void MemoryLines(const JobStages& job, JsonRow* json) {
  int64_t begin_ns = INT64_MAX;
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    for (const Signal signal : rank_memory::kSignals) {
      const std::vector<MemorySample>& samples = SamplesOf(job, i, signal);
      if (!samples.empty()) begin_ns = std::min(begin_ns, samples.front().time_ns);
    }
  }
  json->Key("memory_lines").StartArray();
  for (const Signal signal : rank_memory::kSignals) {
    std::set<size_t> named;
    for (const rank_memory::Finding& finding : job.memory.findings) {
      if (finding.signal == signal && finding.rank_idx) named.insert(*finding.rank_idx);
    }
    for (const size_t i : RanksToDraw(job, signal, named)) {
      json->StartObject().Key("rank").Int(job.ranks[i].rank).Key("signal").Text(SignalName(signal));
      json->Key("time_ns").StartArray();
      for (const MemorySample& sample : SamplesOf(job, i, signal)) json->Int(sample.time_ns - begin_ns);
      json->EndArray().Key("bytes").StartArray();
      for (const MemorySample& sample : SamplesOf(job, i, signal)) json->Int(sample.bytes);
      json->EndArray().EndObject();
    }
  }
  json->EndArray();
}

std::string DataJson(const JobStages& job) {
  JsonRow json;
  json.Key("answer").Raw(report::StagesDataJson(job));
  json.Key("why").Text(report::StagesWhy(job)).Key("next").Text(report::StagesNext(job));
  MemoryLines(job, &json);
  return std::string(json.Finish());
}

}  // namespace

std::string StagesPage(const JobStages& job) {
  std::ostringstream text;
  report::TextOptions options;
  options.width = 110;
  options.top = 20;
  report::WriteStagesText(job, options, text);
  return ComposeAnswerPage({.kind = PageKind::kStages,
                            .title = "What costs the job time - lockstep",
                            .lead_html = LeadHtml(report::StagesSentence(job)),
                            .text = text.str(),
                            .partial = report::IsPartial(job),
                            .ledger = job.ledger,
                            .data_json = DataJson(job)});
}

}  // namespace lockstep::page
