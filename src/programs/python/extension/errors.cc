#include "programs/python/extension/errors.h"

#include <exception>

namespace lockstep::python {
namespace {

namespace py = pybind11;

void Translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const RaisedError& raised) {
    const Error& error = raised.error();
    py::object file = py::none();
    if (!error.file.empty()) {
      file = py::reinterpret_steal<py::object>(
          PyUnicode_DecodeUTF8(error.file.data(), static_cast<Py_ssize_t>(error.file.size()), "replace"));
    }
    py::object rank = py::none();
    if (error.rank) rank = py::int_(*error.rank);
    py::object offset = py::none();
    if (error.byte_offset) offset = py::int_(*error.byte_offset);
    const std::string text = error.ToString();
    const auto message = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    const py::object made = py::module_::import("lockstep._errors")
                                .attr("make_error")(ErrorCodeName(error.code), message, file, rank, offset);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

}  // namespace

void RegisterErrors() { py::register_local_exception_translator(Translate); }

}  // namespace lockstep::python
