#pragma once

#include <streambuf>
#include <vector>

namespace lockstep {

/// Buffered writing to a file descriptor that remembers the first error and then swallows everything: a report whose
/// reader has gone (`| head`) ends quietly, a full disk is reported once at the end. Not thread-safe.
class FdBuffer : public std::streambuf {
 public:
  explicit FdBuffer(int fd);
  ~FdBuffer() override;
  FdBuffer(const FdBuffer&) = delete;
  FdBuffer& operator=(const FdBuffer&) = delete;
  /// errno of the first failed write; 0 = none.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int fd_;
  int error_ = 0;
  std::vector<char> buffer_;
};

}  // namespace lockstep
