#include "inside/trace/python/backward_wait.h"

#include <utility>

#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/parts.h"

namespace lockstep::hooks {
namespace {

struct {
  bool is_expected = false;  ///< The next backward ends with it.
  bool is_awaited = false;   ///< That backward runs, and the callback is not queued so far.
  bool has_come = false;     ///< Since the last module that may wait was seen first: another backward may have none.
  Issued issued;             ///< On the group of the module that was called last.
  Part part = 0;
  PyObject* callback = nullptr;
} wait;

PyObject* BeginWait(PyObject*, PyObject*) {
  if (wait.part == 0) wait.part = EnterWait(wait.issued, UsesDevice());
  Py_RETURN_NONE;
}

PyMethodDef begin_wait_method = {"begin_wait", BeginWait, METH_NOARGS, nullptr};

void MissWait() {
  wait.is_awaited = false;
  PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);  // The job's own.
  Py_XDECREF(CallBack(callbacks.missed));
  PyErr_Restore(type, error, traceback);
}

}  // namespace

void ExpectWait(bool is_expected, const Issued& issued) {
  wait.is_expected = is_expected;
  wait.issued = issued;
}

void ExpectFirstWait(bool is_expected, const Issued& issued) {
  ExpectWait(is_expected, issued);
  wait.has_come = false;
}

bool ExpectsWait() { return wait.is_expected; }

const Issued& ExpectedWait() { return wait.issued; }

void AwaitWait() { wait.is_awaited = true; }

void EndWait() {
  Leave(std::exchange(wait.part, 0));
  if (wait.is_awaited && !wait.has_come) MissWait();
  wait.is_awaited = false;
}

void MissAwaited() {
  if (wait.is_awaited) MissWait();
}

void QueueWait() {
  if (!wait.is_awaited) return;
  wait.is_awaited = false;
  wait.has_come = true;
  Py_XDECREF(CallBack(callbacks.queue_callback, wait.callback));
}

bool PrepareWaits() {
  wait.callback = PyCFunction_New(&begin_wait_method, nullptr);
  return wait.callback != nullptr;
}

}  // namespace lockstep::hooks
