#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "programs/python/array.h"
#include "programs/python/arrow_export.h"
#include "programs/python/extension/bindings.h"

namespace lockstep::python {
namespace {

namespace py = pybind11;

/// Memory that Python's buffer protocol may look at, never write.
struct Buffer {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  size_t length = 0;
  size_t width = 1;
  const char* format = "B";
};

struct ColumnHandle {
  Field field;
  const Array& array() const { return *field.values; }
};

const char* BufferFormat(Kind kind) {
  switch (kind) {
    case Kind::kBool: return "?";
    case Kind::kInt16: return "h";
    case Kind::kInt32:
    case Kind::kCategory32: return "i";
    case Kind::kInt64: return "q";
    case Kind::kUint32: return "I";
    case Kind::kFloat64: return "d";
    case Kind::kCategory8: return "b";
    default: return "B";
  }
}

py::buffer_info Show(const Buffer& buffer) {
  static const int64_t kNothing = 0;  // A pointer for buffers without a byte.
  const void* data = buffer.data != nullptr ? buffer.data : &kNothing;
  return {const_cast<void*>(data),
          static_cast<py::ssize_t>(buffer.width),
          buffer.format,
          1,
          {static_cast<py::ssize_t>(buffer.length)},
          {static_cast<py::ssize_t>(buffer.width)},
          true};
}

Buffer Data(const ColumnHandle& column) {
  const Array& array = column.array();
  const size_t width = WidthOf(array.kind);
  if (width == 0 && array.kind != Kind::kText) throw std::logic_error("lists and structs have no data of their own");
  const size_t length = width != 0 ? array.length : static_cast<size_t>(array.offsets[array.length]);
  return {array.owner, array.data, length, width != 0 ? width : 1, BufferFormat(array.kind)};
}

py::object Nulls(const ColumnHandle& column) {
  const Array& array = column.array();
  if (!column.field.nullable) return py::none();
  return py::cast(Buffer{array.owner, array.is_null, array.length, 1, "?"});
}

py::object Offsets(const ColumnHandle& column) {
  const Array& array = column.array();
  if (array.offsets == nullptr) return py::none();
  return py::cast(Buffer{array.owner, array.offsets, array.length + 1, sizeof(int64_t), "q"});
}

py::object Unicode(std::string_view text) {
  auto* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object Value(const Array& array, size_t row);

py::list Values(const Array& array, size_t begin, size_t end) {
  py::list values(end - begin);
  for (size_t row = begin; row < end; ++row) values[row - begin] = Value(array, row);
  return values;
}

py::object Value(const Array& array, size_t row) {
  if (array.IsNull(row)) return py::none();
  switch (array.kind) {
    case Kind::kBool: return py::bool_(array.Value<uint8_t>(row) != 0);
    case Kind::kInt16: return py::int_(array.Value<int16_t>(row));
    case Kind::kInt32: return py::int_(array.Value<int32_t>(row));
    case Kind::kInt64: return py::int_(array.Value<int64_t>(row));
    case Kind::kUint32: return py::int_(array.Value<uint32_t>(row));
    case Kind::kFloat64: return py::float_(array.Value<double>(row));
    case Kind::kText: return Unicode(array.Text(row));
    case Kind::kCategory8: return Unicode(array.dictionary->Text(static_cast<size_t>(array.Value<int8_t>(row))));
    case Kind::kCategory32: return Unicode(array.dictionary->Text(static_cast<size_t>(array.Value<int32_t>(row))));
    case Kind::kList:
      return Values(*array.children[0].values, static_cast<size_t>(array.offsets[row]),
                    static_cast<size_t>(array.offsets[row + 1]));
    case Kind::kStruct: {
      py::dict fields;
      for (const Field& child : array.children) fields[py::str(child.name)] = Value(*child.values, row);
      return fields;
    }
  }
  return py::none();
}

py::list ColumnValues(const ColumnHandle& column, size_t begin, size_t end) {
  if (begin > end || end > column.array().length) throw py::index_error("rows out of range");
  return Values(column.array(), begin, end);
}

std::vector<ColumnHandle> Columns(const std::vector<Field>& fields) {
  std::vector<ColumnHandle> columns;
  columns.reserve(fields.size());
  for (const Field& field : fields) columns.push_back({field});
  return columns;
}

/// A capsule of Arrow's PyCapsule interface: releases what was not taken out of it.
template <typename Structure>
void DestroyCapsule(PyObject* capsule) {
  auto* structure = static_cast<Structure*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  if (structure == nullptr) return;
  if (structure->release != nullptr) structure->release(structure);
  delete structure;
}

template <typename Structure, typename Fill>
py::object MakeCapsule(const char* name, Fill fill) {
  auto structure = std::make_unique<Structure>();
  fill(structure.get());
  PyObject* capsule = PyCapsule_New(structure.get(), name, DestroyCapsule<Structure>);
  if (capsule == nullptr) {
    structure->release(structure.get());
    throw py::error_already_set();
  }
  structure.release();
  return py::reinterpret_steal<py::object>(capsule);
}

py::object SchemaCapsule(const TableHandle& handle) {
  return MakeCapsule<ArrowSchema>("arrow_schema", [&](ArrowSchema* out) { ExportSchema(*handle.table, out); });
}

py::tuple ArrayCapsules(const TableHandle& handle) {
  return py::make_tuple(SchemaCapsule(handle), MakeCapsule<ArrowArray>("arrow_array", [&](ArrowArray* out) {
                          ExportArray(*handle.table, out);
                        }));
}

py::tuple ColumnCapsules(const ColumnHandle& column) {
  return py::make_tuple(
      MakeCapsule<ArrowSchema>("arrow_schema", [&](ArrowSchema* out) { ExportFieldSchema(column.field, out); }),
      MakeCapsule<ArrowArray>("arrow_array", [&](ArrowArray* out) { ExportFieldArray(column.field, out); }));
}

py::object StreamCapsule(const std::vector<TableHandle>& handles) {
  std::vector<std::shared_ptr<const Table>> chunks;
  for (const TableHandle& handle : handles) chunks.push_back(handle.table);
  if (chunks.empty()) throw py::value_error("a stream needs at least one table, for its schema");
  return MakeCapsule<ArrowArrayStream>("arrow_array_stream",
                                       [&](ArrowArrayStream* out) { ExportStream(std::move(chunks), out); });
}

}  // namespace

void BindTables(py::module_& module) {
  py::class_<Buffer>(module, "Buffer", py::buffer_protocol(), py::module_local()).def_buffer([](const Buffer& buffer) {
    return Show(buffer);
  });

  py::class_<ColumnHandle>(module, "Column", py::module_local())
      .def_property_readonly("name", [](const ColumnHandle& column) { return column.field.name; })
      .def_property_readonly("unit", [](const ColumnHandle& column) { return column.field.unit; })
      .def_property_readonly("nullable", [](const ColumnHandle& column) { return column.field.nullable; })
      .def_property_readonly("kind", [](const ColumnHandle& column) { return KindName(column.array().kind); })
      .def_property_readonly("null_count", [](const ColumnHandle& column) { return column.array().null_count; })
      .def("__len__", [](const ColumnHandle& column) { return column.array().length; })
      .def("data", Data)
      .def("nulls", Nulls)
      .def("offsets", Offsets)
      .def("children", [](const ColumnHandle& column) { return Columns(column.array().children); })
      .def("dictionary",
           [](const ColumnHandle& column) -> py::object {
             const Array& array = column.array();
             if (array.dictionary == nullptr) return py::none();
             return py::cast(ColumnHandle{{.name = column.field.name, .unit = {}, .values = array.dictionary}});
           })
      .def("values", ColumnValues, py::arg("begin"), py::arg("end"))
      .def("arrow_array", ColumnCapsules);

  py::class_<TableHandle>(module, "Table", py::module_local())
      .def_property_readonly("name", [](const TableHandle& handle) { return handle.table->name; })
      .def_property_readonly("row_count", [](const TableHandle& handle) { return handle.table->row_count; })
      .def("columns", [](const TableHandle& handle) { return Columns(handle.table->columns); })
      .def("arrow_schema", SchemaCapsule)
      .def("arrow_array", ArrayCapsules);

  module.def("arrow_stream", StreamCapsule, py::arg("tables"));
}

}  // namespace lockstep::python
