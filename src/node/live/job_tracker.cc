#include "node/live/job_tracker.h"

#include <algorithm>
#include <utility>

#include "base/median.h"
#include "node/live/job_figures.h"
#include "node/live/node_track.h"

namespace lockstep::live {
namespace {

// A node that is silent for so long is not a hiccup of the network.
constexpr int64_t kSilenceNs = 60'000'000'000;

void AddServing(const NodeTrack& node, std::map<std::string, JobView>* jobs) {
  for (ServingView& view : node.Serving()) {
    JobView& job = (*jobs)[view.reading.job_id];
    const auto is_same = [&](const ServingView& known) {
      return known.host == view.host && known.reading.model == view.reading.model &&
             known.reading.engine == view.reading.engine;
    };
    // Two daemons of one machine say the same.
    if (std::none_of(job.serving.begin(), job.serving.end(), is_same)) job.serving.push_back(std::move(view));
  }
}

}  // namespace

JobTracker::JobTracker(int64_t window_ns, bool is_whole_job) : window_ns_(window_ns), is_whole_job_(is_whole_job) {}
JobTracker::~JobTracker() = default;

void JobTracker::Recall(std::vector<NodeLook> looks, int64_t now_ns, int64_t now_unix_ns) {
  Take(std::move(looks), now_ns, now_unix_ns);
  --look_count_;
}

/// Ranks of nodes that do not answer are kept until other nodes show that they have moved or ended.
void JobTracker::ForgetTheDead(int64_t now_ns) {
  std::set<RankKey> heard_ranks;
  std::set<std::string> heard_jobs;
  std::map<std::string, uint64_t> sizes;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->error) continue;
    for (const auto& [key, track] : nodes_[i]->ranks) {
      heard_ranks.insert(key);
      heard_jobs.insert(std::get<0>(key));
      jobs_[std::get<0>(key)].nodes.insert(i);
    }
    for (const auto& [id, reading] : nodes_[i]->last.reading.jobs) {
      if (const auto size = Count(reading.world_size)) sizes[id] = std::max(sizes[id], *size);
    }
  }
  // Where others of the job ran and could be asked, none runs now.
  const auto has_ended = [&](const std::string& id) {
    if (heard_jobs.contains(id)) return false;
    const auto job = jobs_.find(id);
    return job != jobs_.end() && std::any_of(job->second.nodes.begin(), job->second.nodes.end(),
                                             [&](size_t i) { return !nodes_[i]->error.has_value(); });
  };
  for (const auto& node : nodes_) {
    if (!node->error || !node->answered_ns) continue;
    const bool is_dead = now_ns - *node->answered_ns >= kSilenceNs;
    std::set<std::string> left;
    std::erase_if(node->ranks, [&](const auto& entry) {
      const auto& [id, rank] = entry.first;
      const auto size = sizes.find(id);
      const auto number = RankNumber(rank);
      const bool is_beyond = heard_jobs.contains(id) && size != sizes.end() && number && *number >= size->second;
      if (heard_ranks.contains(entry.first) || is_beyond || (is_dead && has_ended(id))) return true;
      left.insert(id);
      return false;
    });
    std::erase_if(node->last.reading.jobs, [&](const auto& entry) {
      return !left.contains(entry.first) && (heard_jobs.contains(entry.first) || (is_dead && has_ended(entry.first)));
    });
  }
}

View JobTracker::Take(std::vector<NodeLook> looks, int64_t now_ns, int64_t now_unix_ns) {
  ++look_count_;
  while (nodes_.size() < looks.size()) nodes_.push_back(std::make_unique<NodeTrack>());
  for (size_t i = 0; i < looks.size(); ++i) {
    nodes_[i]->Take(std::move(looks[i]), window_ns_);
  }
  ForgetTheDead(now_ns);
  View view;
  view.taken_unix_ns = now_unix_ns;
  view.window_ns = window_ns_;
  view.look_count = look_count_;
  std::map<std::string, JobView> jobs;
  std::map<std::string, std::vector<int64_t>> newest_steps;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> there;
  // Those that answer first: what two daemons of one machine know of one process counts once, and from who lives.
  std::vector<size_t> order(nodes_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return !nodes_[i]->error; });
  for (const size_t i : order) {
    NodeTrack& node = *nodes_[i];
    for (auto& [key, track] : node.ranks) {
      RankView rank = node.ViewOf(track, now_unix_ns);
      if (!there.emplace(track.reading.job_id, rank.rank, rank.host, rank.pid).second) continue;
      rank.node_idx = i;
      if (!node.error && track.newest_step_ns) newest_steps[track.reading.job_id].push_back(*track.newest_step_ns);
      jobs[track.reading.job_id].ranks.push_back(std::move(rank));
    }
    for (const auto& [id, reading] : node.last.reading.jobs) {
      JobView& job = jobs[id];
      if (const auto size = Count(reading.world_size)) job.world_size = std::max(job.world_size.value_or(0), *size);
      if (const auto median = Nanoseconds(reading.step_median_s)) {
        job.step_median_ns = std::max(job.step_median_ns.value_or(0), *median);
      }
    }
    if (!node.error) AddServing(node, &jobs);
  }
  for (const auto& node : nodes_) view.nodes.push_back(node->View(now_ns));
  std::erase_if(jobs_, [&](const auto& entry) { return !jobs.contains(entry.first); });
  for (auto& [id, job] : jobs) {
    job.job_id = id;
    FinishJob(&job);
    JobTrack& track = jobs_[id];
    for (const RankView& rank : job.ranks) track.seen_ranks.insert(rank.rank);
    std::set<std::string> gone = track.seen_ranks;
    for (const RankView& rank : job.ranks) gone.erase(rank.rank);
    // A job that was restarted with fewer ranks does not miss the ranks that it had before.
    if (job.world_size) {
      std::erase_if(gone,
                    [size = *job.world_size](const std::string& rank) { return RankNumber(rank).value_or(0) >= size; });
    }
    AddAlarms(&job, gone, is_whole_job_);
    std::vector<int64_t>& steps = newest_steps[id];
    if (!steps.empty()) {
      if (track.step_history.size() == kHistory) track.step_history.erase(track.step_history.begin());
      track.step_history.push_back(LowerMedian(&steps));
    }
    job.step_history = track.step_history;
    view.jobs.push_back(std::move(job));
  }
  return view;
}

}  // namespace lockstep::live
