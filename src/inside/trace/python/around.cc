#include "inside/trace/python/around.h"

#include <algorithm>
#include <vector>

#include "inside/trace/python/backward_wait.h"
#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/functional_collectives.h"
#include "inside/trace/python/modules.h"
#include "inside/trace/python/objects.h"
#include "inside/trace/python/parts.h"
#include "inside/trace/python/process_groups.h"

namespace lockstep::hooks {
namespace {

struct Around {
  PyObject* original = nullptr;
  long phase = 0;
  Kind kind = kPlain;
  std::vector<unsigned long>* inside = nullptr;  ///< Threads.
};
std::vector<unsigned long> inside_modules;  // Whichever class is called.
AwaitedWorks works;

/// The stream waits for the parameters of an FSDPParamGroup, where these are being gathered.
Part EnterShardWait(PyObject* parameters) {
  if (!device.is_open() || !Is(parameters, "_all_gather_result", true)) return 0;
  PyObject* const group = AttributeOf(parameters, "_all_gather_process_group");
  const Issued issued = group == nullptr ? Issued{} : Issued{.group = NumberOf(group)};
  Py_XDECREF(group);
  return EnterWait(issued, true);
}

/// What is unknown counts for all ranks, while no other group is known.
Part EnterWorkWait(PyObject* work) {
  const Issued issued = works.Take(work).value_or(Issued{});
  return issued.is_in_stream ? 0 : EnterWait(issued, IsOnDevice());
}

Part EnterTensorWait(PyObject* tensor) {
  const std::optional<Issued> issued = recording == Recording::kOn ? RecallTensor(tensor) : std::nullopt;
  return issued ? EnterWait(*issued, IsOnDevice()) : 0;
}

Part Begin(const Around& around, PyObject* arguments) {
  PyObject* const self = PyTuple_GetItem(arguments, 0);
  PyErr_Clear();  // Of a function without arguments.
  switch (around.kind) {
    case kModule: return Enter(ChooseModule(self));
    case kWorkWait: return EnterWorkWait(self);
    case kTensorWait: return EnterTensorWait(self);
    case kShardWait: return EnterShardWait(self);
    case kBufferWait: return EnterWait(ExpectedWait(), IsOnDevice());
    default: return Enter(around.phase);
  }
}

/// (group, tensors, ..., options) of a collective that a device does in the job's own stream: since PyTorch 2.8 what
/// does not ask for something to wait for.
bool IsInStream(PyObject* arguments) {
  const Py_ssize_t count = PyTuple_Size(arguments);
  if (count < 3 || !Is(PyTuple_GetItem(arguments, count - 1), "asyncOp", false)) return false;
  PyObject* tensor = PyTuple_GetItem(arguments, 1);
  for (int depth = 0; depth < 2 && PyList_Check(tensor) != 0 && PyList_Size(tensor) > 0; ++depth) {
    tensor = PyList_GetItem(tensor, 0);
  }
  return Is(tensor, "is_cuda", true);
}

/// What it is that a process group does, and that somebody will wait for.
PyObject* Issue(const Around& around, PyObject* arguments, PyObject* options) {
  const auto issued = [&](bool is_in_stream) {
    return Issued{NumberOf(PyTuple_GetItem(arguments, 0)), around.kind == kIssueToOne, is_in_stream};
  };
  const bool is_in_stream = device.is_open() && IsInStream(arguments);
  const Part part = is_in_stream ? EnterWait(issued(true), true) : 0;
  PyObject* const work = PyObject_Call(around.original, arguments, options);
  Leave(part);
  if (work != nullptr && work != Py_None) works.Remember(work, issued(is_in_stream));
  return work;
}

PyObject* FindGroupOfTensor(const Around& around, PyObject* arguments, PyObject* options) {
  PyObject* const group = PyObject_Call(around.original, arguments, options);
  if (group != nullptr) NoteGroup(group);
  return group;
}

PyObject* IssueTensor(const Around& around, PyObject* arguments, PyObject* options) {
  if (PyTuple_Size(arguments) > 0) RememberTensor(PyTuple_GetItem(arguments, 0));
  return PyObject_Call(around.original, arguments, options);
}

/// (arguments, options) -> what the original gives for them.
PyObject* Call(PyObject* self, PyObject* call) {
  const auto* const around = static_cast<Around*>(PyCapsule_GetPointer(self, nullptr));
  PyObject* const arguments = PyTuple_GetItem(call, 0);
  PyObject* const options = PyTuple_GetItem(call, 1);
  if (options == nullptr) return nullptr;
  if (recording == Recording::kOff) return PyObject_Call(around->original, arguments, options);
  switch (around->kind) {
    case kIssue:
    case kIssueToOne: return Issue(*around, arguments, options);
    case kGroupOfTensor: return FindGroupOfTensor(*around, arguments, options);
    case kIssueTensor: return IssueTensor(*around, arguments, options);
    default: break;
  }
  const unsigned long thread = PyThread_get_thread_ident();
  std::vector<unsigned long>& inside = *around->inside;
  if (std::find(inside.begin(), inside.end(), thread) != inside.end()) {
    if (around->kind == kOutermostBackward) MissAwaited();
    return PyObject_Call(around->original, arguments, options);
  }
  inside.push_back(thread);
  const Part part = Begin(*around, arguments);
  const bool waits = around->kind == kOutermostBackward && ExpectsWait() && part != 0;
  if (waits) AwaitWait();
  PyObject* const result = PyObject_Call(around->original, arguments, options);
  if (waits) EndWait();
  Leave(part);
  inside.erase(std::find(inside.begin(), inside.end(), thread));
  return result;
}

PyMethodDef call_method = {"call", Call, METH_VARARGS, nullptr};

}  // namespace

PyObject* MakeAround(PyObject*, PyObject* arguments) {
  PyObject* original = nullptr;
  long phase = 0;
  int kind = 0;
  if (PyArg_ParseTuple(arguments, "Oli:around", &original, &phase, &kind) == 0) return nullptr;
  Py_INCREF(original);
  auto* const around =
      new Around{original, phase, static_cast<Kind>(kind), nullptr};  // For as long as the process runs.
  around->inside = around->kind == kModule ? &inside_modules : new std::vector<unsigned long>;
  PyObject* const capsule = PyCapsule_New(around, nullptr, nullptr);
  return capsule == nullptr ? nullptr : PyCFunction_New(&call_method, capsule);
}

}  // namespace lockstep::hooks
