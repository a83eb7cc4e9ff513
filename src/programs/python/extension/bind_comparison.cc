#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "programs/python/compared_runs.h"
#include "programs/python/extension/bindings.h"
#include "programs/python/extension/errors.h"
#include "programs/python/loaded_run.h"

namespace lockstep::python {
namespace {

namespace py = pybind11;

using RunPointer = std::shared_ptr<LoadedRun>;

ComparedRuns Compare(const RunPointer& a, const std::string& label_a, const RunPointer& b, const std::string& label_b,
                     int64_t skip_steps, std::optional<int64_t> first_step, std::optional<int64_t> last_step,
                     double confidence, double minimum_effect) {
  comparison::ProfileOptions steps;
  steps.skip_steps = skip_steps;
  steps.first_step = first_step;
  steps.last_step = last_step;
  comparison::CompareOptions options;
  options.confidence = confidence;
  options.minimum_effect = minimum_effect;
  const py::gil_scoped_release release;
  return ValueOrRaise(ComparedRuns::Compare(a.get(), label_a, b.get(), label_b, steps, options));
}

std::string Text(const ComparedRuns& runs, int width, bool unicode, size_t top) {
  report::TextOptions options;
  options.width = width;
  options.unicode = unicode;
  options.top = top;
  const py::gil_scoped_release release;
  return runs.Text(options);
}

}  // namespace

void BindComparison(py::module_& module) {
  py::class_<ComparedRuns>(module, "Comparison", py::module_local())
      .def("json", &ComparedRuns::Json, py::call_guard<py::gil_scoped_release>())
      .def("text", Text, py::kw_only(), py::arg("width"), py::arg("unicode"), py::arg("top"));

  module.def("compare", Compare, py::arg("a"), py::arg("label_a"), py::arg("b"), py::arg("label_b"), py::kw_only(),
             py::arg("skip_steps"), py::arg("first_step"), py::arg("last_step"), py::arg("confidence"),
             py::arg("minimum_effect"));
}

}  // namespace lockstep::python
