#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace lockstep::flood {

/// Requests as an attacker would send them: well-formed ones, mutated ones and plain noise. The same seed gives the
/// same requests.
class RequestMaker {
 public:
  explicit RequestMaker(uint64_t seed) : random_(seed) {}

  /// What one connection sends: `count` requests behind one another, of which the last may be anything.
  std::string Next(size_t count);
  /// A number below `limit`.
  size_t Below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

 private:
  std::string WellFormed();
  std::string Polite();
  std::string Noise(size_t most_bytes);
  std::string Chunked();
  void Mutate(std::string* request);

  std::mt19937_64 random_;
};

}  // namespace lockstep::flood
