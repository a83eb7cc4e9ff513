#include "model/log_line/log_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text_scan.h"

namespace lockstep::logs {

std::string LogName::ToText() const {
  std::string time = DateText(start_unix_ns);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}.{}.{}{}Z.pid{}.{}", rank ? fmt::format("rank{}", *rank) : "all", CleanWord(host),
                     job.empty() ? "" : "job" + CleanWord(job) + ".", time, pid,
                     form == LineForm::kText ? "log" : "jsonl");
}

bool IsOwnLogName(std::string_view name) {
  // From the end: form, process, time; and from the begin: rank. A host and a job may hold dots.
  const auto take_last = [&] {
    const size_t dot = name.rfind('.');
    const std::string_view word = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    name = name.substr(0, dot == std::string_view::npos ? 0 : dot);
    return word;
  };
  const std::string_view form = take_last(), process = take_last(), time = take_last();
  if ((form != "log" && form != "jsonl") || !process.starts_with("pid")) return false;
  const std::string_view pid = process.substr(3, process.find('-') - 3);
  const bool is_numbered = process.size() > 3 + pid.size();
  if (!IsNumber(pid) || (is_numbered && !IsNumber(process.substr(4 + pid.size())))) return false;
  constexpr size_t kTimeBytes = 16, kDayBytes = 8;  // 20261123T021503Z
  if (time.size() != kTimeBytes || time[kDayBytes] != 'T' || time.back() != 'Z' ||
      !IsNumber(time.substr(0, kDayBytes)) || !IsNumber(time.substr(kDayBytes + 1, 6))) {
    return false;
  }
  const std::string_view rank = name.substr(0, name.find('.'));
  return name.size() > rank.size() && (rank == "all" || (rank.starts_with("rank") && IsNumber(rank.substr(4))));
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
