#include "present/live_site/stage_news.h"

#include "analysis/frontier/job_stages.h"
#include "model/stages/stage.h"
#include "present/report/json_stream.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::live_site {
namespace {

using frontier::Accounting;
using frontier::JobStages;
using frontier::Window;
using live_stages::JobNews;
using report::JsonRow;

constexpr int64_t kLeastShare = 100;  // Of a window: less is not worth a colour.

/// A letter for each rank: the stage in which it held the job up; '.': it did not.
std::string Leads(const Window& window) {
  std::string leads(window.rank_cost_ns.size(), '.');
  for (size_t i = 0; i < leads.size(); ++i) {
    if (window.rank_cost_ns[i] <= window.ns / kLeastShare) continue;
    leads[i] = static_cast<char>('a' + static_cast<int>(window.rank_stage[i]));
  }
  return leads;
}

void WriteWindow(JsonRow& row, const Accounting& account, const Window& window) {
  row.Key("first_step").Int(window.first_step).Key("last_step").Int(window.last_step);
  row.Key("step_count").Int(window.step_count).Key("ns").Int(window.ns);
  row.Key("frontier_ns").List(window.frontier_ns).Key("cost_ns").Int(window.cost_ns).Key("rank");
  window.cost_ns > 0 ? row.Int(account.ranks[window.rank_idx]) : row.Null();
  row.Key("stage");
  window.cost_ns > 0 ? row.Text(StageName(window.cost_stage)) : row.Null();
  row.Key("leads").Text(Leads(window));
}

void WriteJob(JsonRow& row, const JobNews& news) {
  row.Key("job_id").Text(news.job_id).Key("problem").TextOrNull(news.stages ? "" : news.stages.error().message);
  if (!news.stages) return;
  const JobStages& job = *news.stages;
  row.Key("is_partial").Bool(report::IsPartial(job)).Key("verdict").Raw(report::StagesVerdictJson(job));
  row.Key("why").Text(report::StagesWhy(job)).Key("next").Text(report::StagesNext(job));
  row.Key("step_count").Int(job.account.step_count).Key("ranks").List(job.account.ranks);
  row.Key("windows").Each(job.over_time.windows, [&](const Window& window) { WriteWindow(row, job.account, window); });
}

}  // namespace

std::string StageNewsJson(const std::vector<JobNews>& jobs, int64_t asked_unix_ns) {
  JsonRow row;
  row.Key("asked_unix_ns").Int(asked_unix_ns).Key("stages").StartArray();
  for (const model::Stage stage : model::kStages) row.Text(StageName(stage));
  row.EndArray().Key("jobs").Each(jobs, [&](const JobNews& news) { WriteJob(row, news); });
  return std::string(row.Finish());
}

}  // namespace lockstep::live_site
