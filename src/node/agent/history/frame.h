#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node/agent/history/figures.h"

namespace lockstep::agent {

constexpr size_t kMostFrameBytes = 24 * 1024;
constexpr size_t kMostBlockSeries = 8192;

/// The state that the frames of one block build on: each frame holds what has changed since the previous one. Writer
/// and reader of a block have the same state.
struct HistoryFrameState {
  struct Series {
    HistoryKind kind = HistoryKind::kRank;
    HistoryLabels labels;
    uint64_t present = 0;
    std::array<int64_t, kMostFigures> values = {};
  };
  int64_t time_ms = 0;
  std::vector<Series> series;
  std::map<std::string, size_t, std::less<>> places;  ///< By kind and labels; of the writer alone.
};

/// By what the writer finds a series again.
std::string FrameKey(HistoryKind kind, const HistoryLabels& labels);

/// One instant's bytes: so many of `samples` and `events`, from the first on, as a frame holds. Takes what it has
/// written from the front of both.
std::string EncodeFrame(int64_t time_ms, std::span<const HistorySample>* samples,
                        std::span<const control::HistoryEvent>* events, HistoryFrameState* state);

/// What a frame holds.
struct HistoryFrameReader {
  /// A series of the state, by its index, as it was at state.time_ms.
  std::function<void(size_t series_idx)> sample = nullptr;
  std::function<void(control::HistoryEvent event)> event = nullptr;
};

/// Reads a frame on. False: it is none; the state is then of no more use. The bytes may be anything.
bool DecodeFrame(std::string_view frame, const HistoryFrameReader& reader, HistoryFrameState* state);
/// Its time alone, where the one before it was at `before_ms`.
std::optional<int64_t> FrameTime(std::string_view frame, int64_t before_ms);

}  // namespace lockstep::agent
