// What comes over a connection to the ranks of `lockstep bench`: hellos, answers, lengths of messages.
#include <algorithm>
#include <span>

#include "fuzz.h"
#include "measure/rendezvous/hello.h"

using namespace lockstep::rendezvous;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  // Whole, and as many as each is long.
  for (const auto part : {bytes, bytes.first(std::min(size, kHelloBytes))}) {
    if (const auto hello = ParseHello(part)) {
      const auto again = ParseHello(ToBytes(*hello));
      FUZZ_CHECK(again && again->job == hello->job && again->rank == hello->rank);
      FUZZ_CHECK(again->world_size == hello->world_size);
    } else {
      FUZZ_CHECK(!hello.error().message.empty());
    }
  }
  for (const auto part : {bytes, bytes.first(std::min(size, kAnswerBytes))}) {
    if (const auto answer = ParseAnswer(part)) FUZZ_CHECK(*ParseAnswer(ToBytes(*answer)) == *answer);
  }
  for (const auto part : {bytes, bytes.first(std::min(size, kHeaderBytes))}) {
    if (const auto length = ParseLength(part)) {
      FUZZ_CHECK(*length <= kMostMessageBytes);
      FUZZ_CHECK(*ParseLength(LengthBytes(*length)) == *length);
    }
  }
  return 0;
}
