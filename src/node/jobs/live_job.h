#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/inspection.h"
#include "node/control/client/node_client.h"
#include "node/jobs/evidence_folder.h"
#include "node/jobs/nodes.h"

namespace lockstep::jobs {

/// What one node said.
struct NodeLook {
  std::string host;
  std::optional<Error> error;
  control::Inspection inspection;
};

/// Processes of one job, wherever they run, to be looked at as often as one likes. On this node that takes no daemon;
/// one is asked where this user may not look. One thread.
class LiveJob {
 public:
  /// `selection`: which processes; what of them is said with each look.
  LiveJob(Nodes nodes, control::InspectionSpec selection);

  /// Asks all nodes at a time; a node that does not answer within `deadline_ns` has an error. `on_node` is called when
  /// one has answered, one call at a time.
  std::vector<NodeLook> Look(control::InspectionDepth depth, int64_t deadline_ns,
                             const std::function<void(size_t done, size_t total)>& on_node = {});
  /// Whether this process itself looks, without a daemon.
  bool is_in_process() const { return is_local_; }
  size_t node_count() const { return is_local_ ? 1 : nodes_.endpoints.size(); }
  /// Whether a rank that is not found is missing, and not just not asked for.
  bool AsksForAllRanks(const std::vector<NodeLook>& looks) const;

 private:
  NodeLook LookHere(const control::InspectionSpec& spec, int64_t deadline_ns);
  NodeLook Ask(size_t i, const control::InspectionSpec& spec, int64_t deadline_ns);

  const Nodes nodes_;
  const control::InspectionSpec selection_;
  bool is_local_;
  std::vector<std::unique_ptr<control::NodeClient>> clients_;
};

/// The looks as one job: its name, its world, with `all_ranks` those that were found nowhere. Errors: kInvalidArgument
/// (several jobs: says how each is named), kNotFound or a node's own error (nothing was found on any node).
Result<CollectedJob> JoinLooks(std::vector<NodeLook> looks, bool all_ranks);

/// Evidence, and where it is.
struct Collection {
  std::string folder;
  CollectedJob job;
};
/// Looks closely at every process and keeps what was found in `folder`, which must be empty or not there ("": a fresh
/// one in the system's temporary folder). Errors: those of JoinLooks and WriteEvidenceFolder.
Result<Collection> CollectEvidence(LiveJob& live, int64_t deadline_ns, const std::string& folder,
                                   const std::function<void(size_t done, size_t total)>& on_node = {});

/// "4 ranks on 2 nodes looked at; kept in ./lockstep-hang-...", with the nodes that did not answer.
std::string CollectionText(const Collection& collection);

}  // namespace lockstep::jobs
