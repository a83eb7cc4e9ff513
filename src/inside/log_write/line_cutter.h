#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::logs {

/// Cuts what a program writes into lines, as they would stand on a terminal: what a carriage return went back over is
/// gone. Lines above 64 KiB are cut into several. A line that does not end (a prompt, a progress bar) is taken as it
/// stands once nothing has come for a second, or it has stood for ten. Not thread-safe.
class LineCutter {
 public:
  using Take = std::function<void(std::string_view line)>;

  void Add(std::string_view bytes, int64_t monotonic_ns, const Take& take);
  /// What stands unfinished for long enough by now.
  void Tick(int64_t monotonic_ns, const Take& take);
  /// What stands unfinished at all.
  void Flush(const Take& take);

 private:
  void TakeWhole(std::string_view line, const Take& take);

  std::string unfinished_;
  bool is_begun_ = false;  ///< Its beginning was taken already.
  int64_t first_ns_ = 0;   ///< Its first byte ...
  int64_t last_ns_ = 0;    ///< ... and its last.
};

}  // namespace lockstep::logs
