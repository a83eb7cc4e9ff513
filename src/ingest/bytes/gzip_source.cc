#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>

#include "ingest/bytes/decoding_source.h"

namespace lockstep::ingest {
namespace {

const char* DamageName(int code) {
  switch (code) {
    case ISAL_INCORRECT_CHECKSUM: return "its checksum does not match";
    case ISAL_INVALID_WRAPPER: return "a gzip header is damaged";
    case ISAL_UNSUPPORTED_METHOD: return "a gzip header names an unknown method";
    default: return "the compressed data is damaged";
  }
}

class GzipSource final : public DecodingSource {
 public:
  GzipSource(InputBuffer input, const std::string& name, const ByteLimits& limits)
      : DecodingSource(std::move(input), name, limits), state_(std::make_unique<inflate_state>()) {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }

  Compression compression() const override { return Compression::kGzip; }

 private:
  Progress DecodeSome(std::span<char> window) override {
    Progress progress;
    while (progress.written < window.size()) {
      if (state_->block_state == ISAL_BLOCK_FINISH) {
        if (!StartNextMember(progress)) return progress;
      }
      if (input_.size() == 0) {
        if (auto status = input_.Refill(); !status) {
          progress.error = std::move(status).error();
          return progress;
        }
      }
      const size_t offered = input_.size();
      state_->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(input_.data()));
      state_->avail_in = static_cast<uint32_t>(offered);
      state_->next_out = reinterpret_cast<uint8_t*>(window.data() + progress.written);
      state_->avail_out = static_cast<uint32_t>(window.size() - progress.written);
      const int code = isal_inflate(state_.get());
      const size_t taken = offered - state_->avail_in;
      input_.Take(taken);
      const size_t written = WrittenTo(window.subspan(progress.written));
      progress.written += written;
      if (code < 0 || code > ISAL_OUT_OVERFLOW) {
        progress.error = Damage(
            fmt::format("{} near byte {} of the gzip file; the part before it was read: copy or record the file again",
                        DamageName(code), input_.taken_bytes()),
            progress.written);
        return progress;
      }
      if (taken == 0 && written == 0 && state_->block_state != ISAL_BLOCK_FINISH) {
        // No input is left and the decoder has nothing more to give: the member has no end.
        progress.error = Damage(fmt::format("the gzip file ends after {} bytes, before its end mark: it was cut while "
                                            "being written or copied; copy or record it again",
                                            input_.taken_bytes()),
                                progress.written);
        return progress;
      }
    }
    return progress;
  }

  // On some errors the library leaves next_out in its own buffer: then nothing was written here.
  size_t WrittenTo(std::span<char> rest) const {
    const auto begin = reinterpret_cast<uintptr_t>(rest.data());
    const auto now = reinterpret_cast<uintptr_t>(state_->next_out);
    return now >= begin && now - begin <= rest.size() ? now - begin : 0;
  }

  // After a member: whether another one follows. Otherwise `progress` says that the data is finished or what follows.
  bool StartNextMember(Progress& progress) {
    if (input_.size() < 64) {
      if (auto status = input_.Refill(); !status) {
        progress.error = std::move(status).error();
        return false;
      }
    }
    const std::string_view rest(input_.data(), input_.size());
    if (rest.starts_with("\x1f\x8b")) {
      isal_inflate_reset(state_.get());
      state_->crc_flag = ISAL_GZIP;
      return true;
    }
    progress.finished = true;
    if (LooksLikeData(rest)) {
      progress.error = Damage(fmt::format("other bytes follow the end of the gzip data at byte {} of the file, and "
                                          "were not read: were two files joined?",
                                          input_.taken_bytes()),
                              progress.written);
    }
    return false;
  }

  std::unique_ptr<inflate_state> state_;
};

}  // namespace

std::unique_ptr<ByteSource> DecodeGzip(InputBuffer input, const std::string& name, const ByteLimits& limits) {
  return std::make_unique<GzipSource>(std::move(input), name, limits);
}

}  // namespace lockstep::ingest
