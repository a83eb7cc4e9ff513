#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// Finds which of the job's groups a record's group is: the one with equal name and, if both list them, equal members.
/// Different groups of a job may share a name.
class GroupTable {
 public:
  /// Adds to `view.groups`. `view.ranks` has to be complete.
  explicit GroupTable(JobView& view) : view_(view) {}

  /// Index into JobView::groups; makes the group where it is new.
  uint32_t Find(const evidence::FlightGroup& group);

 private:
  void SetOrder(uint32_t index, const std::vector<int32_t>& ranks);

  JobView& view_;
  std::unordered_map<std::string, std::vector<uint32_t>> by_name_;
  std::vector<std::vector<int32_t>> order_;  ///< By group; empty where it is not told, or is nonsense.
};

}  // namespace lockstep::hang
