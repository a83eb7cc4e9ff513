#include "inside/trace/python/device_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::hooks {
namespace {

constexpr size_t kMostMarks = 2048;  // Of a step.
constexpr size_t kMostStages = 64;   // Within each other.
// A step in which a graph is captured has no times; where none has for so long, the host's are better than none.
constexpr int kMostUntold = 32;
constexpr double kNoNumber = -1;

}  // namespace

bool DeviceClock::Open(PyObject* current_stream, PyObject* device, lockstep_name_t backward, int64_t number) {
  if (is_open_) return true;
  if (was_closed_ || !events_.Open()) return false;
  Py_INCREF(current_stream);
  Py_INCREF(device);
  current_stream_ = current_stream;
  device_ = device;
  thread_ = PyThread_get_thread_ident();
  other_ = lockstep_name("device_stage/other");
  backward_ = backward;
  first_number_ = number;
  const std::optional<CudaStream> stream = CurrentStream();
  if (!stream) return false;
  step_ = {.number = number, .stream = *stream};
  is_open_ = true;
  Put();
  Tell();
  return true;
}

void DeviceClock::Tell() const { lockstep_counter(lockstep_name("device_times"), static_cast<double>(first_number_)); }

void DeviceClock::Close() {
  if (!is_open_) return;
  lockstep_counter(lockstep_name("device_times"), kNoNumber);
  lockstep_counter(lockstep_name("comm_exposed_unknown"), 1);
  is_open_ = false;
  was_closed_ = true;
}

std::optional<CudaStream> DeviceClock::CurrentStream() const {
  PyObject* const stream = PyObject_CallFunctionObjArgs(current_stream_, device_, nullptr);
  const CudaStream address = stream == nullptr ? nullptr : PyLong_AsVoidPtr(stream);
  Py_XDECREF(stream);
  if (PyErr_Occurred() == nullptr) return address;
  PyErr_Clear();
  return std::nullopt;
}

void DeviceClock::Put() {
  if (!step_.is_whole) return;
  const CudaEvent event = step_.marks.size() == kMostMarks ? nullptr : events_.Record(step_.stream);
  step_.is_whole = event != nullptr;
  if (step_.is_whole) step_.marks.push_back({event, Innermost()});
}

void DeviceClock::Begin(uint64_t token, lockstep_name_t name) {
  if (!is_open_ || open_.size() == kMostStages) return;
  const auto is_backward = [this](const Stage& stage) { return stage.name == backward_; };
  if (PyThread_get_thread_ident() != thread_ && std::none_of(open_.begin(), open_.end(), is_backward)) return;
  open_.push_back({token, name});
  Put();
}

void DeviceClock::BeginWait(uint64_t token, lockstep_name_t name) {
  if (is_open_ && CurrentStream() == step_.stream) Begin(token, name);
}

void DeviceClock::End(uint64_t token) {
  if (!is_open_) return;
  const auto stage = std::find_if(open_.begin(), open_.end(), [&](const Stage& each) { return each.token == token; });
  if (stage == open_.end()) return;
  const bool is_innermost = stage + 1 == open_.end();
  open_.erase(stage);
  if (is_innermost) Put();
}

void DeviceClock::EndStep() {
  if (!is_open_) return;
  const std::optional<CudaStream> stream = CurrentStream();
  Step next{.number = step_.number + 1, .stream = stream.value_or(nullptr)};
  if (const CudaEvent event = stream ? events_.Record(*stream) : nullptr) {
    next.marks.push_back({event, Innermost()});
  } else {
    next.is_whole = step_.is_whole = false;
  }
  ended_.push_back(std::exchange(step_, std::move(next)));
  Resolve();
}

void DeviceClock::Resolve() {
  while (is_open_ && !ended_.empty()) {
    const Step& step = ended_.front();
    bool is_told = false;
    if (step.is_whole) {
      const Step& next = ended_.size() > 1 ? ended_[1] : step_;
      const CudaEvent end = next.marks.front().event;
      const CudaEvents::Progress progress = events_.Ask(end);
      if (progress == CudaEvents::Progress::kNotYet) return;
      if (progress == CudaEvents::Progress::kFailed) return Close();
      is_told = Tell(step, end);
    }
    untold_count_ = is_told ? 0 : untold_count_ + 1;
    if (untold_count_ == kMostUntold) return Close();
    for (const Mark& mark : step.marks) events_.GiveBack(mark.event);
    ended_.pop_front();
  }
}

bool DeviceClock::Tell(const Step& step, CudaEvent end) const {
  struct Part {
    lockstep_name_t name;
    int64_t ns;
  };
  std::vector<Part> parts;
  int64_t at_ns = 0;
  for (size_t i = 0; i < step.marks.size(); ++i) {
    const bool is_last = i + 1 == step.marks.size();
    const auto milliseconds =
        events_.MillisecondsBetween(step.marks.front().event, is_last ? end : step.marks[i + 1].event);
    if (!milliseconds) return false;
    // Of two streams the job's work may be at the later event first.
    const int64_t until_ns = std::max<int64_t>(at_ns, std::llround(*milliseconds * 1e6));
    if (until_ns > at_ns) parts.push_back({step.marks[i].name, until_ns - at_ns});
    at_ns = until_ns;
  }
  lockstep_counter(lockstep_name("device_step"), static_cast<double>(step.number));
  for (const Part& part : parts) lockstep_counter(part.name, static_cast<double>(part.ns));
  lockstep_counter(lockstep_name("device_step_end"), static_cast<double>(parts.size()));
  return true;
}

}  // namespace lockstep::hooks
