#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::bench {

/// simdjson's on-demand parser over a whole document that is in memory, its buffers warm: every field's key is
/// unescaped, every value is read by its type, arrays and objects are entered. What a reader built on plain simdjson
/// cannot be below.
class SimdjsonVisit {
 public:
  /// Copies `json` into simdjson's padded form and sizes the parser, so that Run measures parsing alone.
  explicit SimdjsonVisit(std::string_view json);
  ~SimdjsonVisit();
  /// Returns the number of values, so that nothing is optimised away. Errors: throws simdjson_error.
  uint64_t Run();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// The same from a file, as a program would do it once: load it whole, size the parser, visit every field.
uint64_t VisitFile(const std::string& path);

/// ISA-L's inflate of a whole gzip file in memory into one window that stays in cache. Returns the bytes made.
/// Errors: throws std::runtime_error for a damaged file.
uint64_t InflateAll(const std::string& gzip_bytes);

}  // namespace lockstep::bench
