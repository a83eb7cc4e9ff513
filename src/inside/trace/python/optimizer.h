#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/// The optimizer that ends the steps. Python finds it (_boundaries.py), and while it is the only one that steps, and in
/// one thread, these do what Python would.
namespace lockstep::hooks {

void BeginOptimizer();
void EndOptimizer();

/// Whether nothing is left to be done.
bool BeforeOnly(PyObject* optimizer);
bool AfterOnly(PyObject* optimizer);
/// Of a weak reference to an optimizer: whether the two above will do something.
bool SettleOn(PyObject* optimizer);
/// Whether the optimizer was left in mid-step, in this thread: its span is still open.
bool Unsettle();

}  // namespace lockstep::hooks
