#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/hang/diagnosis.h"
#include "present/report/hang/hang_report.h"
#include "present/report/style.h"

namespace lockstep::report {

/// What every part of the text is written from, and onto.
struct HangTextPage {
  const hang::Diagnosis& diagnosis;
  const HangTextOptions& options;
  Style style;
  std::ostream& out;

  /// A blank line, the heading in capitals, and a remark behind it.
  void Heading(std::string_view title, std::string_view note = {}) const;
  /// A paragraph with a mark in front; the text is made printable.
  void Item(std::string_view mark, std::string_view text, Paint paint = Paint::kPlain) const;
};

/// "rank 3", "ranks 0-2, 7": ascending, as ranges; long lists end in how many more there are.
std::string RanksText(const std::vector<int32_t>& ranks);

/// The lines of code on each side, stacks side by side from the outermost frame, the first that differs marked.
void WriteSites(const HangTextPage& page);
void WriteCycle(const HangTextPage& page);
/// Groups x ranks, condensed: the ranks that stand at each sequence number.
void WriteGroups(const HangTextPage& page);
/// Ranks with equal stacks, the smallest set first.
void WriteStacks(const HangTextPage& page);

}  // namespace lockstep::report
