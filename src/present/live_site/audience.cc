#include "present/live_site/audience.h"

#include <fmt/format.h>

#include <utility>

namespace lockstep::live_site {

std::shared_ptr<http::EventStream> Audience::Join() {
  auto stream = std::make_shared<http::EventStream>();
  {
    const MutexLock lock(mutex_);
    for (const auto& [kind, text] : newest_) stream->PushLatest(kind, text);
    if (is_closed_) {
      stream->Close();
      return stream;
    }
    DropGone();
    streams_.push_back(stream);
  }
  if (on_join_) on_join_();
  return stream;
}

void Audience::Say(const std::string& kind, const std::function<std::string()>& look) {
  const MutexLock order(order_);
  std::string text = fmt::format("event: {}\ndata: {}\n\n", kind, look());
  const MutexLock lock(mutex_);
  std::erase_if(streams_, [&](const auto& stream) { return !stream->PushLatest(kind, text); });
  newest_[kind] = std::move(text);
}

size_t Audience::size() {
  const MutexLock lock(mutex_);
  DropGone();
  return streams_.size();
}

void Audience::Close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  for (const auto& stream : streams_) stream->Close();
  streams_.clear();
}

void Audience::DropGone() {
  std::erase_if(streams_, [](const auto& stream) { return stream->is_abandoned(); });
}

}  // namespace lockstep::live_site
