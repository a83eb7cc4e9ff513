#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "inside/trace/python/device_clock.h"
#include "inside/trace/python/mark_watcher.h"
#include "inside/trace/python/process_groups.h"

namespace lockstep::hooks {

/// What a part of a step is, as python/lockstep/_steps.py numbers it.
enum Phase { kInput, kForward, kBackward, kOptimizer, kComm, kCheckpoint, kValidation, kGc, kPhaseCount };
constexpr long kNone = -1;

/// A part of a step that is under way: a span, or, of what the device alone waits for, a number of another kind. 0:
/// none.
using Part = uint64_t;

/// Where the program uses CUDA, and its times can be had.
extern DeviceClock device;

/// True once recording has begun: asked for the first time it begins.
bool IsRecording();
/// 0 too where `phase` is none, and of what no training begins with.
Part Enter(long phase);
/// A wait of the host, or of the device's stream for another one. No recording begins with it.
Part EnterWait(const Issued& issued, bool is_on_device);
void Leave(Part part);
void EndStep();

/// Whether the job's streams wait for collectives, and not the host.
bool IsOnDevice();
/// Of a process group of PyTorch's, for Issued.
size_t NumberOf(PyObject* group);

/// Whether the device's times are taken. Where a step begins, in the thread that trains; again at any time.
/// `current_stream`: a function from a device's number to the job's stream there.
bool UseDevice(PyObject* current_stream, PyObject* number);
/// True since the first UseDevice(), whatever came of it.
bool UsesDevice();
/// The program marks its own steps.
void LeaveSteps();
/// The number of steps after which `stepped` will be called: `count` more.
int64_t ReportStep(int64_t count);

/// For stages that the program marks itself (spans_module.cc).
extern const MarkWatcher kMarks;

}  // namespace lockstep::hooks
