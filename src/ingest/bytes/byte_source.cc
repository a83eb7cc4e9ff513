#include "ingest/bytes/byte_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "ingest/bytes/decoding_source.h"
#include "ingest/bytes/file_source.h"

namespace lockstep::ingest {
namespace {

// Enough of a file's first bytes to tell every compression apart.
constexpr size_t kMagicBytes = 6;

// A raw source whose first bytes were already taken.
class PrefixedSource final : public ByteSource {
 public:
  PrefixedSource(std::string_view prefix, std::unique_ptr<ByteSource> raw) : prefix_(prefix), raw_(std::move(raw)) {}

  Result<size_t> Read(std::span<char> window) override {
    const size_t count = std::min(window.size(), prefix_.size());
    if (count > 0) std::memcpy(window.data(), prefix_.data(), count);
    prefix_.erase(0, count);
    if (count == window.size()) return count;
    auto got = raw_->Read(window.subspan(count));
    if (got) return count + *got;
    if (count > 0) return count;  // The raw source fails again on the next call.
    return std::move(got).error();
  }

  uint64_t consumed_bytes() const override { return raw_->consumed_bytes() - prefix_.size(); }
  uint64_t total_bytes() const override { return raw_->total_bytes(); }
  Compression compression() const override { return raw_->compression(); }

 private:
  std::string prefix_;
  std::unique_ptr<ByteSource> raw_;
};

Compression CompressionOf(std::string_view first) {
  using namespace std::string_view_literals;
  if (first.starts_with("\x1f\x8b"sv)) return Compression::kGzip;
  if (StartsZstdFrame(first)) return Compression::kZstd;
  if (first.starts_with("\xfd\x37\x7a\x58\x5a\x00"sv)) return Compression::kXz;
  return Compression::kNone;
}

// A compression or container that is known and not read here, with what to do; or nothing.
const char* UnsupportedAdvice(std::string_view first) {
  using namespace std::string_view_literals;
  if (first.starts_with("BZh"sv)) return "is compressed with bzip2; decompress it first: bzip2 -d";
  if (first.starts_with("\x04\x22\x4d\x18"sv)) return "is compressed with lz4; decompress it first: lz4 -d";
  if (first.starts_with("PK\x03\x04"sv)) return "is a zip archive; name it .zip to have its members read";
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> Decode(std::unique_ptr<ByteSource> raw, const std::string& name,
                                           const ByteLimits& limits) {
  std::array<char, kMagicBytes> buffer = {};
  ASSIGN_OR_RETURN(const size_t count, raw->Read(buffer));
  const std::string_view first(buffer.data(), count);
  switch (CompressionOf(first)) {
    case Compression::kGzip: return DecodeGzip(InputBuffer(std::move(raw), first), name, limits);
    case Compression::kZstd: return DecodeZstd(InputBuffer(std::move(raw), first), name, limits);
    case Compression::kXz: return DecodeXz(InputBuffer(std::move(raw), first), name, limits);
    case Compression::kNone: break;
  }
  if (const char* advice = UnsupportedAdvice(first)) {
    return Error{.code = ErrorCode::kUnsupported, .message = advice, .file = name};
  }
  return std::make_unique<PrefixedSource>(first, std::move(raw));
}

Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path, const ByteLimits& limits) {
  ASSIGN_OR_RETURN(auto raw, OpenRawFile(path));
  return Decode(std::move(raw), path, limits);
}

Result<std::unique_ptr<ByteSource>> OpenMemory(std::string bytes, const ByteLimits& limits) {
  return Decode(RawMemory(std::move(bytes)), "", limits);
}

}  // namespace lockstep::ingest
