#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::report {

/// What a piece of text means; how it looks depends on the terminal. Colour never carries meaning alone.
enum class Paint : uint8_t { kPlain, kStrong, kFaint, kBad, kWarn, kGood, kCompute, kCommunication, kMemory, kIdle };

/// How to draw: colour or not, UTF-8 or ASCII.
struct Style {
  bool colour = false;
  bool unicode = true;

  std::string operator()(Paint paint, std::string_view text) const;
  std::string_view Ellipsis() const { return unicode ? "…" : ".."; }
  std::string_view Dot() const { return unicode ? " · " : " | "; }
  std::string_view Arrow() const { return unicode ? "→" : "->"; }
  std::string_view Pointer() const { return unicode ? "▶" : ">"; }
  std::string_view Bullet() const { return unicode ? "•" : "*"; }
};

}  // namespace lockstep::report
