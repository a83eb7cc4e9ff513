#include "ingest/perfetto/packet_stream.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/ascii.h"
#include "ingest/perfetto/wire_format.h"

namespace lockstep::ingest::perfetto {
namespace {

constexpr char kPacketTag = 0x0A;  // Field 1, length-delimited.

}  // namespace

bool StartsPerfettoTrace(std::string_view bytes) {
  if (bytes.empty() || bytes.front() != kPacketTag) return false;
  const auto first = std::find_if_not(bytes.begin(), bytes.end(), IsSpace);
  if (first == bytes.end() || (*first != '{' && *first != '[')) return true;
  const auto second = std::find_if_not(first + 1, bytes.end(), IsSpace);
  if (second == bytes.end()) return false;
  return *second != '"' && *second != '{' && *second != '}' && *second != ']';
}

PacketStream::PacketStream(ByteSource& source, size_t window_bytes, size_t max_packet_bytes, Damage* damage)
    : source_(source),
      max_packet_bytes_(max_packet_bytes),
      damage_(damage),
      window_(std::max<size_t>(window_bytes, 64), '\0') {}

bool PacketStream::Refill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
    base_offset_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == window_.size()) window_.resize(window_.size() * 2);
  const auto got = source_.Read(std::span(window_.data() + end_, window_.size() - end_));
  if (!got) {
    stream_error_ = got.error();
    at_end_ = true;
    return false;
  }
  if (*got == 0) at_end_ = true;
  end_ += *got;
  return *got > 0;
}

bool PacketStream::Skip(uint64_t count) {
  while (count > unread().size()) {
    count -= unread().size();
    begin_ = end_;
    if (!Refill()) return false;
  }
  begin_ += count;
  return true;
}

std::optional<std::string_view> PacketStream::Next() {
  while (true) {
    if (unread().empty() && !Refill()) return std::nullopt;
    uint64_t tag = 0;
    uint64_t size = 0;
    size_t head = ReadVarint(unread(), &tag);
    const size_t tag_size = head;
    if (head > 0 && (tag & 7) == 2) {
      const size_t length = ReadVarint(unread().substr(head), &size);
      head = length == 0 ? 0 : head + length;
    }
    if (head == 0) {
      // The bytes end inside the head, or it is none.
      if (unread().size() < 20 && Refill()) continue;
      if (unread().size() < 20 && at_end_) {
        if (!stream_error_) damage_->Add(DamageKind::kTruncatedFile, offset());
        begin_ = end_;
        return std::nullopt;
      }
      damage_->Add(DamageKind::kBadPacket, offset());
      Resynchronise();
      continue;
    }
    if (tag_size != 1 || (tag & 7) != 2 || tag >> 3 == 0) {
      damage_->Add(DamageKind::kBadPacket, offset());
      Resynchronise();
      continue;
    }
    if (size > max_packet_bytes_) {
      // A damaged length looks like this as well: what follows may be packets.
      damage_->Add(DamageKind::kOversizedEvent, offset());
      Resynchronise();
      continue;
    }
    if (unread().size() - head < size) {
      if (Refill()) continue;
      if (!stream_error_) damage_->Add(DamageKind::kTruncatedFile, offset());
      begin_ = end_;
      return std::nullopt;
    }
    packet_offset_ = offset();
    const std::string_view packet = unread().substr(head, size);
    begin_ += head + size;
    if (tag >> 3 == 1) return packet;
    // Other fields of the outer message: none is defined, later versions may have some.
  }
}

/// Goes to the next place behind the present byte where a packet stands that is followed by another, or by the end.
void PacketStream::Resynchronise() {
  constexpr size_t kLookAhead = size_t{1} << 16;
  ++begin_;
  while (true) {
    while (unread().size() < kLookAhead && Refill()) {
    }
    const std::string_view bytes = unread();
    if (bytes.empty()) return;
    // A packet that begins before the limit lies in the window whole, and the byte behind it too.
    const size_t limit = at_end_ ? bytes.size() : bytes.size() - kLookAhead / 2 - 16;
    for (size_t at = bytes.find(kPacketTag); at != std::string_view::npos && at < limit;
         at = bytes.find(kPacketTag, at + 1)) {
      uint64_t size = 0;
      const size_t length = ReadVarint(bytes.substr(at + 1), &size);
      if (length == 0 || size < 2 || size >= kLookAhead / 2) continue;
      const size_t behind = at + 1 + length + size;
      if (behind > bytes.size() || (behind < bytes.size() && bytes[behind] != kPacketTag)) continue;
      FieldWalker fields(bytes.substr(at + 1 + length, size));
      while (fields.Next()) {
      }
      if (fields.broken()) continue;
      begin_ += at;
      return;
    }
    begin_ += limit;
    if (at_end_ && unread().empty()) return;
    if (limit == 0) return;
  }
}

}  // namespace lockstep::ingest::perfetto
