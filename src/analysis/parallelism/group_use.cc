#include "analysis/parallelism/group_use.h"

#include <fmt/format.h>

namespace lockstep::analysis {
namespace {

/// Gradients outweigh what else a data group reduces (losses, norms) by far more than this.
constexpr int64_t kGradientBytesFactor = 4;
/// all_reduces per rank and step from which on an inference job's group looks like tensor parallelism.
constexpr uint64_t kManyPerStep = 8;

GroupVerdict Verdict(GroupKind kind, GroupBasis basis, Confidence confidence, std::string evidence) {
  return {kind, basis, confidence, std::move(evidence)};
}

std::string PlaceText(const GroupPlace& place) {
  if (place.is_world) return fmt::format("all {} ranks", place.members.size());
  const auto stride = place.stride();
  if (!stride) return fmt::format("{} ranks", place.members.size());
  return *stride == 1 ? fmt::format("{} neighbouring ranks", place.members.size())
                      : fmt::format("{} ranks, every {}th", place.members.size(), *stride);
}

GroupVerdict FromSends(const GroupUse& use, const GroupPlace& place) {
  if (!use.peers_known) {
    return Verdict(GroupKind::kPipeline, GroupBasis::kTraffic, Confidence::kLow,
                   fmt::format("{} calls, all of them sends and receives; their peers are not recorded", use.calls));
  }
  if (use.far_sends == 0) {
    return Verdict(
        GroupKind::kPipeline, GroupBasis::kMembership, Confidence::kMedium,
        fmt::format("{} calls, all of them sends and receives between neighbours of {}", use.calls, PlaceText(place)));
  }
  return Verdict(GroupKind::kUnknown, GroupBasis::kNone, Confidence::kNone,
                 fmt::format("sends and receives only, {} of {} not between neighbours: an interleaved pipeline, or a "
                             "ring over parts of a sequence",
                             use.far_sends, use.calls));
}

/// Whether and how gradients go through the group; needs to know the backward pass.
std::optional<GroupVerdict> FromBackward(const GroupUse& use, const GroupPlace& place) {
  const std::string where = PlaceText(place);
  if (use.reduce_scatter_backward > 0 && use.all_gather > 0) {
    if (use.reduce_scatter_forward == 0) {
      return Verdict(GroupKind::kData, GroupBasis::kTraffic, Confidence::kMedium,
                     fmt::format("{}: {} all_gathers, and {} reduce_scatters in backward passes only", where,
                                 use.all_gather, use.reduce_scatter_backward));
    }
    return Verdict(GroupKind::kTensor, GroupBasis::kTraffic, Confidence::kLow,
                   fmt::format("{}: reduce_scatters in forward ({}) and backward ({}) passes, with {} all_gathers",
                               where, use.reduce_scatter_forward, use.reduce_scatter_backward, use.all_gather));
  }
  if (use.all_reduce_backward == 0) return std::nullopt;
  if (use.all_reduce_backward_bytes > 0 &&
      use.all_reduce_backward_bytes >= kGradientBytesFactor * use.all_reduce_forward_bytes) {
    return Verdict(GroupKind::kData, GroupBasis::kTraffic, Confidence::kMedium,
                   fmt::format("{}: {} all_reduces of {} bytes in backward passes, {} of {} bytes outside of them",
                               where, use.all_reduce_backward, use.all_reduce_backward_bytes, use.all_reduce_forward,
                               use.all_reduce_forward_bytes));
  }
  if (use.all_reduce_forward >= 2 * std::max<uint64_t>(use.rank_steps, 1)) {
    const bool inner = place.stride() == 1;
    return Verdict(GroupKind::kTensor, inner ? GroupBasis::kMembership : GroupBasis::kTraffic,
                   inner ? Confidence::kMedium : Confidence::kLow,
                   fmt::format("{}: all_reduces in forward ({}) and backward ({}) passes", where,
                               use.all_reduce_forward, use.all_reduce_backward));
  }
  return std::nullopt;
}

std::optional<GroupVerdict> FromInference(const GroupUse& use, const GroupPlace& place) {
  const uint64_t all_reduces = use.all_reduce_forward + use.all_reduce_backward;
  const uint64_t many = kManyPerStep * std::max<uint64_t>(use.rank_steps, 1);
  if (use.has_backward || !use.has_cpu_operators || all_reduces < many) return std::nullopt;
  if (2 * use.most_frequent_all_reduce < all_reduces) return std::nullopt;
  return Verdict(GroupKind::kTensor, GroupBasis::kTraffic, Confidence::kLow,
                 fmt::format("{}: {} all_reduces, {} of one size, in a job without a backward pass", PlaceText(place),
                             all_reduces, use.most_frequent_all_reduce));
}

}  // namespace

std::optional<int32_t> GroupPlace::stride() const {
  if (members.size() < 2) return std::nullopt;
  const int32_t stride = members[1] - members[0];
  for (size_t i = 2; i < members.size(); ++i) {
    if (members[i] - members[i - 1] != stride) return std::nullopt;
  }
  return stride;
}

GroupVerdict ClassifyGroup(const std::string& name, const std::string& description, const GroupUse& use,
                           const GroupPlace& place) {
  if (const auto kind = GroupKindOfText(description)) {
    return Verdict(*kind, GroupBasis::kDescription, Confidence::kHigh,
                   fmt::format("its description is '{}'", description));
  }
  if (const auto kind = GroupKindOfText(name)) {
    return Verdict(*kind, GroupBasis::kName, Confidence::kHigh, fmt::format("its name is '{}'", name));
  }
  if (use.calls > 0 && use.point_to_point == use.calls && !place.is_world) return FromSends(use, place);
  if (use.all_to_all > 0) {
    if (!place.is_world && 2 * use.all_to_all >= use.calls) {
      return Verdict(GroupKind::kExpert, GroupBasis::kTraffic, Confidence::kLow,
                     fmt::format("{}: {} of {} calls are all_to_all", PlaceText(place), use.all_to_all, use.calls));
    }
  } else {
    if (const auto verdict = FromBackward(use, place)) return *verdict;
    if (const auto verdict = FromInference(use, place)) return *verdict;
  }
  if (place.is_world) {
    return Verdict(GroupKind::kWorld, GroupBasis::kMembership, Confidence::kHigh,
                   fmt::format("{}; neither name nor use says for what", PlaceText(place)));
  }
  return Verdict(GroupKind::kUnknown, GroupBasis::kNone, Confidence::kNone,
                 fmt::format("{}; neither name nor use says for what", PlaceText(place)));
}

}  // namespace lockstep::analysis
