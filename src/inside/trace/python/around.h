#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace lockstep::hooks {

/// What a function or method of PyTorch's does, as python/lockstep/_steps.py numbers it.
enum Kind {
  kPlain,  ///< Its phase.
  kWorkWait,
  kBufferWait,  ///< A DistributedDataParallel's, within its forward.
  kModule,
  kOutermostBackward,
  kShardWait,      ///< Of an FSDPParamGroup.
  kTensorWait,     ///< For what a functional collective gave.
  kIssue,          ///< A process group's collective.
  kIssueToOne,     ///< The same to or from one peer.
  kGroupOfTensor,  ///< Says on which group a functional collective begins.
  kIssueTensor,    ///< Is given what that one gives.
};

/// (original, phase, kind) -> a function (arguments, options) that does what the original does, with a span around it.
/// Where it is called within itself, the outermost call counts.
PyObject* MakeAround(PyObject* module, PyObject* arguments);

}  // namespace lockstep::hooks
