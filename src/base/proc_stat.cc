#include "base/proc_stat.h"

#include <vector>

#include "base/split.h"
#include "base/text_scan.h"

namespace lockstep {

std::optional<ProcStat> ParseProcStat(std::string_view text) {
  // The name may hold anything, brackets too: what counts begins after the last one.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const std::vector<std::string_view> words = SplitAt(text.substr(close + 1), " \n");
  constexpr size_t kFirst = 3;
  if (words.size() <= 22 - kFirst) return std::nullopt;
  ProcStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = words[0].front();
  uint64_t system_ticks = 0;
  if (!ReadNumber(words[4 - kFirst], &stat.parent_pid) || !ReadNumber(words[14 - kFirst], &stat.cpu_ticks) ||
      !ReadNumber(words[15 - kFirst], &system_ticks) || !ReadNumber(words[20 - kFirst], &stat.thread_count) ||
      !ReadNumber(words[22 - kFirst], &stat.start_ticks)) {
    return std::nullopt;
  }
  stat.cpu_ticks += system_ticks;
  if (words.size() > 24 - kFirst) stat.resident_pages = WholeNumber<uint64_t>(words[24 - kFirst]);
  if (stat.state == 'Z' && words.size() > 52 - kFirst) {
    stat.wait_status = WholeNumber<int32_t>(words[52 - kFirst]);
    if (!stat.wait_status) return std::nullopt;
  }
  return stat;
}

}  // namespace lockstep
