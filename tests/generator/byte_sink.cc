#include "generator/byte_sink.h"

#include <zlib.h>
#include <zstd.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

namespace lockstep::tracegen {
namespace {

class CountingSink final : public ByteSink {
 public:
  void Write(std::string_view) override {}
  void Finish() override {}
};

class PlainSink final : public ByteSink {
 public:
  explicit PlainSink(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
  }
  ~PlainSink() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  void Write(std::string_view bytes) override {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
      throw std::runtime_error("cannot write " + path_);
  }
  void Finish() override {
    const int status = std::fclose(file_);
    file_ = nullptr;
    if (status != 0) throw std::runtime_error("cannot write " + path_);
  }

 private:
  std::string path_;
  std::FILE* file_;
};

class GzipSink final : public ByteSink {
 public:
  GzipSink(const std::string& path, int level) : path_(path) {
    file_ = gzopen(path.c_str(), ("wb" + std::to_string(level)).c_str());
    if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
    gzbuffer(file_, 1 << 18);
  }
  ~GzipSink() override {
    if (file_ != nullptr) gzclose(file_);
  }
  void Write(std::string_view bytes) override {
    if (gzwrite(file_, bytes.data(), static_cast<unsigned>(bytes.size())) <= 0) {
      throw std::runtime_error("cannot write " + path_);
    }
  }
  void Finish() override {
    const int status = gzclose(file_);
    file_ = nullptr;
    if (status != Z_OK) throw std::runtime_error("cannot write " + path_);
  }

 private:
  std::string path_;
  gzFile file_;
};

class ZstdSink final : public ByteSink {
 public:
  ZstdSink(const std::string& path, int level)
      : plain_(path), context_(ZSTD_createCCtx()), out_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  }
  ~ZstdSink() override { ZSTD_freeCCtx(context_); }
  void Write(std::string_view bytes) override { Compress(bytes, ZSTD_e_continue); }
  void Finish() override {
    Compress({}, ZSTD_e_end);
    plain_.Finish();
  }

 private:
  void Compress(std::string_view bytes, ZSTD_EndDirective mode) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    size_t left = 1;
    while (in.pos < in.size || (mode == ZSTD_e_end && left != 0)) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      left = ZSTD_compressStream2(context_, &out, &in, mode);
      if (ZSTD_isError(left) != 0) throw std::runtime_error(ZSTD_getErrorName(left));
      plain_.Write(std::string_view(out_.data(), out.pos));
    }
  }

  PlainSink plain_;
  ZSTD_CCtx* context_;
  std::vector<char> out_;
};

}  // namespace

std::unique_ptr<ByteSink> OpenCountingSink() { return std::make_unique<CountingSink>(); }
std::unique_ptr<ByteSink> OpenPlainSink(const std::string& path) { return std::make_unique<PlainSink>(path); }
std::unique_ptr<ByteSink> OpenGzipSink(const std::string& path, int level) {
  return std::make_unique<GzipSink>(path, level);
}
std::unique_ptr<ByteSink> OpenZstdSink(const std::string& path, int level) {
  return std::make_unique<ZstdSink>(path, level);
}

}  // namespace lockstep::tracegen
