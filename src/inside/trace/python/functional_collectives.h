#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <optional>

#include "inside/trace/python/process_groups.h"

/// Functional collectives (torch.distributed._functional_collectives), as DTensor uses them. They give a tensor at
/// once, and whoever uses it first waits for it; the storage is what its views and wrappers have in common.
namespace lockstep::hooks {

/// In this thread a collective begins on it: a process group, or the name by which PyTorch knows it.
void NoteGroup(PyObject* group);
/// What the collective gives.
void RememberTensor(PyObject* tensor);
/// Nullopt where nothing is waited for: it is there already.
std::optional<Issued> RecallTensor(PyObject* tensor);

}  // namespace lockstep::hooks
