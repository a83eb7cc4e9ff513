#include "ingest/bytes/natural_order.h"

#include <algorithm>

#include "base/ascii.h"

namespace lockstep::ingest {
namespace {

size_t DigitsAt(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - begin;
}

// <0, 0, >0 for two runs of digits as numbers of any length.
int CompareNumbers(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

}  // namespace

bool NaturalLess(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const size_t a_digits = DigitsAt(a, i), b_digits = DigitsAt(b, j);
      if (const int order = CompareNumbers(a.substr(i, a_digits), b.substr(j, b_digits)); order != 0) return order < 0;
      i += a_digits;
      j += b_digits;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;
}

}  // namespace lockstep::ingest
