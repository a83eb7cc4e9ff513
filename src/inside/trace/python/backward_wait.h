#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "inside/trace/python/process_groups.h"

/// The outermost backward. DistributedDataParallel waits for its collectives in a callback that autograd runs when all
/// gradients are there; callbacks run in the order in which they were queued, so that one queued earlier sees it begin.
namespace lockstep::hooks {

/// What is waited for when the next backward ends; nothing, where `is_expected` is false.
void ExpectWait(bool is_expected, const Issued& issued);
/// The same of a module that is new: another backward may have had none.
void ExpectFirstWait(bool is_expected, const Issued& issued);
bool ExpectsWait();
/// On the group of the module that was called last.
const Issued& ExpectedWait();

/// A backward that ends with a wait begins.
void AwaitWait();
/// Such a backward has ended.
void EndWait();
/// A backward within a backward has callbacks of its own: the outer one's is missed.
void MissAwaited();
/// From within a backward, before all gradients are there.
void QueueWait();
/// False: Python has no memory.
bool PrepareWaits();

}  // namespace lockstep::hooks
