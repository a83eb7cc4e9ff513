#include "http/event_stream.h"

#include <utility>

namespace lockstep::http {

bool EventStream::Push(std::string bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_abandoned_ || is_closed_) return false;
  if (queued_.size() + bytes.size() > kQueuedBytes) {
    is_abandoned_ = true;
    queued_ = {};
    if (wake_) wake_();
    return false;
  }
  const bool was_empty = queued_.empty();
  queued_ += bytes;
  if (was_empty && !queued_.empty() && wake_) wake_();
  return true;
}

void EventStream::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(is_closed_, true)) return;
  if (wake_) wake_();
}

std::string EventStream::Take(bool* closed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *closed = is_closed_;
  return std::exchange(queued_, {});
}

void EventStream::OnChange(std::function<void()> wake) {
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_ = std::move(wake);
  if (wake_ && (!queued_.empty() || is_closed_ || is_abandoned_)) wake_();
}

void EventStream::Abandon() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_abandoned_ = true;
  queued_ = {};
  wake_ = nullptr;
}

bool EventStream::is_abandoned() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_abandoned_;
}

}  // namespace lockstep::http
