#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "present/report/style.h"

namespace lockstep::report {

/// A part of a stacked bar.
struct BarPart {
  Paint paint = Paint::kPlain;  ///< kCompute, kCommunication, kMemory or kIdle; gives the glyph as well as the colour.
  double value = 0;
};

/// The glyph that stands for a part: full, dark, light blocks and a dot; '#', '=', '-', '.' in ASCII.
std::string_view BarGlyph(Paint paint, bool unicode);

/// Exactly `width` columns for `whole`; each part gets its rounded share (largest remainder), blanks fill the rest.
/// A part above zero is never hidden as long as there is room for one column for each.
std::string StackedBar(const std::vector<BarPart>& parts, double whole, int width, const Style& style);

/// One glyph repeated over `value / whole` of `width` columns, without trailing blanks.
std::string PlainBar(Paint paint, double value, double whole, int width, const Style& style);

}  // namespace lockstep::report
