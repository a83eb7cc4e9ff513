#include <pybind11/pybind11.h>

#include "programs/python/extension/bindings.h"
#include "programs/python/extension/errors.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ side of lockstep; use the package lockstep, not this module.";
  module.attr("version") = LOCKSTEP_VERSION;
  lockstep::python::RegisterErrors();
  lockstep::python::BindTables(module);
  lockstep::python::BindRun(module);
  lockstep::python::BindComparison(module);
  lockstep::python::BindBench(module);
}
