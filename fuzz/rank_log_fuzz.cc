// Logs of ranks.
#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "ingest/rank_log/rank_log.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ingest::RankLogEvents log = ingest::ReadRankLog(text, "log_3.txt");
  const auto lines = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  FUZZ_CHECK(log.line_count == lines + (size > 0 && text.back() != '\n' ? 1 : 0));
  FUZZ_CHECK(log.events.size() <= 1'000);
  FUZZ_CHECK(std::is_sorted(log.prefixed_ranks.begin(), log.prefixed_ranks.end()));
  FUZZ_CHECK(!log.world_size || *log.world_size > 0);
  uint64_t before = 0;
  for (const evidence::LogEvent& event : log.events) {
    FUZZ_CHECK(event.line >= 1 && event.line <= log.line_count && event.line >= before);
    before = event.line;
    FUZZ_CHECK(event.text.size() <= 1'024);
    FUZZ_CHECK(ValidUtf8(event.text) == event.text);
    FUZZ_CHECK(ValidUtf8(event.peer + event.group + event.operation) == event.peer + event.group + event.operation);
    FUZZ_CHECK(!event.rank || *event.rank >= 0);
    FUZZ_CHECK(event.signal >= 0 && event.signal <= 64);
    FUZZ_CHECK(std::is_sorted(event.blamed_ranks.begin(), event.blamed_ranks.end()));
    FUZZ_CHECK(event.blamed_ranks.empty() || event.blamed_ranks.front() >= 0);
  }
  return 0;
}
