#include "inside/trace/python/functional_collectives.h"

#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/objects.h"
#include "inside/trace/python/parts.h"

namespace lockstep::hooks {
namespace {

thread_local Issued begun;
AwaitedWorks tensors;

/// Null: it has none.
void* StorageOf(PyObject* tensor) {
  PyObject* const method = AttributeOf(tensor, "untyped_storage");
  PyObject* const storage = method == nullptr ? nullptr : PyObject_CallFunctionObjArgs(method, nullptr);
  PyObject* const address = storage == nullptr ? nullptr : AttributeOf(storage, "_cdata");
  void* const found = address == nullptr ? nullptr : PyLong_AsVoidPtr(address);
  PyErr_Clear();
  Py_XDECREF(address);
  Py_XDECREF(storage);
  Py_XDECREF(method);
  return found;
}

}  // namespace

void NoteGroup(PyObject* group) {
  PyObject* const found = PyUnicode_Check(group) != 0 ? CallBack(callbacks.find_group, group) : nullptr;
  PyObject* const known = found == nullptr ? group : found;
  begun = known == Py_None ? Issued{} : Issued{.group = NumberOf(known)};
  Py_XDECREF(found);
}

void RememberTensor(PyObject* tensor) {
  if (void* const storage = StorageOf(tensor); storage != nullptr) tensors.Remember(storage, begun);
}

std::optional<Issued> RecallTensor(PyObject* tensor) {
  std::optional<Issued> issued = tensors.Take(StorageOf(tensor));
  if (issued) return issued;
  // Backward of a collective, which waits for its own.
  PyObject* const group = CallBack(callbacks.find_callers_group);
  if (group != nullptr && group != Py_None) issued = Issued{.group = NumberOf(group)};
  Py_XDECREF(group);
  return issued;
}

}  // namespace lockstep::hooks
