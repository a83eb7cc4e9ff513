#include "node/jobs/live_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/host_name.h"
#include "base/most_ranks.h"
#include "base/mutex.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/fan_out.h"
#include "node/control/client/job_links.h"
#include "node/inspect/job_look.h"

namespace lockstep::jobs {
namespace {

using control::Inspection;
using control::InspectionDepth;
using control::InspectionSpec;
using control::ProcessGlance;

constexpr int64_t kLongestInspectionNs = 30 * kSecondNs;
constexpr size_t kMostNamed = 4096;
constexpr size_t kNodesForRas = 2;

/// What tells one job from another; ranks of one name that come twice are two jobs, by their launchers.
using JobKey = std::tuple<control::JobKind, std::string, uint32_t>;
JobKey JobKeyOf(const ProcessGlance& glance) { return {glance.job_kind, glance.job_id, glance.uid}; }

std::string JobKeyText(const JobKey& key) {
  const auto& [kind, id, uid] = key;
  if (!id.empty()) return fmt::format("job {} (--job {})", id, id);
  return fmt::format("processes of user {} without a job", uid);
}

/// Errors when there is more than one job.
Status CheckOneJob(const std::vector<NodeLook>& looks) {
  std::map<JobKey, size_t> jobs;
  std::map<std::tuple<JobKey, int32_t>, std::set<std::string>> launchers;
  for (const NodeLook& look : looks) {
    for (const ProcessGlance& glance : look.inspection.glances) {
      // One that has ended shows no environment any more: it makes no job of its own.
      if (glance.job_kind == control::JobKind::kNone && !glance.rank) continue;
      ++jobs[JobKeyOf(glance)];
      if (!glance.rank) continue;
      launchers[{JobKeyOf(glance), *glance.rank}].insert(fmt::format("--pid {}", glance.launcher_pid));
    }
  }
  if (jobs.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [key, count] : jobs) names.push_back(fmt::format("{}: {} processes", JobKeyText(key), count));
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("several jobs run there, name one: {}", fmt::join(names, "; "))};
  }
  for (const auto& [key, pids] : launchers) {
    if (pids.size() < 2) continue;
    return Error{ErrorCode::kInvalidArgument, fmt::format("several jobs have a rank {}, name one by its launcher: {}",
                                                          std::get<1>(key), fmt::join(pids, " or "))};
  }
  return {};
}

void NameMissingRanks(const std::vector<bool>& found, CollectedJob* job) {
  size_t named = 0;
  for (size_t rank = 0; rank < found.size() && named < kMostNamed; ++rank) {
    if (found[rank]) continue;
    ++named;
    job->missing.push_back(
        {.rank = static_cast<int32_t>(rank),
         .host = "",
         .what = "process",
         .reason = "no process of this rank runs on the nodes that were asked: it has ended, or runs elsewhere",
         .remedy = "the launcher's log says how it ended; name all nodes of the job with --host or --job"});
  }
}

}  // namespace

LiveJob::LiveJob(Nodes nodes, InspectionSpec selection)
    : nodes_(std::move(nodes)),
      selection_(std::move(selection)),
      is_local_(nodes_.is_local),
      clients_(nodes_.endpoints.size()) {}

NodeLook LiveJob::LookHere(const InspectionSpec& spec, int64_t deadline_ns) {
  NodeLook look;
  look.host = HostName("localhost");
  const uint32_t self = ::geteuid();
  Result<Inspection> seen = inspect::LookAtJob(
      spec, [self](uint32_t uid) { return self == 0 || uid == self; }, look.host);
  if (seen) {
    look.inspection = std::move(*seen);
    return look;
  }
  // Not this user's: the daemon may.
  if (!nodes_.endpoints.empty()) {
    NodeLook answer = Ask(0, spec, deadline_ns);
    if (!answer.error) {
      is_local_ = false;
      return answer;
    }
    if (seen.error().code == ErrorCode::kNotFound) {
      look.error = answer.error;
      return look;
    }
  }
  look.error = seen.error();
  if (!nodes_.scheduler_problem.empty()) {
    look.error->message += "; the job's other nodes could not be found: " + nodes_.scheduler_problem;
  }
  return look;
}

NodeLook LiveJob::Ask(size_t i, const InspectionSpec& spec, int64_t deadline_ns) {
  NodeLook look;
  look.host = nodes_.endpoints[i].host;
  const auto ask = [&]() -> Result<Inspection> {
    if (clients_[i] == nullptr) {
      ASSIGN_OR_RETURN(clients_[i], control::NodeClient::Create(nodes_.endpoints[i]));
    }
    return clients_[i]->Inspect(spec, deadline_ns);
  };
  Result<Inspection> answer = ask();
  if (answer) {
    look.inspection = std::move(*answer);
    if (!look.inspection.host.empty()) look.host = look.inspection.host;
    return look;
  }
  look.error = answer.error();
  if (answer.error().code == ErrorCode::kIo || answer.error().code == ErrorCode::kCancelled) clients_[i].reset();
  return look;
}

std::vector<NodeLook> LiveJob::Look(InspectionDepth depth, int64_t deadline_ns,
                                    const std::function<void(size_t done, size_t total)>& on_node) {
  InspectionSpec spec = selection_;
  spec.depth = depth;
  // The answer has to come back within the time, too.
  spec.deadline_ns = std::clamp<int64_t>(deadline_ns / 3 * 2, kSecondNs / 10, kLongestInspectionNs);
  if (is_local_) {
    NodeLook look = LookHere(spec, deadline_ns);
    if (on_node) on_node(1, 1);
    std::vector<NodeLook> looks;
    looks.push_back(std::move(look));
    return looks;
  }
  const size_t count = nodes_.endpoints.size();
  std::vector<NodeLook> looks(count);
  Mutex mutex;
  size_t done = 0;
  control::ForEachNode(
      count, nodes_.parallel, deadline_ns,
      [&](size_t i, int64_t left_ns) {
        InspectionSpec of_node = spec;
        // RAS answers for all nodes; each question goes round the whole job, so two see it from two sides.
        of_node.ras = spec.ras && i < kNodesForRas;
        looks[i] = Ask(i, of_node, left_ns);
        const MutexLock lock(mutex);
        if (on_node) on_node(++done, count);
      },
      [&](size_t i) {
        looks[i].host = nodes_.endpoints[i].host;
        looks[i].error = Error{ErrorCode::kCancelled, "was not asked: the time limit was reached first"};
      });
  return looks;
}

bool LiveJob::AsksForAllRanks(const std::vector<NodeLook>& looks) const {
  if (!selection_.ranks.empty()) return false;
  if (selection_.pids.empty()) return true;
  const auto is_named = [&](const ProcessGlance& glance) {
    return std::find(selection_.pids.begin(), selection_.pids.end(), glance.launcher_pid) != selection_.pids.end();
  };
  return std::any_of(looks.begin(), looks.end(), [&](const NodeLook& look) {
    return std::any_of(look.inspection.glances.begin(), look.inspection.glances.end(), is_named);
  });
}

Result<CollectedJob> JoinLooks(std::vector<NodeLook> looks, bool all_ranks) {
  RETURN_IF_ERROR(CheckOneJob(looks));
  CollectedJob job;
  job.collected_unix_ns = UnixNow();
  std::vector<bool> found;
  size_t count = 0;
  for (NodeLook& look : looks) {
    job.nodes.push_back({look.host, look.error ? look.error->ToString() : ""});
    if (look.error) continue;
    for (const ProcessGlance& glance : look.inspection.glances) {
      ++count;
      if (glance.job_kind != control::JobKind::kNone) job.job_kind = control::JobKindName(glance.job_kind);
      if (job.job_id.empty()) job.job_id = glance.job_id;
      if (glance.world_size) job.world_size = std::max(job.world_size.value_or(0), *glance.world_size);
      if (!glance.rank || *glance.rank >= kMostRanks) continue;
      found.resize(std::max<size_t>(found.size(), static_cast<size_t>(*glance.rank) + 1));
      found[static_cast<size_t>(*glance.rank)] = true;
    }
    std::move(look.inspection.processes.begin(), look.inspection.processes.end(), std::back_inserter(job.processes));
    for (control::RasReply& reply : look.inspection.ras) job.ras.push_back({look.host, std::move(reply)});
    std::move(look.inspection.missing.begin(), look.inspection.missing.end(), std::back_inserter(job.missing));
  }
  if (count == 0) {
    for (const NodeLook& look : looks) {
      if (look.error)
        return looks.size() == 1 ? *look.error : Error{look.error->code, look.host + ": " + look.error->ToString()};
    }
    return Error{ErrorCode::kNotFound, "no process was found"};
  }
  if (all_ranks && !found.empty() && job.world_size) {
    found.resize(static_cast<size_t>(std::clamp(*job.world_size, static_cast<int32_t>(found.size()), kMostRanks)));
    NameMissingRanks(found, &job);
  }
  return job;
}

Result<Collection> CollectEvidence(LiveJob& live, int64_t deadline_ns, const std::string& folder,
                                   const std::function<void(size_t done, size_t total)>& on_node) {
  Collection collection;
  std::vector<NodeLook> looks = live.Look(InspectionDepth::kFull, deadline_ns, on_node);
  const bool all_ranks = live.AsksForAllRanks(looks);
  ASSIGN_OR_RETURN(collection.job, JoinLooks(std::move(looks), all_ranks));
  const CollectedJob& job = collection.job;
  std::error_code error;
  const std::string parent = std::filesystem::temp_directory_path(error).string();
  collection.folder = folder.empty()
                          ? FreshFolderName(parent.empty() ? "/tmp" : parent, "hang", job.job_id, job.collected_unix_ns)
                          : folder;
  RETURN_IF_ERROR(WriteEvidenceFolder(job, collection.folder));
  return collection;
}

std::string CollectionText(const Collection& collection) {
  const CollectedJob& job = collection.job;
  std::string text;
  for (const CollectedNode& node : job.nodes) {
    if (!node.problem.empty()) text += fmt::format("{}: {}\n", node.host, node.problem);
  }
  const size_t count = job.processes.size();
  text += fmt::format("looked at {} process{} on {} node{}; evidence is kept in {}", count, count == 1 ? "" : "es",
                      job.nodes.size(), job.nodes.size() == 1 ? "" : "s", collection.folder);
  return text;
}

}  // namespace lockstep::jobs
