#include "analysis/hang/group_table.h"

#include <utility>

namespace lockstep::hang {

uint32_t GroupTable::Find(const evidence::FlightGroup& group) {
  const std::string name = group.name.empty() ? "id " + std::to_string(group.local_id) : group.name;
  std::vector<uint32_t>& known = by_name_[name];
  for (const uint32_t index : known) {
    if (group.ranks.empty() || order_[index].empty() || order_[index] == group.ranks) {
      if (order_[index].empty() && !group.name.empty()) {
        SetOrder(index, group.ranks);
      }
      return index;
    }
  }
  const auto index = static_cast<uint32_t>(view_.groups.size());
  GroupView made;
  made.name = name;
  made.description = group.description;
  view_.groups.push_back(std::move(made));
  order_.emplace_back();
  if (!group.name.empty()) {
    SetOrder(index, group.ranks);
  }
  known.push_back(index);
  return index;
}

void GroupTable::SetOrder(uint32_t index, const std::vector<int32_t>& ranks) {
  for (const int32_t rank : ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= view_.ranks.size()) {
      return;  // Nonsense: infer instead.
    }
  }
  order_[index] = ranks;
  view_.groups[index].group_order = ranks;
}

}  // namespace lockstep::hang
