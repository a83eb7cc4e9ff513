#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

namespace lockstep::hooks {

enum class Recording : uint8_t { kNotYet, kOn, kOff };
extern Recording recording;

/// Functions of Python's that are called from here.
struct Callbacks {
  PyObject* begin = nullptr;  ///< () -> bool: whether to record; asked once, at the first mark.
  PyObject* lost = nullptr;   ///< (error): nothing is marked any more.
  PyObject* stepped =
      nullptr;  ///< (count): so many steps have ended: the first, `reported_step`, each kReportInterval.
  PyObject* each_second = nullptr;    ///< (): at most so often, when a step ends, once a device is used.
  PyObject* missed = nullptr;         ///< (): a backward whose end is a wait for all ranks did not say so.
  PyObject* choose_module = nullptr;  ///< (module) -> phase
  PyObject* name_group = nullptr;     ///< (process group) -> "dp[0,2]", "" of that of all ranks, None
  PyObject* find_group = nullptr;     ///< (a process group's name) -> that group, None
  PyObject* find_callers_group =
      nullptr;  ///< () -> that on which the caller of what calls this did a functional collective, None
  PyObject* current_task = nullptr;  ///< () -> the backward that runs in this thread, or -1
  PyObject* wants_gradients = nullptr;
  PyObject* is_on_device = nullptr;    ///< A stream waits for collectives, and not the host.
  PyObject* queue_callback = nullptr;  ///< autograd's: calls back when the backward that runs ends.
};
extern Callbacks callbacks;

/// Takes the exception that is set, if one is: nothing is recorded any more, and `lost` is told.
void SwitchOffIfFailed();
/// What a function of Python's gives; null where it raises. Called without an argument where that is null.
PyObject* CallBack(PyObject* function, PyObject* argument = nullptr);
/// The same of one that gives a number; `failed` where it raises.
long Ask(PyObject* function, PyObject* argument, long failed);

}  // namespace lockstep::hooks
