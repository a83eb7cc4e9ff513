#include "ingest/job/communicators.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace lockstep::ingest {
namespace {

/// Ranks of the job by rank in the communicator, as far as rings say.
using Places = std::map<int32_t, int32_t>;

/// Of all communicators together, 256 MiB: a file of a hundred bytes may say of tens of thousands of them that they
/// have millions of ranks. Members of further ones stay unknown.
constexpr int64_t kMostMembers = int64_t{1} << 26;

std::vector<int32_t> RanksOf(const Places& places, std::optional<int32_t> size, std::optional<int32_t> world_size,
                             int64_t most_members) {
  std::vector<int32_t> ranks;
  if (!size || *size <= 0 || *size > most_members) return ranks;
  bool is_whole_job = world_size == size;
  std::set<int32_t> seen;
  for (const auto& [place, rank] : places) {
    // Two members of one rank: a process that drives several devices. Members cannot be told apart by ranks then.
    if (place < 0 || place >= *size || !seen.insert(rank).second) return ranks;
    is_whole_job = is_whole_job && place == rank;
  }
  if (places.size() == static_cast<size_t>(*size)) {
    for (const auto& [place, rank] : places) ranks.push_back(rank);
  } else if (is_whole_job) {
    ranks.resize(static_cast<size_t>(*size));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  return ranks;
}

}  // namespace

void ResolvePeers(const std::vector<CommunicatorPlace>& communicators, model::RankTrace* trace) {
  std::map<uint64_t, const std::vector<int32_t>*> ranks;
  for (size_t i = 0; i < communicators.size() && i < trace->groups.size(); ++i) {
    ranks.emplace(communicators[i].id, &trace->groups[i].ranks);
  }
  for (model::CollectiveRecord& record : trace->collectives) {
    const auto known = record.communicator_id ? ranks.find(*record.communicator_id) : ranks.end();
    for (std::optional<int32_t>* peer : {&record.source_rank, &record.destination_rank}) {
      if (!*peer) continue;
      const auto place = static_cast<size_t>(**peer);
      const bool is_known = known != ranks.end() && **peer >= 0 && place < known->second->size();
      *peer = is_known ? std::optional((*known->second)[place]) : std::nullopt;
    }
  }
}

void ResolveCommunicators(std::vector<LoadedTrace>* traces) {
  std::map<uint64_t, Places> places;
  for (const LoadedTrace& loaded : *traces) {
    for (const CommunicatorPlace& communicator : loaded.communicators) {
      places[communicator.id].emplace(communicator.rank, loaded.trace.rank.value);
    }
  }
  int64_t left = kMostMembers;
  for (LoadedTrace& loaded : *traces) {
    if (!loaded.is_nccl_ring) continue;
    for (size_t i = 0; i < loaded.communicators.size() && i < loaded.trace.groups.size(); ++i) {
      model::ProcessGroup& group = loaded.trace.groups[i];
      group.ranks = RanksOf(places[loaded.communicators[i].id], group.size, loaded.trace.world_size, left);
      left -= static_cast<int64_t>(group.ranks.size());
    }
    ResolvePeers(loaded.communicators, &loaded.trace);
  }
}

}  // namespace lockstep::ingest
