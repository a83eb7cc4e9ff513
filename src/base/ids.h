#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace lockstep {

/// A number with an identity: ids of different tags do not mix. `value` is the number as the source wrote it.
template <typename Tag, typename T>
struct Id {
  using ValueType = T;
  T value{};
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using Rank = Id<struct RankTag, int32_t>;                     ///< Index of a process in the job, 0 .. world size - 1.
using GroupRank = Id<struct GroupRankTag, int32_t>;           ///< Index of a process in a process group.
using DeviceOrdinal = Id<struct DeviceOrdinalTag, int32_t>;   ///< What one process calls a device.
using StreamId = Id<struct StreamIdTag, int64_t>;             ///< A device's in-order queue.
using CorrelationId = Id<struct CorrelationIdTag, uint32_t>;  ///< Joins a launch call and its device event; 0 = none.
using NameId = Id<struct NameIdTag, uint32_t>;                ///< Index into a model::NameTable.

}  // namespace lockstep

template <typename Tag, typename T>
struct std::hash<lockstep::Id<Tag, T>> {
  size_t operator()(const lockstep::Id<Tag, T>& id) const noexcept { return std::hash<T>{}(id.value); }
};
