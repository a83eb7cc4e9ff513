#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "programs/python/array.h"

namespace lockstep::python {

/// Registers Column, Table and what hands them to NumPy and Arrow.
void BindTables(pybind11::module_& module);
/// Registers Run and load().
void BindRun(pybind11::module_& module);

/// Registers Comparison and compare().
void BindComparison(pybind11::module_& module);

/// Registers run_bench(), of `python -m lockstep.bench`.
void BindBench(pybind11::module_& module);

/// A table as Python holds it.
struct TableHandle {
  std::shared_ptr<const Table> table;
};

}  // namespace lockstep::python
