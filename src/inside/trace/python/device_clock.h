#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <lockstep/trace.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "inside/trace/python/cuda_events.h"

namespace lockstep::hooks {

/// What the counters of a device's times begin with; behind it is what a span would be called.
inline constexpr const char* kDeviceStage = "device_stage/";

/// How long the stages of steps last on the device: where a stage begins or ends, an event is put into the stream that
/// was the job's current one when the step began. What a step's events say is recorded once the device has come to its
/// end, in a later step (docs/formats/span-trace.md#device-times). Everything with the interpreter's lock held.
class DeviceClock {
 public:
  /// In the thread that trains, when step `number` begins. `current_stream`: a function of PyTorch's from a device's
  /// number to a stream's address. `backward`: what that stage is called. False: there is no such clock here, or it was
  /// closed.
  bool Open(PyObject* current_stream, PyObject* device, lockstep_name_t backward, int64_t number);
  bool is_open() const { return is_open_; }
  /// Says again that it is, for readers that came later.
  void Tell() const;
  /// The host's times count from now on, for good, and these do not show waits for collectives.
  void Close();
  /// In a forked child, which has no device.
  void Forget() { is_open_ = false; }

  /// `token`: not 0, and no other's that is open. `name`: of the counter. What is begun in another thread than the one
  /// that trains counts within a backward alone, for which autograd has threads of its own.
  void Begin(uint64_t token, lockstep_name_t name);
  /// Of something that the current stream alone waits for: where that is another one, it is none of the step's.
  void BeginWait(uint64_t token, lockstep_name_t name);
  /// Where another has begun since, that one goes on.
  void End(uint64_t token);
  void EndStep();
  /// Records the times of steps that the device has done.
  void Resolve();

 private:
  struct Mark {
    CudaEvent event = nullptr;
    lockstep_name_t name = 0;  ///< What begins there.
  };
  struct Step {
    int64_t number = 0;
    bool is_whole = true;
    CudaStream stream = nullptr;
    std::vector<Mark> marks = {};  ///< The first one where it begins.
  };
  struct Stage {
    uint64_t token = 0;
    lockstep_name_t name = 0;
  };

  /// Nullopt: PyTorch does not say.
  std::optional<CudaStream> CurrentStream() const;
  /// From here on the innermost stage that is open lasts.
  void Put();
  lockstep_name_t Innermost() const { return open_.empty() ? other_ : open_.back().name; }
  /// False: the times of its events are not known.
  bool Tell(const Step& step, CudaEvent end) const;

  bool is_open_ = false;
  bool was_closed_ = false;
  CudaEvents events_;
  PyObject* current_stream_ = nullptr;
  PyObject* device_ = nullptr;
  unsigned long thread_ = 0;
  lockstep_name_t other_ = 0;
  lockstep_name_t backward_ = 0;
  int64_t first_number_ = 0;
  int untold_count_ = 0;     ///< Steps in a row whose times are not known.
  Step step_;                ///< Under way.
  std::deque<Step> ended_;   ///< On the host; each ends where the next one, or `step_`, begins.
  std::vector<Stage> open_;  ///< The innermost last.
};

}  // namespace lockstep::hooks
