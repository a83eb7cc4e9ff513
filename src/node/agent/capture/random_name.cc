#include "node/agent/capture/random_name.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace lockstep::agent {

std::string RandomName(size_t length) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr uint8_t kFair = 252;  // 7 x 36: bytes from here on would favour the first letters.
  std::string name;
  std::array<uint8_t, 64> bytes;
  while (name.size() < length) {
    const ssize_t count = getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno != EINTR)
      std::abort();  // Only before Linux 3.17: names that can be guessed are not fallback.
    for (ssize_t i = 0; i < count && name.size() < length; ++i) {
      if (bytes[i] < kFair) name.push_back(kLetters[bytes[i] % 36]);
    }
  }
  return name;
}

}  // namespace lockstep::agent
