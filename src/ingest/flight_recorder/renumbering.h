#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::ingest {

/// Numbers what one record uses of a table that several share, in the order of use. [0] is 0. One thread.
class Renumbering {
 public:
  /// The new number of `old`; `make` adds the content to the record where it is used for the first time.
  template <typename Make>
  uint32_t operator()(uint32_t old, Make make) {
    if (old == 0) return 0;
    if (numbers_.size() <= old) numbers_.resize(old + 1, 0);
    if (numbers_[old] == 0) {
      make();
      used_.push_back(old);
      numbers_[old] = static_cast<uint32_t>(used_.size());
    }
    return numbers_[old];
  }
  /// For the next record; costs what this one used.
  void Reset() {
    for (const uint32_t old : used_) numbers_[old] = 0;
    used_.clear();
  }

 private:
  std::vector<uint32_t> numbers_;
  std::vector<uint32_t> used_;
};

}  // namespace lockstep::ingest
