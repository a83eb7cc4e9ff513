// The module lockstep._spans: what python/lockstep/_trace.py puts a face on. Python's stable interface, so that one
// file serves every version from 3.11 on.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <lockstep/trace.h>

#include "inside/trace/python/mark_watcher.h"

namespace {

const lockstep::hooks::MarkWatcher* watcher = nullptr;

lockstep_span_t BeginSpan(lockstep_name_t name) {
  const lockstep_span_t span = lockstep_begin(name);
  if (watcher != nullptr) watcher->begin(span, name);
  return span;
}

void EndSpan(lockstep_span_t span) {
  if (watcher != nullptr) watcher->end(span);
  lockstep_end(span);
}

/// Numbers by text: texts of a program are few, and the dictionary keeps them alive.
PyObject* numbers = nullptr;

/// 0 with an exception for what is not a string.
lockstep_name_t NumberOf(PyObject* text) {
  PyObject* const known = PyDict_GetItemWithError(numbers, text);
  if (known != nullptr) return static_cast<lockstep_name_t>(PyLong_AsUnsignedLong(known));
  if (PyErr_Occurred() != nullptr) return 0;
  Py_ssize_t bytes = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text, &bytes);
  if (utf8 == nullptr) return 0;
  const lockstep_name_t number = lockstep_name_of(bytes == 0 ? " " : utf8, bytes == 0 ? 1 : static_cast<size_t>(bytes));
  PyObject* const value = PyLong_FromUnsignedLong(number);
  // A program that makes up names without end must not fill the memory.
  if (value != nullptr && PyDict_Size(numbers) < 100'000) PyDict_SetItem(numbers, text, value);
  Py_XDECREF(value);
  return PyErr_Occurred() != nullptr ? 0 : number;
}

// Scope: a span as a context manager. One object may be entered again inside itself.

constexpr uint32_t kMostDepth = 6;

struct Scope {
  PyObject_HEAD lockstep_name_t name;
  uint32_t depth;
  lockstep_span_t spans[kMostDepth];
};

PyObject* NewScope(PyTypeObject* type, PyObject* arguments, PyObject*) {
  if (PyTuple_Size(arguments) != 1) {
    PyErr_SetString(PyExc_TypeError, "trace() takes the name of the span: trace(\"forward\")");
    return nullptr;
  }
  const lockstep_name_t name = NumberOf(PyTuple_GetItem(arguments, 0));
  if (name == 0 && PyErr_Occurred() != nullptr) return nullptr;
  auto* const allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* const object = allocate(type, 0);
  if (object != nullptr) reinterpret_cast<Scope*>(object)->name = name;
  return object;
}

void FreeScope(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

PyObject* EnterScope(PyObject* object, PyObject*) {
  auto* const scope = reinterpret_cast<Scope*>(object);
  if (scope->depth < kMostDepth) scope->spans[scope->depth] = BeginSpan(scope->name);
  ++scope->depth;
  Py_INCREF(object);
  return object;
}

PyObject* LeaveScope(PyObject* object, PyObject*) {
  auto* const scope = reinterpret_cast<Scope*>(object);
  if (scope->depth > 0 && --scope->depth < kMostDepth) EndSpan(scope->spans[scope->depth]);
  Py_RETURN_FALSE;
}

PyObject* NameOfScope(PyObject* object, void*) {
  return PyLong_FromUnsignedLong(reinterpret_cast<Scope*>(object)->name);
}

PyMethodDef scope_methods[] = {
    {"__enter__", EnterScope, METH_NOARGS, nullptr},
    {"__exit__", LeaveScope, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef scope_fields[] = {
    {"number", NameOfScope, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot scope_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(NewScope)},
    {Py_tp_dealloc, reinterpret_cast<void*>(FreeScope)},
    {Py_tp_methods, scope_methods},
    {Py_tp_getset, scope_fields},
    {0, nullptr},
};
PyType_Spec scope_spec = {"lockstep._spans.Scope", sizeof(Scope), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          scope_slots};

// Functions.

PyObject* Begin(PyObject*, PyObject* number) {
  const unsigned long name = PyLong_AsUnsignedLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return PyLong_FromUnsignedLongLong(BeginSpan(static_cast<lockstep_name_t>(name)));
}

PyObject* End(PyObject*, PyObject* span) {
  const unsigned long long place = PyLong_AsUnsignedLongLong(span);
  if (PyErr_Occurred() != nullptr) return nullptr;
  EndSpan(place);
  Py_RETURN_NONE;
}

PyObject* Counter(PyObject*, PyObject* arguments) {
  PyObject* name = nullptr;
  double value = 0;
  if (PyArg_ParseTuple(arguments, "Ud:counter", &name, &value) == 0) return nullptr;
  if (lockstep_recording == 0) Py_RETURN_NONE;
  const lockstep_name_t number = NumberOf(name);
  if (number == 0 && PyErr_Occurred() != nullptr) return nullptr;
  lockstep_counter(number, value);
  Py_RETURN_NONE;
}

PyObject* Mark(PyObject*, PyObject* name) {
  const lockstep_name_t number = NumberOf(name);
  if (number == 0 && PyErr_Occurred() != nullptr) return nullptr;
  lockstep_mark(number);
  Py_RETURN_NONE;
}

PyObject* Step(PyObject*, PyObject* arguments) {
  PyObject* number = Py_None;
  if (PyArg_ParseTuple(arguments, "|O:step", &number) == 0) return nullptr;
  if (number == Py_None) {
    lockstep_step();
    Py_RETURN_NONE;
  }
  const long long value = PyLong_AsLongLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  lockstep_step_number(value);
  Py_RETURN_NONE;
}

PyObject* StepEnd(PyObject*, PyObject*) {
  lockstep_step_end();
  Py_RETURN_NONE;
}

/// (handle, traceparent) of a linked span or request.
PyObject* Linked(PyObject* arguments, const char* format,
                 uint64_t (*begin)(lockstep_name_t, const lockstep_context*, lockstep_context*)) {
  PyObject* name = nullptr;
  const char* parent_text = nullptr;
  if (PyArg_ParseTuple(arguments, format, &name, &parent_text) == 0) return nullptr;
  const lockstep_name_t number = NumberOf(name);
  if (number == 0 && PyErr_Occurred() != nullptr) return nullptr;
  lockstep_context parent = {}, own = {};
  const bool has_parent = lockstep_context_read(parent_text, &parent) != 0;
  const uint64_t handle = begin(number, has_parent ? &parent : nullptr, &own);
  if ((own.trace_high | own.trace_low) == 0) return Py_BuildValue("KO", handle, Py_None);
  char text[LOCKSTEP_TRACEPARENT_BYTES];
  lockstep_context_write(&own, text);
  return Py_BuildValue("Ks", static_cast<unsigned long long>(handle), text);
}

PyObject* BeginLinked(PyObject*, PyObject* arguments) { return Linked(arguments, "Uz:trace", lockstep_begin_linked); }
PyObject* BeginRequest(PyObject*, PyObject* arguments) {
  return Linked(arguments, "Uz:request", lockstep_request_begin);
}

PyObject* RequestOutput(PyObject*, PyObject* arguments) {
  unsigned long long request = 0, count = 0;
  if (PyArg_ParseTuple(arguments, "KK:output", &request, &count) == 0) return nullptr;
  lockstep_request_output(request, count);
  Py_RETURN_NONE;
}

PyObject* RequestEnd(PyObject*, PyObject* arguments) {
  unsigned long long request = 0;
  int failed = 0;
  if (PyArg_ParseTuple(arguments, "Kp:end", &request, &failed) == 0) return nullptr;
  lockstep_request_end(request, failed);
  Py_RETURN_NONE;
}

/// (capsule) of lockstep._hooks.
PyObject* Watch(PyObject*, PyObject* capsule) {
  const void* const found = PyCapsule_GetPointer(capsule, lockstep::hooks::kMarkWatcher);
  if (found == nullptr) return nullptr;
  watcher = static_cast<const lockstep::hooks::MarkWatcher*>(found);
  Py_RETURN_NONE;
}

PyObject* IsRecording(PyObject*, PyObject*) { return PyBool_FromLong(lockstep_recording != 0); }

PyObject* Status(PyObject*, PyObject*) {
  lockstep_trace_status status;
  lockstep_trace_get_status(&status);
  return Py_BuildValue("sKK", status.path, static_cast<unsigned long long>(status.file_bytes),
                       static_cast<unsigned long long>(status.dropped_records));
}

PyMethodDef functions[] = {
    {"begin", Begin, METH_O, nullptr},
    {"end", End, METH_O, nullptr},
    {"counter", Counter, METH_VARARGS, nullptr},
    {"mark", Mark, METH_O, nullptr},
    {"step", Step, METH_VARARGS, nullptr},
    {"step_end", StepEnd, METH_NOARGS, nullptr},
    {"begin_linked", BeginLinked, METH_VARARGS, nullptr},
    {"begin_request", BeginRequest, METH_VARARGS, nullptr},
    {"request_output", RequestOutput, METH_VARARGS, nullptr},
    {"request_end", RequestEnd, METH_VARARGS, nullptr},
    {"watch", Watch, METH_O, nullptr},
    {"is_recording", IsRecording, METH_NOARGS, nullptr},
    {"status", Status, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_spans", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__spans() {
  numbers = PyDict_New();
  PyObject* const module = numbers == nullptr ? nullptr : PyModule_Create(&definition);
  PyObject* const scope = module == nullptr ? nullptr : PyType_FromSpec(&scope_spec);
  if (scope == nullptr || PyModule_AddObjectRef(module, "Scope", scope) < 0) {
    Py_XDECREF(module);
    return nullptr;
  }
  Py_DECREF(scope);
  return module;
}
