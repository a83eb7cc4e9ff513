#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "analysis/comparison/compare.h"
#include "present/report/style.h"
#include "present/report/text_table.h"

namespace lockstep::report {

// How texts say what differs between two runs.

std::string SignedTime(double ns);                       ///< "+1.20 ms".
std::string SignedPercent(std::optional<double> ratio);  ///< "+4.1 %"; "-" where there is none.
std::string Interval(const comparison::Delta& delta);    ///< "+1.1 ms .. +1.3 ms"; "-" where there is none.
std::string Level(double confidence);                    ///< "99 % interval".
/// "slower", "faster", "same", "small" (certain, and below what counts), "?".
std::string Word(comparison::Change change, const comparison::Delta& delta);
Paint PaintOf(comparison::Change change);

/// A row a quantity: both medians, the change, its interval, the word.
TextTable DeltaTable(double confidence);
void AddDelta(TextTable* table, std::string label, const comparison::Delta& delta);

/// The sentence, further reasons and notes.
void WriteVerdict(const comparison::Verdict& verdict, int width, const Style& style, std::ostream& out);

}  // namespace lockstep::report
