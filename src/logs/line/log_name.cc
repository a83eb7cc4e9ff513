#include "logs/line/log_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text_scan.h"

namespace lockstep::logs {

std::string LogName::ToText() const {
  std::string time = DateText(start_unix_ns);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}.{}.{}{}Z.pid{}.{}", rank ? fmt::format("rank{}", *rank) : "all", CleanWord(host),
                     job.empty() ? "" : "job" + CleanWord(job) + ".", time, pid,
                     form == LineForm::kText ? "log" : "jsonl");
}

RotatedName ReadRotatedName(std::string_view name) {
  for (const std::string_view ending : {".gz", ".zst", ".xz"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {name, 0};
  const std::string_view stem = name.substr(0, dot);
  const auto age = WholeNumber<int32_t>(name.substr(dot + 1));
  const bool is_log = stem.ends_with(".log") || stem.ends_with(".jsonl");
  // "train.log.0" counts ranks.
  if (!is_log || !age || *age < 1 || *age > 999 || name[dot + 1] == '0') return {name, 0};
  return {stem, *age};
}

std::string HostName() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  const std::string_view whole = name.data();
  return std::string(whole.substr(0, whole.find('.')));
}

}  // namespace lockstep::logs
