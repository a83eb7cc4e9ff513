// A rank's log as it grows: at once, and in pieces as long as the first byte says. What is counted must be the same.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "fuzz.h"
#include "node/agent/log_metrics/log_meter.h"

namespace {

using namespace lockstep::agent;

std::map<int32_t, LogCounts> Read(std::string_view bytes, size_t step) {
  std::map<int32_t, LogCounts> counts;
  LogMeter meter;
  for (size_t at = 0; at < bytes.size(); at += step) {
    meter.Take(bytes.substr(at, step), false, [&](std::optional<int32_t> rank) { return &counts[rank.value_or(-1)]; });
  }
  return counts;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = Read(bytes, std::max<size_t>(bytes.size(), 1));
  const auto pieces = Read(bytes, data[0] + size_t{1});
  FUZZ_CHECK(whole.size() == pieces.size());
  uint64_t lines = 0;
  for (const auto& [rank, counts] : whole) {
    const auto same = pieces.find(rank);
    FUZZ_CHECK(same != pieces.end() && same->second.lines == counts.lines && same->second.errors == counts.errors &&
               same->second.events == counts.events);
    for (const uint64_t count : counts.lines) lines += count;
    FUZZ_CHECK(counts.errors <= lines);
  }
  FUZZ_CHECK(lines == static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n')));
  return 0;
}
