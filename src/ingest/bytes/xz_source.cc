#include <fmt/format.h>
#include <lzma.h>

#include <algorithm>
#include <memory>

#include "ingest/bytes/decoding_source.h"

namespace lockstep::ingest {
namespace {

// `xz -9` needs 65 MiB; what asks for more was made to.
constexpr uint64_t kMaxMemoryBytes = uint64_t{256} << 20;

class XzSource final : public DecodingSource {
 public:
  XzSource(InputBuffer input, const std::string& name, const ByteLimits& limits)
      : DecodingSource(std::move(input), name, limits) {
    started_ = lzma_stream_decoder(&stream_, kMaxMemoryBytes, LZMA_CONCATENATED) == LZMA_OK;
  }
  ~XzSource() override { lzma_end(&stream_); }

  Compression compression() const override { return Compression::kXz; }

 private:
  Progress DecodeSome(std::span<char> window) override {
    Progress progress;
    if (!started_) {
      progress.error = Damage("there is no memory to decompress xz with; free some and run again", 0);
      return progress;
    }
    stream_.next_out = reinterpret_cast<uint8_t*>(window.data());
    stream_.avail_out = window.size();
    while (stream_.avail_out > 0) {
      if (input_.size() == 0) {
        if (auto status = input_.Refill(); !status) {
          progress.written = window.size() - stream_.avail_out;
          progress.error = std::move(status).error();
          return progress;
        }
      }
      const size_t offered = input_.size();
      stream_.next_in = reinterpret_cast<const uint8_t*>(input_.data());
      stream_.avail_in = offered;
      const lzma_ret code = lzma_code(&stream_, offered == 0 ? LZMA_FINISH : LZMA_RUN);
      input_.Take(offered - stream_.avail_in);
      progress.written = window.size() - stream_.avail_out;
      if (code == LZMA_OK) continue;
      if (code == LZMA_STREAM_END) {
        progress.finished = true;
        return progress;
      }
      progress.error = Damage(Text(code, offered == 0), progress.written);
      return progress;
    }
    return progress;
  }

  std::string Text(lzma_ret code, bool at_end) const {
    const char* const what = code == LZMA_MEMLIMIT_ERROR ? "needs more memory to be decompressed than is allowed"
                             : at_end                    ? "ends before its end mark"
                                                         : "is damaged";
    return fmt::format(
        "the xz data {} near byte {} of the file; the part before it was read: copy or record the file again", what,
        input_.taken_bytes());
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> DecodeXz(InputBuffer input, const std::string& name, const ByteLimits& limits) {
  return std::make_unique<XzSource>(std::move(input), name, limits);
}

}  // namespace lockstep::ingest
