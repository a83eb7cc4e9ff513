#include "ingest/logs/log_filter.h"

#include <string.h>

#include <algorithm>

namespace lockstep::logs {

bool LogFilter::Wants(Level level, std::optional<int32_t> rank, std::string_view text) const {
  if (least && level < *least) return false;
  if (!ranks.empty() && (!rank || std::none_of(ranks.begin(), ranks.end(), [&](const auto& range) {
        return range.first <= *rank && *rank <= range.second;
      }))) {
    return false;
  }
  return texts.empty() || std::any_of(texts.begin(), texts.end(), [&](const std::string& wanted) {
           return ::memmem(text.data(), text.size(), wanted.data(), wanted.size()) != nullptr;
         });
}

}  // namespace lockstep::logs
