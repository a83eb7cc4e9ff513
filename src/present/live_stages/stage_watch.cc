#include "present/live_stages/stage_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/now.h"
#include "model/stages/stage.h"
#include "present/report/stages/stages_report.h"

namespace lockstep::live_stages {
namespace {

using frontier::Answer;
using frontier::JobStages;

constexpr uint64_t kMostSteps = 240;  // Four a window.
constexpr uint64_t kLeastSteps = 24;  // A daemon that looked a second later has other steps of a fast job.
constexpr size_t kStepsTogether = 30'000;
constexpr size_t kMostJobs = 4;
constexpr int64_t kLeastRest = 3;  // Times what an answer took: a quarter of a core at most.

std::vector<StagedJob> StagedJobs(const live::View& view) {
  std::vector<StagedJob> jobs;
  for (const live::JobView& job : view.jobs) {
    std::string named;
    std::vector<int32_t> pids;
    live::SelectJob(job.job_id, &named, &pids);
    const auto count = std::count_if(job.ranks.begin(), job.ranks.end(),
                                     [](const live::RankView& rank) { return rank.step_count.value_or(0) > 0; });
    // A process that no launcher named is a job of one: nobody waits in it.
    if (count > 0 && pids.empty()) jobs.push_back({job.job_id, static_cast<size_t>(count)});
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const StagedJob& a, const StagedJob& b) { return a.rank_count > b.rank_count; });
  if (jobs.size() > kMostJobs) jobs.resize(kMostJobs);
  return jobs;
}

Result<JobStages> Assess(const AskSteps& ask, const StagedJob& job) {
  ASSIGN_OR_RETURN(ingest::StageFiles files, ask(job.job_id, StageWatch::StepsOf(job.rank_count)));
  return frontier::AssessJob(std::move(files.ranks), std::move(files.ledger), std::move(files.facts));
}

std::vector<JobNews> AskAll(const AskSteps& ask, const std::vector<StagedJob>& jobs) {
  std::vector<JobNews> news;
  for (const StagedJob& job : jobs) news.push_back({job.job_id, Assess(ask, job)});
  return news;
}

live::StageVerdict VerdictOf(const JobStages& job) {
  const frontier::Verdict& verdict = job.verdict;
  live::StageVerdict said{.answer = AnswerName(verdict.answer), .sentence = report::StagesSentence(job)};
  if (verdict.answer == Answer::kStraggler) said.rank = job.account.ranks[verdict.rank_idx];
  if (verdict.answer != Answer::kEven && verdict.answer != Answer::kUndecided) said.stage = StageName(verdict.stage);
  return said;
}

std::map<std::string, live::StageVerdict> VerdictsOf(const std::vector<JobNews>& news) {
  std::map<std::string, live::StageVerdict> verdicts;
  for (const JobNews& job : news) {
    if (job.stages) verdicts.emplace(job.job_id, VerdictOf(*job.stages));
  }
  return verdicts;
}

void PutIn(const std::map<std::string, live::StageVerdict>& verdicts, live::View* view) {
  for (live::JobView& job : view->jobs) {
    const auto found = verdicts.find(job.job_id);
    if (found != verdicts.end()) job.stages = found->second;
  }
}

}  // namespace

void AddVerdicts(const AskSteps& ask, live::View* view) { PutIn(VerdictsOf(AskAll(ask, StagedJobs(*view))), view); }

StageWatch::StageWatch(StageWatchOptions options) : options_(std::move(options)) {
  if (options_.ask) thread_ = std::thread([this] { Run(); });
}

StageWatch::~StageWatch() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t StageWatch::StepsOf(size_t rank_count) {
  return std::clamp<uint64_t>(kStepsTogether / std::max<size_t>(rank_count, 1), kLeastSteps, kMostSteps);
}

void StageWatch::Pass(live::View* view) {
  std::vector<StagedJob> jobs = StagedJobs(*view);
  {
    const MutexLock lock(mutex_);
    jobs_ = std::move(jobs);
    PutIn(verdicts_, view);
  }
  changed_.notify_all();
}

bool StageWatch::is_asking() const {
  const MutexLock lock(mutex_);
  return is_asking_;
}

void StageWatch::Run() {
  while (const std::optional<std::vector<StagedJob>> jobs = WaitForJobs()) {
    const int64_t begin_ns = SteadyNow();
    const std::vector<JobNews> news = AskAll(options_.ask, *jobs);
    if (options_.tell) options_.tell(news);
    const int64_t end_ns = SteadyNow();
    const MutexLock lock(mutex_);
    verdicts_ = VerdictsOf(news);
    due_ns_ = std::max(begin_ns + options_.interval_ns, end_ns + kLeastRest * (end_ns - begin_ns));
    is_asking_ = false;
  }
}

/// Nullopt: it ends.
std::optional<std::vector<StagedJob>> StageWatch::WaitForJobs() {
  MutexLock lock(mutex_);
  while (!ends_) {
    const bool is_wanted = !jobs_.empty() && (!options_.is_wanted || options_.is_wanted());
    const int64_t left_ns = is_wanted ? due_ns_ - SteadyNow() : kSecondNs;
    is_asking_ = left_ns <= 0;
    if (is_asking_) return jobs_;
    changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
  }
  return std::nullopt;
}

}  // namespace lockstep::live_stages
