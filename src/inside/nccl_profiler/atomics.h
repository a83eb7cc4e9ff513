#pragma once

#include <type_traits>

namespace lockstep::instrument {

// Atomic access to plain members of a mapped file: the compilers' own, in the forms that take enumerations as well.

template <typename T>
T Load(const T* from, int order) {
  T value;
  __atomic_load(from, &value, order);
  return value;
}

template <typename T>
void Store(T* to, std::type_identity_t<T> value, int order) {
  __atomic_store(to, &value, order);
}

/// Whether `*value` was `*expected` and is `desired` now; else `*expected` is what it was.
template <typename T>
bool Replace(T* value, T* expected, std::type_identity_t<T> desired, int order) {
  return __atomic_compare_exchange(value, expected, &desired, false, order, __ATOMIC_RELAXED);
}

}  // namespace lockstep::instrument
