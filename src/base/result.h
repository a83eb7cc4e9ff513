#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace lockstep {

/// A value or an Error. Plain tl::expected is not [[nodiscard]]; this is, and std::expected can replace it later.
template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error)
      : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}  // NOLINT(google-explicit-constructor)
};

using Status = Result<void>;

}  // namespace lockstep

#define LOCKSTEP_CONCAT_INNER(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_INNER(a, b)

/// Evaluates `expression`; on error returns it from the enclosing function, else assigns the value to `lhs`.
#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_IMPL(LOCKSTEP_CONCAT(lockstep_result_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_IMPL(result, lhs, expression) \
  auto result = (expression);                          \
  if (!result) return std::move(result).error();       \
  lhs = std::move(*result)

#define RETURN_IF_ERROR(expression)                                                                       \
  do {                                                                                                    \
    if (auto lockstep_status = (expression); !lockstep_status) return std::move(lockstep_status).error(); \
  } while (false)
