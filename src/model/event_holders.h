#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::model {

/// The processes that hold the events of a run whose own ranks are without (`lockstep-mpi`): they answer for single
/// ranks what is asked of all of them.
class EventHolders {
 public:
  virtual ~EventHolders() = default;
  EventHolders() = default;
  EventHolders(const EventHolders&) = delete;
  EventHolders& operator=(const EventHolders&) = delete;

  /// The answers of pass `pass` (analysis/rank_map.h) for the ranks of these indices, as bytes, in that order.
  /// `context` and `args` are bytes as well. Throws TeamError when a process could not answer.
  virtual std::vector<std::string> Map(std::string_view pass, const std::string& context, const std::string& args,
                                       const std::vector<size_t>& rank_indices) = 0;
};

}  // namespace lockstep::model
