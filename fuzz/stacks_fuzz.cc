// Stack dumps of every format.
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "ingest/stacks/stacks.h"

namespace {

void CheckFrames(const std::vector<lockstep::evidence::StackFrame>& frames) {
  FUZZ_CHECK(frames.size() <= 4'096);
  for (const auto& frame : frames) {
    FUZZ_CHECK(lockstep::ValidUtf8(frame.function) == frame.function);
    FUZZ_CHECK(lockstep::ValidUtf8(frame.file) == frame.file);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ingest::StackFormat format = ingest::SniffStacks(text);
  const auto threads = ingest::ReadStacks(text);
  if (!threads) {
    FUZZ_CHECK(!threads.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(format != ingest::StackFormat::kNone);
  FUZZ_CHECK(!threads->empty());
  for (const evidence::ThreadStack& thread : *threads) {
    FUZZ_CHECK(!thread.source.empty());
    FUZZ_CHECK(ValidUtf8(thread.name) == thread.name);
    CheckFrames(thread.python);
    CheckFrames(thread.native);
  }
  return 0;
}
