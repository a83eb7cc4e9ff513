#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace lockstep::analysis {

/// a + b, held at the ends of int64_t: sums of durations from a hostile file must not overflow.
inline int64_t AddSaturating(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

/// Rows found by a small dense key (a NameId, or a NameId and a kind), in order of first use.
/// A table of row numbers by key comes zeroed from the system, so keys that are never used cost no memory and no time.
/// Cost: one array look-up an event. Not thread-safe.
template <typename Row>
class RowsByKey {
 public:
  explicit RowsByKey(size_t key_count) : slots_(static_cast<uint32_t*>(std::calloc(key_count + 1, sizeof(uint32_t)))) {
    if (slots_ == nullptr) throw std::bad_alloc();
  }

  /// Number of the row of `key`, made (value-initialised) on first use.
  uint32_t Index(size_t key) {
    uint32_t& slot = slots_.get()[key];
    if (slot == 0) {
      rows_.emplace_back();
      slot = static_cast<uint32_t>(rows_.size());
    }
    return slot - 1;
  }
  /// The row of `key`; valid until the next new row.
  Row& operator[](size_t key) { return rows_[Index(key)]; }
  std::vector<Row>& rows() { return rows_; }

 private:
  struct Free {
    void operator()(uint32_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint32_t, Free> slots_;
  std::vector<Row> rows_;
};

}  // namespace lockstep::analysis
