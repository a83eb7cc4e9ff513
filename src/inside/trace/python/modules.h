#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/// Modules whose forward was chosen lately: what Python said of them is so again.
namespace lockstep::hooks {

/// The phase of a call from outside of any other module's. A DistributedDataParallel's sets what the next backward
/// waits for.
long ChooseModule(PyObject* module);
/// (weak reference to a module, weak reference to a DistributedDataParallel that waits on the host, or None, its group)
void RememberModule(PyObject* module, PyObject* ddp, PyObject* group);
/// Python is asked again.
void ForgetModules();
/// False: Python has no memory.
bool PrepareModules();

}  // namespace lockstep::hooks
