#include "inside/trace/python/callbacks.h"

namespace lockstep::hooks {

Recording recording = Recording::kNotYet;
Callbacks callbacks;

namespace {

/// What a handler of a signal raised while Python ran for a hook. It is the job's.
struct {
  PyObject* type = nullptr;
  PyObject* error = nullptr;
  PyObject* traceback = nullptr;
} interruption;

int RaiseInterruption(void*) {
  if (interruption.type == nullptr) return 0;
  PyErr_Restore(interruption.type, interruption.error, interruption.traceback);
  interruption = {};
  return -1;
}

}  // namespace

void SwitchOffIfFailed() {
  if (PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0 && interruption.type == nullptr) {
    // Raised again as soon as the thread that has the handlers runs Python's code.
    PyErr_Fetch(&interruption.type, &interruption.error, &interruption.traceback);
    Py_AddPendingCall(RaiseInterruption, nullptr);
    return;
  }
  recording = Recording::kOff;
  PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  Py_XDECREF(PyObject_CallFunctionObjArgs(callbacks.lost, error != nullptr ? error : Py_None, nullptr));
  PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
}

PyObject* CallBack(PyObject* function, PyObject* argument) {
  PyObject* const answer = PyObject_CallFunctionObjArgs(function, argument, nullptr);
  if (answer == nullptr) SwitchOffIfFailed();
  return answer;
}

long Ask(PyObject* function, PyObject* argument, long failed) {
  PyObject* const answer = CallBack(function, argument);
  if (answer == nullptr) return failed;
  const long number = PyLong_AsLong(answer);
  Py_DECREF(answer);
  SwitchOffIfFailed();
  return number;
}

}  // namespace lockstep::hooks
