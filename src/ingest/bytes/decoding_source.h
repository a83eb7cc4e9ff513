#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/input_buffer.h"
#include "ingest/bytes/output_limit.h"

namespace lockstep::ingest {

/// The base of all decoders: it fills the caller's window directly, holds an error back until the bytes before it have
/// been handed out, and checks the output limits. A decoder implements only DecodeSome.
class DecodingSource : public ByteSource {
 public:
  Result<size_t> Read(std::span<char> window) final;
  uint64_t consumed_bytes() const final { return input_.taken_bytes(); }
  uint64_t total_bytes() const final { return input_.raw().total_bytes(); }

 protected:
  DecodingSource(InputBuffer input, std::string name, const ByteLimits& limits)
      : input_(std::move(input)), name_(std::move(name)), limit_(limits, name_) {}

  struct Progress {
    size_t written = 0;
    bool finished = false;            ///< The data ended, as it should.
    std::optional<Error> error = {};  ///< What stopped it after `written` bytes.
  };
  /// Writes some bytes to `window` (not empty), at least one unless it finishes or fails.
  virtual Progress DecodeSome(std::span<char> window) = 0;

  /// kCorruptData at the present place. `message` names the damage and what to do.
  Error Damage(std::string message, uint64_t written_now) const;

  InputBuffer input_;

 private:
  std::string name_;
  OutputLimit limit_;
  uint64_t produced_ = 0;
  bool finished_ = false;
  std::optional<Error> error_;
};

/// Gzip, any number of members one after another; checksums are checked.
std::unique_ptr<ByteSource> DecodeGzip(InputBuffer input, const std::string& name, const ByteLimits& limits);

/// Whether `bytes` begin a zstd frame, or a skippable one (pzstd's files begin with such).
bool StartsZstdFrame(std::string_view bytes);

/// Zstandard, any number of frames, skippable ones too. Windows above 128 MiB are refused.
std::unique_ptr<ByteSource> DecodeZstd(InputBuffer input, const std::string& name, const ByteLimits& limits);

/// The xz format, any number of streams; checksums are checked. More than 256 MiB of dictionary are refused.
std::unique_ptr<ByteSource> DecodeXz(InputBuffer input, const std::string& name, const ByteLimits& limits);

}  // namespace lockstep::ingest
