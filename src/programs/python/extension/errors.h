#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace lockstep::python {

/// An Error on its way to Python, where it becomes lockstep.Error or the class of its code, with the same facts.
class RaisedError : public std::runtime_error {
 public:
  explicit RaisedError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// The value, or a RaisedError.
template <typename T>
T ValueOrRaise(Result<T> result) {
  if (!result) throw RaisedError(std::move(result).error());
  return std::move(*result);
}

/// Lets RaisedError become what lockstep._errors makes of it.
void RegisterErrors();

}  // namespace lockstep::python
