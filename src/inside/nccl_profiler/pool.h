#pragma once

#include <cstdint>

namespace lockstep::instrument {

/// A fixed number of objects, taken and given back without a lock. `free_` is the first free one, with a count that
/// changes at every change, so that one that went and came back is not taken for the same.
template <typename T, uint32_t kCapacity>
class Pool {
 public:
  Pool() {
    for (uint32_t i = 0; i < kCapacity; ++i) next_[i] = i + 1;
  }
  /// nullptr when all are taken.
  T* Take() {
    uint64_t head = __atomic_load_n(&free_, __ATOMIC_ACQUIRE);
    while (true) {
      const auto index = static_cast<uint32_t>(head);
      if (index == kCapacity) return nullptr;
      const uint64_t rest = ((head >> 32) + 1) << 32 | __atomic_load_n(&next_[index], __ATOMIC_RELAXED);
      if (__atomic_compare_exchange_n(&free_, &head, rest, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return &objects_[index];
      }
    }
  }
  void Give(T* object) {
    const auto index = static_cast<uint32_t>(object - objects_);
    uint64_t head = __atomic_load_n(&free_, __ATOMIC_ACQUIRE);
    while (true) {
      __atomic_store_n(&next_[index], static_cast<uint32_t>(head), __ATOMIC_RELAXED);
      const uint64_t mine = ((head >> 32) + 1) << 32 | index;
      if (__atomic_compare_exchange_n(&free_, &head, mine, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
    }
  }
  bool Holds(const void* pointer) const { return pointer >= objects_ && pointer < objects_ + kCapacity; }

 private:
  T objects_[kCapacity] = {};
  uint32_t next_[kCapacity];
  uint64_t free_ = 0;
};

}  // namespace lockstep::instrument
