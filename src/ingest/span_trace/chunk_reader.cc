#include "ingest/span_trace/chunk_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace lockstep::ingest::span_trace {
namespace {

std::string TextOf(const char* field, size_t bytes) { return ValidUtf8({field, strnlen(field, bytes)}); }

/// Gives the file out piece by piece, and says where it stands.
class Pages {
 public:
  explicit Pages(ByteSource& source) : source_(source) {}

  /// `count` bytes from here on, or fewer at the end of what can be read. Valid until the next call.
  Result<std::string_view> Peek(size_t count) {
    while (buffer_.size() - begin_ < count && !ended_) {
      buffer_.erase(0, begin_);
      begin_ = 0;
      const size_t held = buffer_.size();
      buffer_.resize(std::max(count, held + (size_t{256} << 10)));
      auto got = source_.Read({buffer_.data() + held, buffer_.size() - held});
      buffer_.resize(held + (got ? *got : 0));
      if (!got) return std::move(got).error();
      ended_ = *got == 0;
    }
    return std::string_view(buffer_).substr(begin_, count);
  }
  /// Goes on by `count` bytes, or to the end.
  void Skip(size_t count) {
    const auto there = Peek(count);
    const size_t skipped = there ? there->size() : 0;
    begin_ += skipped;
    position_ += skipped;
  }
  uint64_t position() const { return position_; }

 private:
  ByteSource& source_;
  std::string buffer_;
  size_t begin_ = 0;
  uint64_t position_ = 0;
  bool ended_ = false;
};

void ReadNames(std::string_view bytes, RawFile* file) {
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t head = 0;
    std::memcpy(&head, bytes.data(), sizeof(head));
    bytes.remove_prefix(sizeof(head));
    const auto number = static_cast<uint32_t>(head);
    const uint64_t length = head >> 32;
    if (number == 0 || length > bytes.size()) return;
    file->names.try_emplace(number, ValidUtf8(bytes.substr(0, length)));
    bytes.remove_prefix(std::min<uint64_t>((length + 7) & ~uint64_t{7}, bytes.size()));
  }
}

void ReadRecords(const ChunkHeader& header, std::string_view bytes, RawFile* file) {
  RecordChunk chunk;
  chunk.thread_id = header.thread_id;
  chunk.thread_number = header.thread_number;
  chunk.is_copy = header.is_copy == 1;
  chunk.thread_name = TextOf(header.thread_name, sizeof(header.thread_name));
  chunk.slots.resize(bytes.size() / sizeof(Slot));
  std::memcpy(chunk.slots.data(), bytes.data(), chunk.slots.size() * sizeof(Slot));
  size_t used = 0;
  while (used < chunk.slots.size()) {
    const Slot& slot = chunk.slots[used];
    const uint32_t count = kSlotCounts[slot.kind()];
    if (count == 0 || used + count > chunk.slots.size()) break;
    if (slot.kind() == kAnchor) {
      file->anchors.push_back({slot.tick, static_cast<int64_t>(chunk.slots[used + 1].tick),
                               static_cast<int64_t>(chunk.slots[used + 1].word), slot.payload()});
    }
    used += count;
  }
  chunk.slots.resize(used);
  chunk.slots.shrink_to_fit();
  // Two of one number: the process was killed, or read, between the copy of a chunk and the next use of its place.
  const auto [place, is_new] = file->chunks.try_emplace(header.chunk_number);
  if (is_new || place->second.slots.size() < used) place->second = std::move(chunk);
}

}  // namespace

Result<RawFile> ReadChunks(ByteSource& source, const std::string& display_name, const TraceReaderOptions& options) {
  RawFile file;
  Pages pages(source);
  ASSIGN_OR_RETURN(const std::string_view first, pages.Peek(kHeaderBytes));
  const auto refuse = [&](ErrorCode code, std::string message) {
    return Error{.code = code, .message = std::move(message), .file = display_name};
  };
  if (first.size() < sizeof(Header) || std::memcmp(first.data(), kMagic.data(), kMagic.size()) != 0) {
    return refuse(ErrorCode::kCorruptData, "is not a span trace, or was cut inside its header");
  }
  std::memcpy(&file.header, first.data(), sizeof(Header));
  if (file.header.version != kVersion) {
    return refuse(ErrorCode::kUnsupported,
                  fmt::format("is a span trace of version {}, and this lockstep reads version {}; use the lockstep "
                              "that liblockstep came with",
                              file.header.version, kVersion));
  }
  file.anchors.push_back(file.header.begin);
  if (file.header.end.tick != 0) file.anchors.push_back(file.header.end);
  pages.Skip(kHeaderBytes);
  while (true) {
    if (options.cancelled && options.cancelled()) {
      return refuse(ErrorCode::kCancelled, "reading was cancelled");
    }
    auto head = pages.Peek(sizeof(ChunkHeader));
    if (!head || head->size() < sizeof(ChunkHeader)) {
      file.is_cut = !head || std::any_of(head->begin(), head->end(), [](char c) { return c != 0; });
      break;
    }
    ChunkHeader header;
    std::memcpy(&header, head->data(), sizeof(header));
    const bool is_head = header.size_bytes >= sizeof(ChunkHeader) && header.size_bytes <= kMostChunkBytes &&
                         header.size_bytes % sizeof(Slot) == 0 &&
                         (header.kind == kRecordChunk || header.kind == kNameChunk);
    const bool is_chunk = is_head && header.magic == kChunkMagic;
    if (is_head && header.magic == 0) {  // Was being written when the process was killed, or is.
      auto whole = pages.Peek(header.size_bytes);
      if (whole && whole->size() == header.size_bytes) {
        pages.Skip(header.size_bytes);
        continue;
      }
    }
    if (!is_chunk) {
      if (header.magic != 0) {
        if (file.damaged_pages++ == 0) file.first_damage = pages.position();
      }
      pages.Skip(kPageBytes - pages.position() % kPageBytes);
      // Beyond the end there is nothing to skip to.
      auto more = pages.Peek(1);
      if (!more || more->empty()) break;
      continue;
    }
    auto whole = pages.Peek(header.size_bytes);
    if (!whole) {
      file.is_cut = true;
      break;
    }
    file.is_cut = whole->size() < header.size_bytes;
    const std::string_view body = whole->substr(sizeof(ChunkHeader));
    file.anchors.push_back(header.anchor);
    if (header.kind == kNameChunk) {
      file.name_chunk_numbers.push_back(header.chunk_number);
      ReadNames(body, &file);
    } else {
      ReadRecords(header, body, &file);
    }
    if (options.on_events) options.on_events(body.size() / sizeof(Slot));
    if (file.is_cut) break;
    pages.Skip(header.size_bytes);
  }
  file.bytes = pages.position();
  return file;
}

}  // namespace lockstep::ingest::span_trace
