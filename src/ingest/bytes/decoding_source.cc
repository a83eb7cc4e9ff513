#include "ingest/bytes/decoding_source.h"

#include <algorithm>

namespace lockstep::ingest {
namespace {

// The limits are looked at this often, so that a bomb is noticed soon even when the caller's window is enormous.
constexpr size_t kMostBytesAtOnce = size_t{64} << 20;

}  // namespace

Result<size_t> DecodingSource::Read(std::span<char> window) {
  size_t filled = 0;
  while (filled < window.size() && !finished_ && !error_) {
    const uint64_t most = std::min<uint64_t>({window.size() - filled, limit_.Headroom(produced_), kMostBytesAtOnce});
    Progress progress = DecodeSome(window.subspan(filled, static_cast<size_t>(most)));
    filled += progress.written;
    produced_ += progress.written;
    finished_ = progress.finished;
    error_ = std::move(progress.error);
    if (!error_) error_ = limit_.Check(produced_, input_.taken_bytes());
  }
  if (filled == 0 && error_) return *error_;
  return filled;
}

Error DecodingSource::Damage(std::string message, uint64_t written_now) const {
  return {.code = ErrorCode::kCorruptData,
          .message = std::move(message),
          .file = name_,
          .byte_offset = produced_ + written_now};
}

bool StartsZstdFrame(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return true;
  return bytes.size() >= 4 && (bytes[0] & '\xf0') == '\x50' && bytes.substr(1, 3) == "\x2a\x4d\x18"sv;
}

bool LooksLikeData(std::string_view rest) {
  const size_t first = rest.find_first_not_of(std::string_view("\0 \r\n\t", 5));
  if (first == std::string_view::npos) return false;
  rest = rest.substr(first, 16);
  if (rest.starts_with("\x1f\x8b") || StartsZstdFrame(rest)) return true;
  return rest.size() >= 8 && std::all_of(rest.begin(), rest.end(), [](char c) { return c >= 0x20 || c == '\n'; });
}

}  // namespace lockstep::ingest
