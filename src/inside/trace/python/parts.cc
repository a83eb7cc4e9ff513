#include "inside/trace/python/parts.h"

#include <lockstep/trace.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "inside/trace/python/callbacks.h"

namespace lockstep::hooks {

DeviceClock device;

namespace {

constexpr std::array<const char*, kPhaseCount> kPhaseNames = {"input", "forward",    "backward",   "optimizer",
                                                              "comm",  "checkpoint", "validation", "gc"};
constexpr Part kOfDevice = Part{1} << 63;
constexpr int64_t kFirstReports = 3;  // Steps from the first one on: a device is used from one of them on, or never.
constexpr int64_t kReportInterval = 1000;

std::array<lockstep_name_t, kPhaseCount> names;
std::array<lockstep_name_t, kPhaseCount> device_names;
bool marks_steps = true;  // False: the program does.
bool uses_device = false;
int64_t step_count = 0;
int64_t reported_step = 1;

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

/// True once in each.
bool IsNewSecond() {
  static time_t told = 0;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const bool is_new = now.tv_sec != told;
  told = now.tv_sec;
  return is_new;
}

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

}  // namespace

const MarkWatcher kMarks = {BeginMark, EndMark};

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

Part Enter(long phase) {
  // No training begins with it, nor with a wait: the rank may not be known yet, as where Lightning meets its ranks
  // first.
  if (recording == Recording::kNotYet && phase == kCheckpoint) return 0;
  if (phase < 0 || phase >= kPhaseCount || !IsRecording()) return 0;
  const lockstep_span_t span = lockstep_begin(names[static_cast<size_t>(phase)]);
  if (span != 0) device.Begin(span, device_names[static_cast<size_t>(phase)]);
  return span;
}

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

bool IsOnDevice() { return Ask(callbacks.is_on_device, nullptr, 1) != 0; }

size_t NumberOf(PyObject* group) { return NumberOfGroup(group, AskGroupName); }

bool UseDevice(PyObject* current_stream, PyObject* number) {
  uses_device = true;
  if (device.is_open()) {
    device.Tell();
  } else if (marks_steps) {
    device.Open(current_stream, number, device_names[kBackward], step_count);
  }
  return device.is_open();
}

bool UsesDevice() { return uses_device; }

void LeaveSteps() {
  marks_steps = false;
  device.Close();
}

int64_t ReportStep(int64_t count) { return reported_step = step_count + count; }

}  // namespace lockstep::hooks
