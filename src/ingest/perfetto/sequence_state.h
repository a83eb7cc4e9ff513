#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace lockstep::ingest::perfetto {

/// Values by interning id. Ids mostly count up from 1; any other are kept as well, up to a limit.
template <typename Value>
class InternTable {
 public:
  void Set(uint64_t id, Value value) {
    if (id == dense_.size() + 1) {
      dense_.push_back(std::move(value));
    } else if (id > 0 && id <= dense_.size()) {
      dense_[id - 1] = std::move(value);
    } else if (sparse_.size() < kMostSparse) {
      sparse_[id] = std::move(value);
    }
  }
  const Value* Find(uint64_t id) const {
    if (id > 0 && id <= dense_.size()) return &dense_[id - 1];
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? nullptr : &found->second;
  }
  void Clear() {
    dense_.clear();
    sparse_.clear();
  }

 private:
  static constexpr size_t kMostSparse = 1'000'000;
  std::vector<Value> dense_;
  std::unordered_map<uint64_t, Value> sparse_;
};

/// What one packet sequence has said so far: its names, its defaults, its clocks.
struct SequenceState {
  bool valid = false;  ///< A packet that clears the state was seen: packets that need state may be read.
  InternTable<NameId> event_names;
  InternTable<std::string> categories;
  InternTable<std::string> arg_names;
  InternTable<std::string> arg_values;
  InternTable<std::string> stages;   ///< GPU specifications: queues and stages.
  InternTable<std::string> kernels;  ///< Compute kernels.
  std::optional<uint64_t> default_track;
  std::optional<uint32_t> default_clock;

  struct Clock {
    bool incremental = false;
    int64_t unit_ns = 1;
    int64_t last = 0;         ///< Of an incremental clock: where it stands, in ns.
    int64_t to_trace_ns = 0;  ///< Added to the clock's time gives the trace clock's.
  };
  std::map<uint32_t, Clock> clocks;  ///< Sequence-scoped ones, 64..127.

  /// Everything that a cleared state takes away.
  void ClearIncremental() {
    event_names.Clear();
    categories.Clear();
    arg_names.Clear();
    arg_values.Clear();
    stages.Clear();
    kernels.Clear();
    default_track.reset();
    default_clock.reset();
    valid = true;
  }
};

}  // namespace lockstep::ingest::perfetto
