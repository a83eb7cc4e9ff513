#include "inside/trace/python/modules.h"

#include <array>
#include <cstddef>

#include "inside/trace/python/backward_wait.h"
#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/parts.h"
#include "inside/trace/python/process_groups.h"

namespace lockstep::hooks {
namespace {

struct Known {
  PyObject* module = nullptr;  ///< A weak reference.
  PyObject* ddp = nullptr;     ///< Another, to the DistributedDataParallel that it is or holds; null: none.
  Issued issued = {};          ///< On its process group.
};
std::array<Known, 8> known_modules;
size_t next_known = 0;
PyObject* sync_attribute = nullptr;

}  // namespace

void RememberModule(PyObject* module, PyObject* ddp, PyObject* group) {
  Known& known = known_modules[next_known++ % known_modules.size()];
  Py_XDECREF(known.module);
  Py_XDECREF(known.ddp);
  Py_INCREF(module);
  known = {.module = module, .ddp = ddp == Py_None ? nullptr : ddp};
  Py_XINCREF(known.ddp);
  if (known.ddp != nullptr) known.issued.group = NumberOf(group);
}

void ForgetModules() {
  for (Known& known : known_modules) {
    Py_XDECREF(known.module);
    Py_XDECREF(known.ddp);
    known = {};
  }
  next_known = 0;
}

long ChooseModule(PyObject* module) {
  if (Ask(callbacks.current_task, nullptr, 0) != -1) return kNone;  // What backward computes again is backward.
  if (Ask(callbacks.wants_gradients, nullptr, 0) == 1) {
    for (const Known& known : known_modules) {
      if (known.module == nullptr) break;
      if (PyWeakref_GetObject(known.module) != module) continue;
      if (known.ddp == nullptr) return kForward;
      PyObject* const ddp = PyWeakref_GetObject(known.ddp);
      if (ddp == Py_None) break;
      PyObject* const synchronizes = PyObject_GetAttr(ddp, sync_attribute);
      ExpectWait(synchronizes != nullptr && PyObject_IsTrue(synchronizes) == 1, known.issued);
      Py_XDECREF(synchronizes);
      SwitchOffIfFailed();
      return kForward;
    }
  }
  return Ask(callbacks.choose_module, module, kNone);
}

bool PrepareModules() {
  sync_attribute = PyUnicode_InternFromString("require_backward_grad_sync");
  return sync_attribute != nullptr;
}

}  // namespace lockstep::hooks
