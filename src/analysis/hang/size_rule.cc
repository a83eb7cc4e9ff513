#include "analysis/hang/size_rule.h"

#include <vector>

namespace lockstep::hang {

bool BreaksSizeRule(const JobView& view, const GroupView& group, int32_t rank, int64_t sequence) {
  const Track* track = group.TrackOf(rank);
  const Call* call = track == nullptr ? nullptr : FindCall(*track, sequence);
  if (call == nullptr || group.members_inferred) {
    return false;
  }
  const OperationKind kind = view.signatures[call->signature].kind;
  if (kind != OperationKind::kAllGather && kind != OperationKind::kReduceScatter) {
    return false;
  }
  const evidence::FlightRecord& record = *view.ranks[track->rank_index].evidence->record;
  const evidence::FlightEntry& entry = record.entries[call->entry];
  const auto count = [&](uint32_t list) {
    double sum = 0;
    for (const std::vector<int64_t>& shape : record.size_lists[list]) {
      double product = 1;
      for (const int64_t extent : shape) {
        product *= static_cast<double>(extent);
      }
      sum += product;
    }
    return sum;
  };
  const double input = count(entry.input_sizes);
  const double output = count(entry.output_sizes);
  const auto members = static_cast<double>(group.members.size());
  if (input <= 0 || output <= 0) {
    return false;
  }
  return kind == OperationKind::kAllGather ? output != input * members : input != output * members;
}

}  // namespace lockstep::hang
