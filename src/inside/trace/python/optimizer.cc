#include "inside/trace/python/optimizer.h"

#include <utility>

#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/parts.h"

namespace lockstep::hooks {
namespace {

Part optimizer_part = 0;

struct {
  PyObject* optimizer = nullptr;  ///< A weak reference.
  unsigned long thread = 0;
  bool is_open = false;  ///< It steps just now.
} only;

bool IsOnly(PyObject* optimizer) {
  return only.optimizer != nullptr && PyWeakref_GetObject(only.optimizer) == optimizer &&
         PyThread_get_thread_ident() == only.thread && recording == Recording::kOn;
}

}  // namespace

void BeginOptimizer() { optimizer_part = Enter(kOptimizer); }

void EndOptimizer() { Leave(std::exchange(optimizer_part, 0)); }

bool BeforeOnly(PyObject* optimizer) {
  if (!IsOnly(optimizer) || only.is_open) return false;
  only.is_open = true;
  BeginOptimizer();
  return true;
}

bool AfterOnly(PyObject* optimizer) {
  if (!IsOnly(optimizer) || !only.is_open) return false;
  only.is_open = false;
  EndOptimizer();
  EndStep();
  return true;
}

bool SettleOn(PyObject* optimizer) {
  Py_XDECREF(only.optimizer);
  Py_INCREF(optimizer);
  only = {.optimizer = optimizer, .thread = PyThread_get_thread_ident(), .is_open = false};
  return recording == Recording::kOn;
}

bool Unsettle() {
  const bool is_open = only.is_open;
  const bool is_here = PyThread_get_thread_ident() == only.thread;
  Py_XDECREF(only.optimizer);
  only = {};
  if (is_open && !is_here) EndOptimizer();
  return is_open && is_here;
}

}  // namespace lockstep::hooks
