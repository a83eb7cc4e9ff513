#pragma once

#include <boost/preprocessor/repetition/enum_params.hpp>
#include <boost/preprocessor/repetition/repeat_from_to.hpp>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace lockstep {
namespace aggregate_internal {

/// Converts to any type, in unevaluated code only: stands for one initialiser of an aggregate.
struct AnyValue {
  template <typename T>
  operator T() const noexcept {  // NOLINT(google-explicit-constructor)
    __builtin_unreachable();     // Defined, since clang wants what std::optional's constructor names; never called.
  }
};
template <size_t>
using AnyAt = AnyValue;

template <typename T, size_t... kIndices>
constexpr bool TakesBraces(std::index_sequence<kIndices...> /*unused*/) {
  return requires { T{AnyAt<kIndices>{}...}; };
}

inline constexpr size_t kMaxMembers = 40;

/// How many members T has. Searched from above: an aggregate accepts fewer initialisers, not more.
template <typename T, size_t kCount = kMaxMembers + 1>
constexpr size_t CountMembers() {
  if constexpr (kCount == 0) {
    return 0;
  } else if constexpr (TakesBraces<T>(std::make_index_sequence<kCount>())) {
    return kCount;
  } else {
    return CountMembers<T, kCount - 1>();
  }
}

}  // namespace aggregate_internal

/// Calls `visit(member, member, ...)` with every member of a plain struct, in order of declaration: structs need no
/// listing of their members that could fall behind them. T is an aggregate without bases and without C arrays, of at
/// most 40 members; more is an error of compilation. Cost: none at run time.
template <typename T, typename Visit>
decltype(auto) VisitMembers(T& value, Visit&& visit) {
  constexpr size_t kCount = aggregate_internal::CountMembers<std::remove_const_t<T>>();
  static_assert(kCount <= aggregate_internal::kMaxMembers, "too many members: put some into a struct of their own");
  // One branch for each count: a structured binding names as many members as there are.
#define LOCKSTEP_VISIT(unused_depth, count, unused)      \
  else if constexpr (kCount == (count)) {                \
    auto& [BOOST_PP_ENUM_PARAMS(count, member)] = value; \
    return visit(BOOST_PP_ENUM_PARAMS(count, member));   \
  }
  if constexpr (kCount == 0) {
    return visit();
  }
  BOOST_PP_REPEAT_FROM_TO(1, 41, LOCKSTEP_VISIT, )
#undef LOCKSTEP_VISIT
}

}  // namespace lockstep
