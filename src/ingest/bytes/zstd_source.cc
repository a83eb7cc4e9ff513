#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <memory>

#include "ingest/bytes/decoding_source.h"

namespace lockstep::ingest {
namespace {

// The most history a file may ask for: zstd's own default for untrusted input.
constexpr int kMaxWindowLog = 27;

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdSource final : public DecodingSource {
 public:
  ZstdSource(InputBuffer input, const std::string& name, const ByteLimits& limits)
      : DecodingSource(std::move(input), name, limits), stream_(ZSTD_createDStream()) {
    if (stream_) ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  Compression compression() const override { return Compression::kZstd; }

 private:
  Progress DecodeSome(std::span<char> window) override {
    Progress progress;
    if (!stream_) {
      progress.error = Damage("not enough memory to decompress zstd; close other programs", 0);
      return progress;
    }
    while (progress.written < window.size()) {
      if (input_.size() == 0) {
        if (auto status = input_.Refill(); !status) {
          progress.error = std::move(status).error();
          return progress;
        }
      }
      if (frame_ended_ && !StartNextFrame(progress)) return progress;
      ZSTD_inBuffer in = {input_.data(), input_.size(), 0};
      ZSTD_outBuffer out = {window.data() + progress.written, window.size() - progress.written, 0};
      const size_t code = ZSTD_decompressStream(stream_.get(), &out, &in);
      input_.Take(in.pos);
      progress.written += out.pos;
      if (ZSTD_isError(code)) {
        Fail(ZSTD_getErrorCode(code), progress);
        return progress;
      }
      if (in.pos == 0 && out.pos == 0 && input_.exhausted()) {
        progress.error = Damage(fmt::format("the zstd file ends after {} bytes, inside a frame: it was cut while being "
                                            "written or copied; copy or record it again",
                                            input_.taken_bytes()),
                                progress.written);
        return progress;
      }
      frame_ended_ = code == 0;
    }
    return progress;
  }

  // After a frame: whether another one follows. Otherwise `progress` says that the data is finished or what follows.
  bool StartNextFrame(Progress& progress) {
    if (input_.size() < 64) {
      if (auto status = input_.Refill(); !status) {
        progress.error = std::move(status).error();
        return false;
      }
    }
    const std::string_view rest(input_.data(), input_.size());
    if (StartsZstdFrame(rest)) return true;
    progress.finished = true;
    if (LooksLikeData(rest)) {
      progress.error = Damage(fmt::format("other bytes follow the end of the zstd data at byte {} of the file, and "
                                          "were not read: were two files joined?",
                                          input_.taken_bytes()),
                              progress.written);
    }
    return false;
  }

  void Fail(ZSTD_ErrorCode code, Progress& progress) {
    if (code == ZSTD_error_frameParameter_windowTooLarge) {
      progress.error = Damage("was compressed with a window above 128 MiB; compress it again without --long=28 or more",
                              progress.written);
      progress.error->code = ErrorCode::kLimitExceeded;
      return;
    }
    progress.error = Damage(fmt::format("the zstd data is damaged near byte {} of the file ({}); the part before it "
                                        "was read: copy or record the file again",
                                        input_.taken_bytes(), ZSTD_getErrorString(code)),
                            progress.written);
  }

  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  bool frame_ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> DecodeZstd(InputBuffer input, const std::string& name, const ByteLimits& limits) {
  return std::make_unique<ZstdSource>(std::move(input), name, limits);
}

}  // namespace lockstep::ingest
