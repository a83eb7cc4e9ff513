#include "base/http/event_stream.h"

#include <utility>

namespace lockstep::http {

bool EventStream::Push(std::string bytes) {
  const MutexLock lock(mutex_);
  if (is_abandoned_ || is_closed_) return false;
  if (queued_.size() + bytes.size() > kQueuedBytes) {
    is_abandoned_ = true;
    Drop();
    if (wake_) wake_();
    return false;
  }
  const bool was_empty = IsEmpty();
  queued_ += bytes;
  if (was_empty && !IsEmpty() && wake_) wake_();
  return true;
}

bool EventStream::PushLatest(const std::string& kind, std::string bytes) {
  const MutexLock lock(mutex_);
  if (is_abandoned_ || is_closed_) return false;
  const bool was_empty = IsEmpty();
  latest_[kind] = std::move(bytes);
  if (was_empty && wake_) wake_();
  return true;
}

void EventStream::Drop() {
  queued_ = {};
  latest_.clear();
}

void EventStream::Close() {
  const MutexLock lock(mutex_);
  if (std::exchange(is_closed_, true)) return;
  if (wake_) wake_();
}

std::string EventStream::Take(bool* closed) {
  const MutexLock lock(mutex_);
  *closed = is_closed_;
  std::string bytes = std::exchange(queued_, {});
  for (const auto& [kind, text] : latest_) bytes += text;
  latest_.clear();
  return bytes;
}

void EventStream::OnChange(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
  if (wake_ && (!IsEmpty() || is_closed_ || is_abandoned_)) wake_();
}

void EventStream::Abandon() {
  const MutexLock lock(mutex_);
  is_abandoned_ = true;
  Drop();
  wake_ = nullptr;
}

bool EventStream::is_abandoned() {
  const MutexLock lock(mutex_);
  return is_abandoned_;
}

}  // namespace lockstep::http
