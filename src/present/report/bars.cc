#include "present/report/bars.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::report {
namespace {

std::string Repeat(std::string_view glyph, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += glyph;
  return text;
}

// Columns for each part: floors first, then the largest remainders, then one column taken from the widest for a hidden
// part.
std::vector<int> Apportion(const std::vector<BarPart>& parts, double whole, int width) {
  std::vector<int> columns(parts.size(), 0);
  std::vector<double> rest(parts.size(), 0);
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double exact = std::max(0.0, parts[i].value) / whole * width;
    sum += exact;
    columns[i] = static_cast<int>(std::min(exact, static_cast<double>(width)));
    rest[i] = exact - columns[i];
  }
  const int target = std::min(width, static_cast<int>(std::lround(std::min(sum, static_cast<double>(width)))));
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  int used = std::accumulate(columns.begin(), columns.end(), 0);
  for (const size_t i : order) {
    if (used >= target) break;
    ++columns[i];
    ++used;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (columns[i] != 0 || parts[i].value <= 0 || parts[i].value < whole * 0.002) continue;
    const auto widest = std::max_element(columns.begin(), columns.end());
    if (*widest < 2) continue;
    --*widest;
    ++columns[i];
  }
  return columns;
}

}  // namespace

std::string_view BarGlyph(Paint paint, bool unicode) {
  switch (paint) {
    case Paint::kCompute: return unicode ? "█" : "#";
    case Paint::kCommunication: return unicode ? "▒" : "=";
    case Paint::kMemory: return unicode ? "▪" : "m";
    case Paint::kIdle: return unicode ? "·" : ".";
    default: return unicode ? "■" : "*";
  }
}

std::string StackedBar(const std::vector<BarPart>& parts, double whole, int width, const Style& style) {
  if (!(whole > 0) || width <= 0) return std::string(static_cast<size_t>(std::max(width, 0)), ' ');
  const std::vector<int> columns = Apportion(parts, whole, width);
  std::string bar;
  int used = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    bar += style(parts[i].paint, Repeat(BarGlyph(parts[i].paint, style.unicode), columns[i]));
    used += columns[i];
  }
  return bar + std::string(static_cast<size_t>(std::max(0, width - used)), ' ');
}

std::string PlainBar(Paint paint, double value, double whole, int width, const Style& style) {
  if (!(whole > 0) || !(value > 0) || width <= 0) return {};
  const double share = std::min(1.0, value / whole) * width;
  const int columns = std::max(share >= 0.05 ? 1 : 0, static_cast<int>(std::lround(share)));
  return style(paint, Repeat(BarGlyph(paint, style.unicode), columns));
}

}  // namespace lockstep::report
