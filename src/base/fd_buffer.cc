#include "base/fd_buffer.h"

#include <unistd.h>

#include <cerrno>

namespace lockstep {

FdBuffer::FdBuffer(int fd) : fd_(fd), buffer_(size_t{1} << 16) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FdBuffer::~FdBuffer() { FdBuffer::sync(); }

FdBuffer::int_type FdBuffer::overflow(int_type c) {
  sync();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int FdBuffer::sync() {
  const char* at = pbase();
  while (at < pptr() && error_ == 0) {
    const ssize_t written = ::write(fd_, at, static_cast<size_t>(pptr() - at));
    if (written >= 0) {
      at += written;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return 0;
}

}  // namespace lockstep
