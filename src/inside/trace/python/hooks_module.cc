// The module lockstep._hooks: what runs several times in every step of python/lockstep/_steps.py. A frame of Python
// costs most of a microsecond there, for what the job does between two of them has driven it out of the processor's
// caches. Python finds out what is what and hooks it; this marks it. Python's stable interface, so that one file serves
// every version from 3.8 on; all of it with the interpreter's lock held. Nothing here raises: what goes wrong is told
// to `lost`.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <lockstep/trace.h>

#include <utility>

#include "inside/trace/python/around.h"
#include "inside/trace/python/backward_wait.h"
#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/mark_watcher.h"
#include "inside/trace/python/modules.h"
#include "inside/trace/python/optimizer.h"
#include "inside/trace/python/parts.h"

namespace {

using namespace lockstep::hooks;

/// () -> None: from within a backward, before all gradients are there.
PyObject* QueueWaitHere(PyObject*, PyObject*) {
  QueueWait();
  Py_RETURN_NONE;
}

/// (whether the next backward ends with a wait, for which process group): of a module that is new.
PyObject* ExpectWaitOf(PyObject*, PyObject* arguments) {
  PyObject *is_expected = nullptr, *group = nullptr;
  if (PyArg_ParseTuple(arguments, "OO:expect_wait", &is_expected, &group) == 0) return nullptr;
  ExpectFirstWait(PyObject_IsTrue(is_expected) == 1, Issued{.group = NumberOf(group)});
  Py_RETURN_NONE;
}

PyObject* IsWaitExpected(PyObject*, PyObject*) { return PyBool_FromLong(ExpectsWait()); }

/// (weak reference to a module, weak reference to a DistributedDataParallel that waits on the host, or None, its group)
PyObject* Remember(PyObject*, PyObject* arguments) {
  PyObject *module = nullptr, *ddp = nullptr, *group = nullptr;
  if (PyArg_ParseTuple(arguments, "OOO:remember", &module, &ddp, &group) == 0) return nullptr;
  RememberModule(module, ddp, group);
  Py_RETURN_NONE;
}

PyObject* BeforeOptimizer(PyObject*, PyObject*) {
  BeginOptimizer();
  Py_RETURN_NONE;
}

PyObject* AfterOptimizer(PyObject*, PyObject*) {
  EndOptimizer();
  Py_RETURN_NONE;
}

PyObject* StepEnded(PyObject*, PyObject*) {
  EndStep();
  Py_RETURN_NONE;
}

// (optimizer) -> bool

PyObject* BeforeOnlyOne(PyObject*, PyObject* optimizer) { return PyBool_FromLong(BeforeOnly(optimizer)); }

PyObject* AfterOnlyOne(PyObject*, PyObject* optimizer) { return PyBool_FromLong(AfterOnly(optimizer)); }

PyObject* SettleOnOne(PyObject*, PyObject* optimizer) { return PyBool_FromLong(SettleOn(optimizer)); }

PyObject* UnsettleIt(PyObject*, PyObject*) { return PyBool_FromLong(Unsettle()); }

// Python's garbage collection: full ones. The others are too short, and too many.

PyObject* generation_key = nullptr;
PyObject* start_phase = nullptr;
Part collection = 0;

/// (phase, info), as gc.callbacks has it.
PyObject* Collects(PyObject*, PyObject* arguments) {
  PyObject* const phase = PyTuple_GetItem(arguments, 0);
  PyObject* const info = PyTuple_GetItem(arguments, 1);
  PyObject* const generation = info == nullptr ? nullptr : PyDict_GetItem(info, generation_key);
  if (recording == Recording::kOn && generation != nullptr && PyLong_AsLong(generation) == 2) {
    Leave(collection);
    collection = PyUnicode_Compare(phase, start_phase) == 0 ? Enter(kGc) : 0;
  }
  PyErr_Clear();
  Py_RETURN_NONE;
}

/// (count) -> the number of steps after which `stepped` will be called: `count` more.
PyObject* ReportStepIn(PyObject*, PyObject* count) {
  const long more = PyLong_AsLong(count);
  return PyErr_Occurred() == nullptr ? PyLong_FromLongLong(ReportStep(more)) : nullptr;
}

/// (name, value)
PyObject* Count(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  double value = 0;
  if (PyArg_ParseTuple(arguments, "sd:count", &name, &value) == 0) return nullptr;
  lockstep_counter(lockstep_name(name), value);
  Py_RETURN_NONE;
}

PyObject* LeaveStepsToProgram(PyObject*, PyObject*) {
  LeaveSteps();
  Py_RETURN_NONE;
}

/// (function from a device's number to the job's stream there, that number) -> whether the device's times are taken.
/// Where a step begins, in the thread that trains; again at any time.
PyObject* UseDeviceOf(PyObject*, PyObject* arguments) {
  PyObject *current_stream = nullptr, *number = nullptr;
  if (PyArg_ParseTuple(arguments, "OO:use_device", &current_stream, &number) == 0) return nullptr;
  const bool was_open = device.is_open();
  const bool is_open = UseDevice(current_stream, number);
  if (is_open && !was_open) ForgetModules();
  return PyBool_FromLong(is_open);
}

PyObject* ResolveDevice(PyObject*, PyObject*) {
  device.Resolve();
  Py_RETURN_NONE;
}

/// (folder) -> whether liblockstep records: there, unless it does already. Its file is there then, with the rank that
/// the environment says just now.
PyObject* Record(PyObject*, PyObject* folder) {
  if (lockstep_recording != 0) {
    lockstep_mark(lockstep_name("lockstep_trace_start"));
    Py_RETURN_TRUE;
  }
  PyObject* const path = PyUnicode_EncodeFSDefault(folder);
  if (path == nullptr) return nullptr;
  const int records = lockstep_trace_start(PyBytes_AsString(path));
  Py_DECREF(path);
  return PyBool_FromLong(records);
}

PyObject* SwitchOff(PyObject*, PyObject*) {
  recording = Recording::kOff;
  device.Forget();
  Py_RETURN_NONE;
}

/// Keyword arguments: the callbacks, each once.
PyObject* Configure(PyObject*, PyObject*, PyObject* options) {
  const std::pair<const char*, PyObject**> wanted[] = {
      {"begin", &callbacks.begin},
      {"lost", &callbacks.lost},
      {"stepped", &callbacks.stepped},
      {"each_second", &callbacks.each_second},
      {"missed", &callbacks.missed},
      {"choose_module", &callbacks.choose_module},
      {"name_group", &callbacks.name_group},
      {"find_group", &callbacks.find_group},
      {"find_callers_group", &callbacks.find_callers_group},
      {"current_task", &callbacks.current_task},
      {"wants_gradients", &callbacks.wants_gradients},
      {"is_on_device", &callbacks.is_on_device},
      {"queue_callback", &callbacks.queue_callback},
  };
  for (const auto& [name, callback] : wanted) {
    *callback = options == nullptr ? nullptr : PyDict_GetItemString(options, name);
    if (*callback == nullptr) return PyErr_Format(PyExc_TypeError, "configure() needs %s", name);
    Py_INCREF(*callback);
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"configure", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Configure)), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"around", MakeAround, METH_VARARGS, nullptr},
    {"remember", Remember, METH_VARARGS, nullptr},
    {"expect_wait", ExpectWaitOf, METH_VARARGS, nullptr},
    {"expects_wait", IsWaitExpected, METH_NOARGS, nullptr},
    {"queue_wait", QueueWaitHere, METH_NOARGS, nullptr},
    {"before_optimizer", BeforeOptimizer, METH_NOARGS, nullptr},
    {"after_optimizer", AfterOptimizer, METH_NOARGS, nullptr},
    {"step_ended", StepEnded, METH_NOARGS, nullptr},
    {"before_only", BeforeOnlyOne, METH_O, nullptr},
    {"after_only", AfterOnlyOne, METH_O, nullptr},
    {"settle_on", SettleOnOne, METH_O, nullptr},
    {"unsettle", UnsettleIt, METH_NOARGS, nullptr},
    {"collects", Collects, METH_VARARGS, nullptr},
    {"report_step", ReportStepIn, METH_O, nullptr},
    {"count", Count, METH_VARARGS, nullptr},
    {"leave_steps", LeaveStepsToProgram, METH_NOARGS, nullptr},
    {"use_device", UseDeviceOf, METH_VARARGS, nullptr},
    {"resolve_device", ResolveDevice, METH_NOARGS, nullptr},
    {"record", Record, METH_O, nullptr},
    {"switch_off", SwitchOff, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_hooks", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__hooks() {
  generation_key = PyUnicode_InternFromString("generation");
  start_phase = PyUnicode_InternFromString("start");
  if (generation_key == nullptr || start_phase == nullptr || !PrepareModules() || !PrepareWaits()) return nullptr;
  PyObject* const module = PyModule_Create(&definition);
  PyObject* const marks =
      module == nullptr ? nullptr : PyCapsule_New(const_cast<MarkWatcher*>(&kMarks), kMarkWatcher, nullptr);
  if (marks == nullptr || PyModule_AddObject(module, "marks", marks) < 0) return nullptr;
  return module;
}
