#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/control/api/history.h"

namespace lockstep::agent {

using control::HistoryKind;
inline constexpr size_t kHistoryKinds = 4;
/// Of one kind, at most.
inline constexpr size_t kMostFigures = 48;
/// Of a label's value: a longer one is cut, or makes no thing where it would name it.
inline constexpr size_t kMostLabelBytes = 128;

/// One figure that is kept: which metric it is of, and how exactly.
struct Figure {
  const char* name;    ///< In the history: "step_seconds".
  const char* metric;  ///< Samples of it with one set of key labels add up; the largest counts where `is_most`.
  double scale;        ///< Kept is the whole number next to value times scale.
  const char* label = nullptr;  ///< Only samples that have this label
  const char* value = nullptr;  ///< with this value.
  double quantile = 0;          ///< Of a summary: this one.
  bool is_most = false;
};

/// Figures of a kind; their order is that of the file.
const std::vector<Figure>& FiguresOf(HistoryKind kind);
/// Names a version of all tables: a file that was written with other tables is not read.
uint32_t FiguresFingerprint();

/// Figures of one thing at one instant, as whole numbers; nullopt: not measured.
using FigureValues = std::array<std::optional<int64_t>, kMostFigures>;
using HistoryLabels = std::map<std::string, std::string>;

/// One thing as it was at one instant.
struct HistorySample {
  HistoryKind kind = HistoryKind::kRank;
  HistoryLabels labels;
  FigureValues values;
};

/// Nullopt: the figure cannot hold it.
std::optional<int64_t> ToStored(const Figure& figure, double value);
double FromStored(const Figure& figure, int64_t stored);

}  // namespace lockstep::agent
