// Traces as a node's daemon sends them: any bytes. However they are cut into pieces, the facts are the same.
#include <string_view>

#include "fuzz.h"
#include "node/control/client/trace_window.h"

using lockstep::control::TraceFacts;
using lockstep::control::TraceScanner;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  TraceScanner whole;
  whole.Feed(text);
  const TraceFacts facts = whole.Finish();
  FUZZ_CHECK(facts.bytes == text.size());

  TraceScanner pieces;
  const size_t piece = data[0] + size_t{1};
  for (size_t at = 0; at < text.size(); at += piece) pieces.Feed(text.substr(at, piece));
  const TraceFacts same = pieces.Finish();
  FUZZ_CHECK(same.whole == facts.whole && same.bytes == facts.bytes);
  FUZZ_CHECK(same.start_unix_ns == facts.start_unix_ns && same.end_unix_ns == facts.end_unix_ns);
  FUZZ_CHECK(same.optimizer_step_count == facts.optimizer_step_count);
  return 0;
}
