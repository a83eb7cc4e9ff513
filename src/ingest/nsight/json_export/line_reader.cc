#include "ingest/nsight/json_export/line_reader.h"

#include <cstring>

namespace lockstep::ingest::nsight {
namespace {

constexpr size_t kMaxLineBytes = size_t{256} << 20;

}  // namespace

Status LineReader::Fill() {
  at_ = end_ = 0;
  auto got = source_.Read(window_);
  if (got) {
    end_ = *got;
    byte_count_ += *got;
    is_at_end_ = *got == 0;
    return {};
  }
  if (got.error().code != ErrorCode::kCorruptData || byte_count_ == 0) return std::move(got).error();
  cut_ = std::move(got).error();
  is_at_end_ = true;
  return {};
}

Result<bool> LineReader::Next() {
  size_ = 0;
  line_.clear();
  bool is_too_long = false;
  while (true) {
    if (at_ == end_ && !is_at_end_) RETURN_IF_ERROR(Fill());
    const size_t left = end_ - at_;
    const char* const begin = window_.data() + at_;
    const auto* const stop = left == 0 ? nullptr : static_cast<const char*>(std::memchr(begin, '\n', left));
    const size_t taken = stop == nullptr ? left : static_cast<size_t>(stop - begin);
    is_too_long = is_too_long || line_.size() + taken > kMaxLineBytes;
    if (is_too_long) {
      line_.clear();
    } else {
      line_.append(begin, taken);
    }
    at_ += taken + (stop == nullptr ? 0 : 1);
    if (stop == nullptr && !is_at_end_) continue;
    if (is_too_long) ++too_long_count_;
    is_too_long = false;
    while (!line_.empty() && (line_.back() == '\r' || line_.back() == ' ')) line_.pop_back();
    if (line_.empty()) {
      if (stop == nullptr) return false;
      continue;
    }
    size_ = line_.size();
    line_.resize(size_ + kPadding);
    return true;
  }
}

}  // namespace lockstep::ingest::nsight
