#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace lockstep::hooks {

/// A new reference to an object's attribute; null: it has none.
inline PyObject* AttributeOf(PyObject* object, const char* name) {
  PyObject* const value = object == nullptr ? nullptr : PyObject_GetAttrString(object, name);
  if (value == nullptr) PyErr_Clear();
  return value;
}

/// False where it has none, too.
inline bool Is(PyObject* object, const char* attribute, bool wanted) {
  PyObject* const value = AttributeOf(object, attribute);
  const int is_true = value == nullptr ? -1 : PyObject_IsTrue(value);
  Py_XDECREF(value);
  if (is_true < 0) PyErr_Clear();
  return is_true == (wanted ? 1 : 0);
}

}  // namespace lockstep::hooks
