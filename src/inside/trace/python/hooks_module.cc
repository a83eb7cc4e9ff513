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
#include "inside/trace/python/device_clock.h"
#include "inside/trace/python/mark_watcher.h"
#include "inside/trace/python/process_groups.h"

namespace {

using namespace lockstep::hooks;

enum Phase { kInput, kForward, kBackward, kOptimizer, kComm, kCheckpoint, kValidation, kGc, kPhaseCount };
constexpr std::array<const char*, kPhaseCount> kPhaseNames = {"input", "forward",    "backward",   "optimizer",
                                                              "comm",  "checkpoint", "validation", "gc"};
constexpr long kNone = -1;
constexpr int64_t kFirstReports = 3;  // Steps from the first one on: a device is used from one of them on, or never.
constexpr int64_t kReportInterval = 1000;

std::array<lockstep_name_t, kPhaseCount> names;
std::array<lockstep_name_t, kPhaseCount> device_names;
bool marks_steps = true;  // False: the program does.
int64_t step_count = 0;
DeviceClock device;
int64_t reported_step = 1;

bool IsRecording() {
  if (recording != Recording::kNotYet) return recording == Recording::kOn;
  recording = Recording::kOff;
  if (Ask(callbacks.begin, nullptr, 0) != 1) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = lockstep_name(kPhaseNames[i]);
    device_names[i] = lockstep_name((std::string(kDeviceStage) + kPhaseNames[i]).c_str());
  }
  recording = Recording::kOn;
  if (marks_steps) lockstep_step();
  return true;
}

/// A part of a step that is under way: a span, or, of what the device alone waits for, a number of another kind. 0:
/// none.
using Part = uint64_t;
constexpr Part kOfDevice = Part{1} << 63;

Part Enter(long phase) {
  // No training begins with it, nor with a wait: the rank may not be known yet, as where Lightning meets its ranks
  // first.
  if (recording == Recording::kNotYet && phase == kCheckpoint) return 0;
  if (phase < 0 || phase >= kPhaseCount || !IsRecording()) return 0;
  const lockstep_span_t span = lockstep_begin(names[static_cast<size_t>(phase)]);
  if (span != 0) device.Begin(span, device_names[static_cast<size_t>(phase)]);
  return span;
}

/// A wait of the host, or of the device's stream for another one. No recording begins with it.
Part EnterWait(const Issued& issued, bool is_on_device) {
  if (recording != Recording::kOn) return 0;
  if (!is_on_device) return lockstep_begin(WaitName(issued, false));
  if (!device.is_open()) return 0;
  static Part newest = kOfDevice;
  device.BeginWait(++newest, WaitName(issued, true));
  return newest;
}

void Leave(Part part) {
  if (part == 0) return;
  device.End(part);
  if (part < kOfDevice) lockstep_end(part);
}

bool IsOnDevice() { return Ask(callbacks.is_on_device, nullptr, 1) != 0; }

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
  device.EndStep();
  if (uses_device && IsNewSecond()) Py_XDECREF(CallBack(callbacks.each_second));
  ++step_count;
  const bool is_reported = step_count <= kFirstReports || step_count == reported_step;
  if (!is_reported && step_count % kReportInterval != 0) return;
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
  Part part = 0;
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
  Leave(std::exchange(wait.part, 0));
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
  if (wait.part == 0) wait.part = EnterWait(wait.issued, uses_device);
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

enum Kind { kPlain, kWorkWait, kBufferWait, kModule, kOutermostBackward, kShardWait, kIssue, kIssueToOne };

struct Around {
  PyObject* original = nullptr;
  long phase = 0;
  Kind kind = kPlain;
  std::vector<unsigned long>* inside = nullptr;  ///< Threads.
};
std::vector<unsigned long> inside_modules;  // Whichever class is called.

/// A new reference to an object's attribute; null: it has none.
PyObject* AttributeOf(PyObject* object, const char* name) {
  PyObject* const value = object == nullptr ? nullptr : PyObject_GetAttrString(object, name);
  if (value == nullptr) PyErr_Clear();
  return value;
}

bool Is(PyObject* object, const char* attribute, bool wanted) {
  PyObject* const value = AttributeOf(object, attribute);
  const int is_true = value == nullptr ? -1 : PyObject_IsTrue(value);
  Py_XDECREF(value);
  if (is_true < 0) PyErr_Clear();
  return is_true == (wanted ? 1 : 0);
}

/// The stream waits for the parameters of an FSDPParamGroup, where these are being gathered.
Part EnterShardWait(PyObject* parameters) {
  if (!device.is_open() || !Is(parameters, "_all_gather_result", true)) return 0;
  PyObject* const group = AttributeOf(parameters, "_all_gather_process_group");
  const Issued issued = group == nullptr ? Issued{} : Issued{.group = NumberOf(group)};
  Py_XDECREF(group);
  return EnterWait(issued, true);
}

Part Begin(const Around& around, PyObject* arguments) {
  PyObject* const self = PyTuple_GetItem(arguments, 0);
  PyErr_Clear();  // Of a function without arguments.
  switch (around.kind) {
    case kModule: return Enter(ChooseModule(self));
    case kWorkWait: {
      const Issued issued = RecallWork(self);
      return issued.is_in_stream ? 0 : EnterWait(issued, IsOnDevice());
    }
    case kShardWait: return EnterShardWait(self);
    // Of a DistributedDataParallel, within its forward.
    case kBufferWait: return EnterWait(wait.issued, IsOnDevice());
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
  if (work != nullptr && work != Py_None) RememberWork(work, issued(is_in_stream));
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
  const Part part = Begin(*around, arguments);
  const bool waits = around->kind == kOutermostBackward && wait.is_expected && part != 0;
  if (waits) wait.is_awaited = true;
  PyObject* const result = PyObject_Call(around->original, arguments, options);
  if (waits) EndWait();
  Leave(part);
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

Part optimizer_part = 0;

struct {
  PyObject* optimizer = nullptr;  ///< A weak reference.
  unsigned long thread = 0;
  bool is_open = false;  ///< It steps just now.
} only;

PyObject* BeginOptimizer(PyObject*, PyObject*) {
  optimizer_part = Enter(kOptimizer);
  Py_RETURN_NONE;
}

PyObject* EndOptimizer(PyObject*, PyObject*) {
  Leave(std::exchange(optimizer_part, 0));
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
  optimizer_part = Enter(kOptimizer);
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
  device.Close();
  Py_RETURN_NONE;
}

/// (function from a device's number to the job's stream there, that number) -> whether the device's times are taken.
/// Where a step begins, in the thread that trains; again at any time.
PyObject* UseDevice(PyObject*, PyObject* arguments) {
  PyObject *current_stream = nullptr, *number = nullptr;
  if (PyArg_ParseTuple(arguments, "OO:use_device", &current_stream, &number) == 0) return nullptr;
  uses_device = true;
  if (device.is_open()) {
    device.Tell();
  } else if (marks_steps && device.Open(current_stream, number, device_names[kBackward], step_count)) {
    ForgetModules();
  }
  return PyBool_FromLong(device.is_open());
}

// Stages that the program marks itself (spans_module.cc).

void BeginMark(lockstep_span_t span, lockstep_name_t name) {
  if (span == 0 || !device.is_open()) return;
  static const lockstep_name_t copy = lockstep_name("h2d");
  const auto phase = std::find(names.begin(), names.end(), name);
  if (phase != names.end()) {
    device.Begin(span, device_names[static_cast<size_t>(phase - names.begin())]);
  } else if (name == copy) {
    device.Begin(span, lockstep_name((std::string(kDeviceStage) + "h2d").c_str()));
  }
}

void EndMark(lockstep_span_t span) { device.End(span); }

constexpr MarkWatcher kMarks = {BeginMark, EndMark};

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
    {"use_device", UseDevice, METH_VARARGS, nullptr},
    {"resolve_device", ResolveDevice, METH_NOARGS, nullptr},
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
  PyObject* const module = PyModule_Create(&definition);
  PyObject* const marks =
      module == nullptr ? nullptr : PyCapsule_New(const_cast<MarkWatcher*>(&kMarks), kMarkWatcher, nullptr);
  if (marks == nullptr || PyModule_AddObject(module, "marks", marks) < 0) return nullptr;
  return module;
}
