#include "node/agent/host/host_text.h"

#include <algorithm>
#include <cmath>

#include "base/split.h"
#include "base/text_scan.h"
#include "base/utf8.h"
#include "node/agent/sensors/small_file.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMostInterfaces = 64;
constexpr size_t kNameBytes = 64;
constexpr std::string_view kBlanks = " \t\n";

}  // namespace

std::optional<double> ParsePortRate(std::string_view text) {
  const std::vector<std::string_view> words = SplitAt(text, kBlanks);
  if (words.size() < 2 || words[1] != "Gb/sec") return std::nullopt;
  const auto gigabits = WholeNumber<double>(words[0]);
  if (!gigabits || !std::isfinite(*gigabits) || *gigabits < 0) return std::nullopt;
  return *gigabits * 1e9 / 8;
}

bool IsActivePort(std::string_view state) { return state.starts_with("4:"); }

std::optional<uint64_t> ParseResidentPages(std::string_view statm) {
  const std::vector<std::string_view> words = SplitAt(statm, kBlanks);
  return words.size() < 2 ? std::nullopt : WholeNumber<uint64_t>(words[1]);
}

std::optional<uint64_t> ValueOfLine(std::string_view text, std::string_view name) {
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    if (!line.starts_with(name) || line.substr(name.size()).substr(0, 1) != ":") continue;
    const std::vector<std::string_view> words = SplitAt(line.substr(name.size() + 1), kBlanks);
    return words.empty() ? std::nullopt : WholeNumber<uint64_t>(words[0]);
  }
  return std::nullopt;
}

std::vector<std::pair<const char*, uint64_t>> ParseCpuTicks(std::string_view stat) {
  // Time of guests is in user and nice already.
  constexpr const char* kModes[] = {"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"};
  std::vector<std::pair<const char*, uint64_t>> ticks;
  const std::vector<std::string_view> words = SplitAt(stat.substr(0, stat.find('\n')), kBlanks);
  if (words.empty() || words[0] != "cpu") return ticks;
  for (size_t i = 0; i < std::size(kModes) && i + 1 < words.size(); ++i) {
    if (const auto value = WholeNumber<uint64_t>(words[i + 1])) ticks.emplace_back(kModes[i], *value);
  }
  return ticks;
}

std::vector<std::pair<const char*, uint64_t>> ParsePressure(std::string_view text) {
  constexpr const char* kKinds[] = {"some", "full"};
  constexpr std::string_view kTotal = "total=";
  std::vector<std::pair<const char*, uint64_t>> totals;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    const std::vector<std::string_view> words = SplitAt(line, kBlanks);
    const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                          [&](const char* each) { return !words.empty() && words[0] == each; });
    if (kind == std::end(kKinds) || !words.back().starts_with(kTotal)) continue;
    const auto total = WholeNumber<uint64_t>(words.back().substr(kTotal.size()));
    const bool is_known =
        std::any_of(totals.begin(), totals.end(), [&](const auto& each) { return each.first == *kind; });
    if (total && !is_known) totals.emplace_back(*kind, *total);
  }
  return totals;
}

std::vector<InterfaceBytes> ParseInterfaces(std::string_view text) {
  std::vector<InterfaceBytes> interfaces;
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line) && interfaces.size() < kMostInterfaces;) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::vector<std::string_view> name = SplitAt(line.substr(0, colon), kBlanks);
    const std::vector<std::string_view> values = SplitAt(line.substr(colon + 1), kBlanks);
    if (name.size() != 1 || name[0] == "lo" || values.size() < 9) continue;
    const auto received = WholeNumber<uint64_t>(values[0]);
    const auto transmitted = WholeNumber<uint64_t>(values[8]);
    if (!received || !transmitted) continue;
    InterfaceBytes found{Printable(name[0].substr(0, kNameBytes)), *received, *transmitted};
    const bool is_known = std::any_of(interfaces.begin(), interfaces.end(),
                                      [&](const InterfaceBytes& each) { return each.name == found.name; });
    if (!is_known) interfaces.push_back(std::move(found));
  }
  return interfaces;
}

}  // namespace lockstep::agent
