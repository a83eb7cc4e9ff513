// The module lockstep._hooks: what runs several times in every step of python/lockstep/_steps.py. A frame of Python
// costs most of a microsecond there, for what the job does between two of them has driven it out of the processor's
// caches. Python finds out what is what and hooks it; this marks it. Python's stable interface, so that one file serves
// every version from 3.8 on; all of it with the interpreter's lock held. Nothing here raises: what goes wrong is told
// to `lost`.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <lockstep/trace.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inside/trace/python/callbacks.h"
#include "inside/trace/python/process_groups.h"

namespace {

using namespace lockstep::hooks;

enum Phase { kInput, kForward, kBackward, kOptimizer, kComm, kCheckpoint, kValidation, kGc, kPhaseCount };
constexpr std::array<const char*, kPhaseCount> kPhaseNames = {"input", "forward",    "backward",   "optimizer",
                                                              "comm",  "checkpoint", "validation", "gc"};
constexpr long kNone = -1;
constexpr int64_t kReportInterval = 1000;

std::array<lockstep_name_t, kPhaseCount> names;
bool marks_steps = true;  // False: the program does.
int64_t step_count = 0;
int64_t reported_step = 1;

bool IsRecording() {
  if (recording != Recording::kNotYet) return recording == Recording::kOn;
  recording = Recording::kOff;
  if (Ask(callbacks.begin, nullptr, 0) != 1) return false;
  for (size_t i = 0; i < names.size(); ++i) names[i] = lockstep_name(kPhaseNames[i]);
  recording = Recording::kOn;
  if (marks_steps) lockstep_step();
  return true;
}

lockstep_span_t Enter(long phase) {
  // No training begins with it, nor with a wait: the rank may not be known yet, as where Lightning meets its ranks
  // first.
  if (recording == Recording::kNotYet && phase == kCheckpoint) return 0;
  return phase >= 0 && phase < kPhaseCount && IsRecording() ? lockstep_begin(names[static_cast<size_t>(phase)]) : 0;
}

/// No recording begins with it.
lockstep_span_t EnterWait(const Issued& issued) {
  return recording == Recording::kOn ? lockstep_begin(WaitName(issued)) : 0;
}

std::optional<std::string> AskGroupName(PyObject* group) {
  PyObject* const answer = CallBack(callbacks.name_group, group);
  PyObject* const bytes = answer == nullptr || answer == Py_None ? nullptr : PyUnicode_AsUTF8String(answer);
  Py_XDECREF(answer);
  SwitchOffIfFailed();
  if (bytes == nullptr) return std::nullopt;
  std::string name = PyBytes_AsString(bytes);
  Py_DECREF(bytes);
  return name;
}

size_t NumberOf(PyObject* group) { return NumberOfGroup(group, AskGroupName); }

bool uses_device = false;

/// True once in each.
bool IsNewSecond() {
  static time_t told = 0;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const bool is_new = now.tv_sec != told;
  told = now.tv_sec;
  return is_new;
}

void EndStep() {
  if (!IsRecording()) return;
  if (marks_steps) lockstep_step();
  if (uses_device && IsNewSecond()) Py_XDECREF(CallBack(callbacks.each_second));
  ++step_count;
  if (step_count != reported_step && step_count % kReportInterval != 0) return;
  PyObject* const count = PyLong_FromLongLong(step_count);
  if (count != nullptr) Py_XDECREF(CallBack(callbacks.stepped, count));
  Py_XDECREF(count);
}

// The outermost backward. DistributedDataParallel waits for its collectives in a callback that autograd runs when all
// gradients are there; callbacks run in the order in which they were queued, so that one queued earlier sees it begin.

struct {
  bool is_expected = false;  ///< The next backward ends with it.
  bool is_awaited = false;   ///< That backward runs, and the callback is not queued so far.
  bool has_come = false;     ///< Since the last module that may wait was seen first: another backward may have none.
  Issued issued;             ///< On the group of the module that was called last.
  lockstep_span_t span = 0;
  PyObject* callback = nullptr;
} wait;

void MissWait() {
  wait.is_awaited = false;
  PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);  // The job's own.
  Py_XDECREF(CallBack(callbacks.missed));
  PyErr_Restore(type, error, traceback);
}

void EndWait() {
  lockstep_end(wait.span);
  wait.span = 0;
  if (wait.is_awaited && !wait.has_come) MissWait();
  wait.is_awaited = false;
}

/// () -> None: from within a backward, before all gradients are there.
PyObject* QueueWait(PyObject*, PyObject*) {
  if (wait.is_awaited) {
    wait.is_awaited = false;
    wait.has_come = true;
    Py_XDECREF(CallBack(callbacks.queue_callback, wait.callback));
  }
  Py_RETURN_NONE;
}

PyObject* BeginWait(PyObject*, PyObject*) {
  if (wait.span == 0) wait.span = EnterWait(wait.issued);
  Py_RETURN_NONE;
}

/// (whether the next backward ends with a wait, for which process group): of a module that is new.
PyObject* ExpectWait(PyObject*, PyObject* arguments) {
  PyObject *is_expected = nullptr, *group = nullptr;
  if (PyArg_ParseTuple(arguments, "OO:expect_wait", &is_expected, &group) == 0) return nullptr;
  wait.is_expected = PyObject_IsTrue(is_expected) == 1;
  wait.has_come = false;
  wait.issued.group = NumberOf(group);
  Py_RETURN_NONE;
}

PyObject* ExpectsWait(PyObject*, PyObject*) { return PyBool_FromLong(wait.is_expected); }

// Modules whose forward was chosen lately: what Python said of them is so again.

struct Known {
  PyObject* module = nullptr;  ///< A weak reference.
  PyObject* ddp = nullptr;     ///< Another, to the DistributedDataParallel that it is or holds; null: none.
  Issued issued = {};          ///< On its process group.
};
std::array<Known, 8> known_modules;
size_t next_known = 0;
PyObject* sync_attribute = nullptr;

/// (weak reference to a module, weak reference to a DistributedDataParallel that waits on the host, or None, its group)
PyObject* Remember(PyObject*, PyObject* arguments) {
  PyObject *module = nullptr, *ddp = nullptr, *group = nullptr;
  if (PyArg_ParseTuple(arguments, "OOO:remember", &module, &ddp, &group) == 0) return nullptr;
  Known& known = known_modules[next_known++ % known_modules.size()];
  Py_XDECREF(known.module);
  Py_XDECREF(known.ddp);
  Py_INCREF(module);
  known = {.module = module, .ddp = ddp == Py_None ? nullptr : ddp};
  Py_XINCREF(known.ddp);
  if (known.ddp != nullptr) known.issued.group = NumberOf(group);
  Py_RETURN_NONE;
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
      wait.is_expected = synchronizes != nullptr && PyObject_IsTrue(synchronizes) == 1;
      Py_XDECREF(synchronizes);
      wait.issued = known.issued;
      SwitchOffIfFailed();
      return kForward;
    }
  }
  return Ask(callbacks.choose_module, module, kNone);
}

// A function or method of PyTorch's with a span around it. Where it is called within itself, the outermost call counts.

enum Kind { kPlain, kWorkWait, kBufferWait, kModule, kOutermostBackward, kIssue, kIssueToOne };

struct Around {
  PyObject* original = nullptr;
  long phase = 0;
  Kind kind = kPlain;
  std::vector<unsigned long>* inside = nullptr;  ///< Threads.
};
std::vector<unsigned long> inside_modules;  // Whichever class is called.

lockstep_span_t Begin(const Around& around, PyObject* arguments) {
  PyObject* const self = PyTuple_GetItem(arguments, 0);
  switch (around.kind) {
    case kModule: return Enter(ChooseModule(self));
    case kWorkWait: {
      const Issued issued = RecallWork(self);
      return Ask(callbacks.is_on_device, nullptr, 1) != 0 ? 0 : EnterWait(issued);
    }
    case kBufferWait: {  // Of a DistributedDataParallel, within its forward.
      return Ask(callbacks.is_on_device, nullptr, 1) != 0 ? 0 : EnterWait(wait.issued);
    }
    default: PyErr_Clear(); return Enter(around.phase);
  }
}

/// What it is that a process group does, and that somebody will wait for.
PyObject* Issue(const Around& around, PyObject* arguments, PyObject* options) {
  PyObject* const work = PyObject_Call(around.original, arguments, options);
  if (work == nullptr || work == Py_None) return work;
  RememberWork(work, {NumberOf(PyTuple_GetItem(arguments, 0)), around.kind == kIssueToOne});
  return work;
}

/// (arguments, options) -> what the original gives for them.
PyObject* Call(PyObject* self, PyObject* call) {
  const auto* const around = static_cast<Around*>(PyCapsule_GetPointer(self, nullptr));
  PyObject* const arguments = PyTuple_GetItem(call, 0);
  PyObject* const options = PyTuple_GetItem(call, 1);
  if (options == nullptr) return nullptr;
  if (recording == Recording::kOff) return PyObject_Call(around->original, arguments, options);
  if (around->kind >= kIssue) return Issue(*around, arguments, options);
  const unsigned long thread = PyThread_get_thread_ident();
  std::vector<unsigned long>& inside = *around->inside;
  if (std::find(inside.begin(), inside.end(), thread) != inside.end()) {
    // A backward within a backward has callbacks of its own.
    if (around->kind == kOutermostBackward && wait.is_awaited) MissWait();
    return PyObject_Call(around->original, arguments, options);
  }
  inside.push_back(thread);
  const lockstep_span_t span = Begin(*around, arguments);
  const bool waits = around->kind == kOutermostBackward && wait.is_expected && span != 0;
  if (waits) wait.is_awaited = true;
  PyObject* const result = PyObject_Call(around->original, arguments, options);
  if (waits) EndWait();
  lockstep_end(span);
  inside.erase(std::find(inside.begin(), inside.end(), thread));
  return result;
}

PyMethodDef call_method = {"call", Call, METH_VARARGS, nullptr};

/// (original, phase, kind) -> a function (arguments, options).
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

// The optimizer that ends the steps. Python finds it (_boundaries.py), and while it is the only one that steps, and in
// one thread, these do what Python would.

lockstep_span_t optimizer_span = 0;

struct {
  PyObject* optimizer = nullptr;  ///< A weak reference.
  unsigned long thread = 0;
  bool is_open = false;  ///< It steps just now.
} only;

PyObject* BeginOptimizer(PyObject*, PyObject*) {
  optimizer_span = Enter(kOptimizer);
  Py_RETURN_NONE;
}

PyObject* EndOptimizer(PyObject*, PyObject*) {
  lockstep_end(optimizer_span);
  optimizer_span = 0;
  Py_RETURN_NONE;
}

PyObject* StepEnded(PyObject*, PyObject*) {
  EndStep();
  Py_RETURN_NONE;
}

bool IsOnly(PyObject* optimizer) {
  return only.optimizer != nullptr && PyWeakref_GetObject(only.optimizer) == optimizer &&
         PyThread_get_thread_ident() == only.thread && recording == Recording::kOn;
}

/// (optimizer) -> whether nothing is left to be done.
PyObject* BeforeOnly(PyObject*, PyObject* optimizer) {
  if (!IsOnly(optimizer) || only.is_open) Py_RETURN_FALSE;
  only.is_open = true;
  optimizer_span = Enter(kOptimizer);
  Py_RETURN_TRUE;
}

PyObject* AfterOnly(PyObject*, PyObject* optimizer) {
  if (!IsOnly(optimizer) || !only.is_open) Py_RETURN_FALSE;
  only.is_open = false;
  EndOptimizer(nullptr, nullptr);
  EndStep();
  Py_RETURN_TRUE;
}

/// (weak reference to an optimizer) -> whether the two above will do something.
PyObject* SettleOn(PyObject*, PyObject* optimizer) {
  Py_XDECREF(only.optimizer);
  Py_INCREF(optimizer);
  only = {.optimizer = optimizer, .thread = PyThread_get_thread_ident(), .is_open = false};
  return PyBool_FromLong(recording == Recording::kOn);
}

/// () -> whether the optimizer was left in mid-step, in this thread: its span is still open.
PyObject* Unsettle(PyObject*, PyObject*) {
  const bool is_open = only.is_open;
  const bool is_here = PyThread_get_thread_ident() == only.thread;
  Py_XDECREF(only.optimizer);
  only = {};
  if (is_open && !is_here) EndOptimizer(nullptr, nullptr);
  return PyBool_FromLong(is_open && is_here);
}

// Python's garbage collection: full ones. The others are too short, and too many.

PyObject* generation_key = nullptr;
PyObject* start_phase = nullptr;
lockstep_span_t collection_span = 0;

/// (phase, info), as gc.callbacks has it.
PyObject* Collects(PyObject*, PyObject* arguments) {
  PyObject* const phase = PyTuple_GetItem(arguments, 0);
  PyObject* const info = PyTuple_GetItem(arguments, 1);
  PyObject* const generation = info == nullptr ? nullptr : PyDict_GetItem(info, generation_key);
  if (recording == Recording::kOn && generation != nullptr && PyLong_AsLong(generation) == 2) {
    lockstep_end(collection_span);
    collection_span = PyUnicode_Compare(phase, start_phase) == 0 ? Enter(kGc) : 0;
  }
  PyErr_Clear();
  Py_RETURN_NONE;
}

/// (count) -> the number of steps after which `stepped` will be called: `count` more.
PyObject* ReportStep(PyObject*, PyObject* count) {
  reported_step = step_count + PyLong_AsLong(count);
  return PyErr_Occurred() == nullptr ? PyLong_FromLongLong(reported_step) : nullptr;
}

/// (name, value)
PyObject* Count(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  double value = 0;
  if (PyArg_ParseTuple(arguments, "sd:count", &name, &value) == 0) return nullptr;
  lockstep_counter(lockstep_name(name), value);
  Py_RETURN_NONE;
}

PyObject* LeaveSteps(PyObject*, PyObject*) {
  marks_steps = false;
  Py_RETURN_NONE;
}

PyObject* UsesDevice(PyObject*, PyObject*) {
  uses_device = true;
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

PyMethodDef begin_wait_method = {"begin_wait", BeginWait, METH_NOARGS, nullptr};
PyMethodDef functions[] = {
    {"configure", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Configure)), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"around", MakeAround, METH_VARARGS, nullptr},
    {"remember", Remember, METH_VARARGS, nullptr},
    {"expect_wait", ExpectWait, METH_VARARGS, nullptr},
    {"expects_wait", ExpectsWait, METH_NOARGS, nullptr},
    {"queue_wait", QueueWait, METH_NOARGS, nullptr},
    {"before_optimizer", BeginOptimizer, METH_NOARGS, nullptr},
    {"after_optimizer", EndOptimizer, METH_NOARGS, nullptr},
    {"step_ended", StepEnded, METH_NOARGS, nullptr},
    {"before_only", BeforeOnly, METH_O, nullptr},
    {"after_only", AfterOnly, METH_O, nullptr},
    {"settle_on", SettleOn, METH_O, nullptr},
    {"unsettle", Unsettle, METH_NOARGS, nullptr},
    {"collects", Collects, METH_VARARGS, nullptr},
    {"report_step", ReportStep, METH_O, nullptr},
    {"count", Count, METH_VARARGS, nullptr},
    {"leave_steps", LeaveSteps, METH_NOARGS, nullptr},
    {"uses_device", UsesDevice, METH_NOARGS, nullptr},
    {"record", Record, METH_O, nullptr},
    {"switch_off", SwitchOff, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_hooks", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__hooks() {
  sync_attribute = PyUnicode_InternFromString("require_backward_grad_sync");
  generation_key = PyUnicode_InternFromString("generation");
  start_phase = PyUnicode_InternFromString("start");
  wait.callback = PyCFunction_New(&begin_wait_method, nullptr);
  if (sync_attribute == nullptr || generation_key == nullptr || start_phase == nullptr || wait.callback == nullptr)
    return nullptr;
  return PyModule_Create(&definition);
}
