#include "ingest/torch_trace/text_window.h"

#include <cstring>
#include <new>
#include <utility>

namespace lockstep::ingest {

TextWindow::TextWindow(ByteSource& source, size_t window_bytes) : source_(source) { Allocate(window_bytes); }

void TextWindow::Allocate(size_t capacity) {
  auto* grown = static_cast<char*>(std::malloc(kSlack + capacity + kPadding));
  if (grown == nullptr) throw std::bad_alloc();
  std::memset(grown, ' ', kSlack);
  const auto unread = static_cast<size_t>(end_ - cursor_);
  if (unread > 0) std::memcpy(grown + kSlack, cursor_, unread);
  memory_.reset(grown);
  capacity_ = capacity;
  cursor_ = grown + kSlack;
  end_ = cursor_ + unread;
  std::memset(grown + kSlack + unread, 0, kPadding);
}

bool TextWindow::Refill() {
  if (at_end_) return false;
  const auto unread = static_cast<size_t>(end_ - cursor_);
  char* text = memory_.get() + kSlack;
  if (unread > capacity_ / 2) {
    Allocate(capacity_ * 2);
    text = memory_.get() + kSlack;
  } else if (unread > 0) {
    std::memmove(text, cursor_, unread);
  }
  cursor_ = text;
  const Result<size_t> count = source_.Read({text + unread, capacity_ - unread});
  const size_t added = count ? *count : 0;
  if (!count) stream_error_ = count.error();
  end_ = text + unread + added;
  end_offset_ += added;
  std::memset(text + unread + added, 0, kPadding);
  if (added == 0) at_end_ = true;
  return added > 0;
}

}  // namespace lockstep::ingest
