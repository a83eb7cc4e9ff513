#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/damage.h"

namespace lockstep::ingest::perfetto {

/// Whether a file's first bytes (64 are enough) begin a Perfetto trace rather than JSON. JSON may begin with a line
/// break, which is the tag of a packet as well.
bool StartsPerfettoTrace(std::string_view bytes);

/// Cuts a Perfetto trace, field 1 of one endless message, into packets. Memory: one window, which grows to the largest
/// packet. Damage: bytes that are not packet are skipped up to the next place where two packets follow each other.
class PacketStream {
 public:
  PacketStream(ByteSource& source, size_t window_bytes, size_t max_packet_bytes, Damage* damage);

  /// The next packet; valid until the next call. Nothing at the end of the data.
  std::optional<std::string_view> Next();
  uint64_t packet_offset() const { return packet_offset_; }  ///< Where the last packet began, in decompressed bytes.
  uint64_t read_bytes() const { return base_offset_ + end_; }
  const std::optional<Error>& stream_error() const { return stream_error_; }

 private:
  std::string_view unread() const { return std::string_view(window_).substr(begin_, end_ - begin_); }
  uint64_t offset() const { return base_offset_ + begin_; }
  /// Reads on; false when nothing more comes.
  bool Refill();
  /// Drops bytes, even ones that are not in the window yet.
  bool Skip(uint64_t count);
  void Resynchronise();

  ByteSource& source_;
  const size_t max_packet_bytes_;
  Damage* damage_;
  std::string window_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t base_offset_ = 0;  ///< Of the window's first byte.
  uint64_t packet_offset_ = 0;
  bool at_end_ = false;
  std::optional<Error> stream_error_;
};

}  // namespace lockstep::ingest::perfetto
