#include "programs/doctor/look.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "analysis/hang/diagnosis.h"
#include "ingest/evidence/evidence_files.h"
#include "node/jobs/live_job.h"

namespace lockstep::doctor {
namespace {

constexpr int64_t kLongestLookNs = 30'000'000'000;
// Longer than `hang` takes: a rank's share of a processor in half a second is chance.
constexpr int64_t kWindowNs = 2'000'000'000;
constexpr int64_t kSecondLookNs = 2 * kWindowNs;  // With less time left there is no second one.

/// Removes the folder at the end.
class FolderRemover {
 public:
  explicit FolderRemover(std::string path) : path_(std::move(path)) {}
  ~FolderRemover() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  FolderRemover(const FolderRemover&) = delete;
  FolderRemover& operator=(const FolderRemover&) = delete;

 private:
  const std::string path_;
};

bool IsStuck(hang::VerdictKind kind) {
  return kind != hang::VerdictKind::kHealthy && kind != hang::VerdictKind::kStraggler &&
         kind != hang::VerdictKind::kUndecidable;
}

bool HasLateness(const hang::Diagnosis& diagnosis) {
  return std::ranges::any_of(diagnosis.ranks, [](const auto& rank) { return rank.mean_lateness_ns.has_value(); });
}

int64_t LeftNs(std::chrono::steady_clock::time_point end) {
  return std::max<int64_t>((end - std::chrono::steady_clock::now()).count(), 1);
}

JobLook LookOnce(jobs::LiveJob& live, int64_t deadline_ns) {
  JobLook look;
  const Result<jobs::Collection> collection = jobs::CollectEvidence(live, deadline_ns, "");
  if (!collection) {
    look.no_verdict = collection.error().message;
    return look;
  }
  const FolderRemover remover(collection->folder);
  look.loads = LoadsOf(collection->job);
  look.devices = DevicesOf(collection->job);
  const Result<evidence::JobEvidence> evidence = ingest::ReadEvidence({collection->folder});
  if (!evidence) {
    look.no_verdict = evidence.error().message;
    return look;
  }
  look.verdict = hang::Diagnose(*evidence);
  return look;
}

}  // namespace

std::vector<RankLoad> LoadsOf(const jobs::CollectedJob& job) {
  std::vector<RankLoad> loads;
  for (const evidence::InspectedProcess& process : job.processes) {
    if (!process.rank || !process.state) continue;
    const evidence::ProcessState& state = *process.state;
    RankLoad load{
        .rank = *process.rank, .host = process.host, .resident_bytes = state.resident_bytes, .busy_cores = {}};
    if (state.cpu_ns && state.window_ns > 0) {
      load.busy_cores = static_cast<double>(*state.cpu_ns) / static_cast<double>(state.window_ns);
    }
    loads.push_back(std::move(load));
  }
  std::ranges::sort(loads, {}, [](const RankLoad& load) { return std::tie(load.rank, load.host); });
  return loads;
}

std::vector<NodeDevices> DevicesOf(const jobs::CollectedJob& job) {
  std::map<std::string, NodeDevices> by_host;
  for (const evidence::InspectedProcess& process : job.processes) {
    // Each process of a node carries them all.
    if (process.state) by_host.try_emplace(process.host, NodeDevices{process.host, process.state->devices});
  }
  std::vector<NodeDevices> nodes;
  for (auto& [host, devices] : by_host) nodes.push_back(std::move(devices));
  return nodes;
}

std::vector<int32_t> MovedRanks(const hang::Diagnosis& before, const hang::Diagnosis& after) {
  std::map<std::pair<std::string, int32_t>, int64_t> issued;
  for (const hang::GroupState& group : before.groups) {
    for (const hang::RankInGroup& rank : group.ranks) {
      if (rank.last_enqueued) issued[{group.name, rank.rank}] = *rank.last_enqueued;
    }
  }
  std::set<int32_t> moved;
  for (const hang::GroupState& group : after.groups) {
    for (const hang::RankInGroup& rank : group.ranks) {
      const auto found = issued.find({group.name, rank.rank});
      if (rank.last_enqueued && found != issued.end() && *rank.last_enqueued > found->second) moved.insert(rank.rank);
    }
  }
  return {moved.begin(), moved.end()};
}

JobLook LookAtRanks(const jobs::Nodes& nodes, bool names_daemon, int64_t deadline_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min(deadline_ns, kLongestLookNs));
  jobs::Nodes asked = nodes;
  if (names_daemon) asked.is_local = false;
  control::InspectionSpec selection;
  selection.job_id = nodes.job_id;
  selection.state_window_ns = kWindowNs;
  jobs::LiveJob live(std::move(asked), std::move(selection));
  JobLook look = LookOnce(live, LeftNs(end));
  if (!look.verdict || LeftNs(end) < kSecondLookNs) return look;
  const bool is_stuck = IsStuck(look.verdict->verdict.kind);
  // On a busy machine a rank's record may come too late for its calls to be compared with the others'.
  if (!is_stuck && (look.loads.size() < 2 || HasLateness(*look.verdict))) return look;
  JobLook again = LookOnce(live, LeftNs(end));
  if (!again.verdict || (!is_stuck && !HasLateness(*again.verdict))) return look;
  again.moved_ranks = MovedRanks(*look.verdict, *again.verdict);
  return again;
}

}  // namespace lockstep::doctor
