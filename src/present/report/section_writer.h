#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>

#include "model/ledger.h"
#include "present/report/style.h"

namespace lockstep::report {

/// What reports of titled sections with tables of a few rows share: `kernels`, `nccl-log`.
class SectionWriter {
 protected:
  /// `all`: tables have every row.
  SectionWriter(std::ostream& out, Style style, int columns, bool all)
      : out_(out), style_(style), columns_(columns), all_(all) {}

  void Paragraph(const std::string& text, Paint paint = Paint::kPlain);
  void Section(const std::string& title);
  /// How many of `count` rows are shown where `few` are usual.
  size_t Rows(size_t count, size_t few) const { return all_ ? count : std::min(count, few); }
  /// Says how many rows were left out.
  void More(size_t count, size_t shown, const char* what);

  /// What could not be read, or only in part; nothing where there is nothing.
  void Ledger(const model::Ledger& ledger);

  std::ostream& out_;
  const Style style_;

 private:
  const int columns_;
  const bool all_;
};

}  // namespace lockstep::report
