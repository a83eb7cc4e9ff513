#include "cli/console.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace lockstep::cli {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

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

bool Console::UseColour(ColourMode mode) const {
  if (mode != ColourMode::kAuto) return mode == ColourMode::kAlways;
  if (!Environment("NO_COLOR").empty()) return false;
  const std::string_view force = Environment("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return out_is_terminal && Environment("TERM") != "dumb";
}

int Console::Width() const { return std::min(TerminalWidth(), 120); }

int Console::TerminalWidth() const {
  winsize size{};
  if (!out_is_terminal || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max(static_cast<int>(size.ws_col), 40);
}

bool LocaleIsUtf8() {
  const char* charset = ::nl_langinfo(CODESET);
  return charset != nullptr && std::strcmp(charset, "UTF-8") == 0;
}

}  // namespace lockstep::cli
