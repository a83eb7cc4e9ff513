#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::tracegen {

/// Where text goes. Throws std::runtime_error when the file cannot be written.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Write(std::string_view bytes) = 0;
  virtual void Finish() = 0;
};

std::unique_ptr<ByteSink> OpenCountingSink();
std::unique_ptr<ByteSink> OpenPlainSink(const std::string& path);
std::unique_ptr<ByteSink> OpenGzipSink(const std::string& path, int level);
std::unique_ptr<ByteSink> OpenZstdSink(const std::string& path, int level);

}  // namespace lockstep::tracegen
