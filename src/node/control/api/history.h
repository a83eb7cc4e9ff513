#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::control {

/// What a series of a daemon's history is of.
enum class HistoryKind : uint8_t { kRank, kGpu, kServing, kJob };
const char* HistoryKindName(HistoryKind kind);  ///< "rank", "gpu", "serving", "job".

/// Which part of a daemon's history is wanted.
struct HistoryQuery {
  std::string job_id = {};                    ///< Only series of this job, and those of no job; empty: all.
  std::optional<int64_t> since_unix_ns = {};  ///< Inclusive; nullopt: as far as it goes back.
  std::optional<int64_t> until_unix_ns = {};  ///< Exclusive; nullopt: to now.
  std::optional<uint64_t> points = {};        ///< At most so many instants; nullopt: kHistoryPoints.
};
constexpr uint64_t kHistoryPoints = 240;
constexpr uint64_t kMostHistoryPoints = 2000;

/// Figures of one thing, at the instants of the History that it is in.
struct HistorySeries {
  HistoryKind kind = HistoryKind::kRank;
  std::map<std::string, std::string> labels;  ///< As on /metrics, those of its _info series too: job_id, rank, pid, ...
  /// By name (docs/formats/history.md), each as long as History::times_unix_ns. Counters are totals as on /metrics;
  /// what was not measured at an instant is absent.
  std::map<std::string, std::vector<std::optional<double>>> figures;
};

/// Something that happened: an Xid, a link that went down, a rank that ended.
struct HistoryEvent {
  int64_t unix_ns = 0;
  std::string kind;                           ///< "gpu_xid", "rank_ended", ...: docs/formats/history.md
  std::map<std::string, std::string> labels;  ///< Of what.
  double count = 1;                           ///< How many of them, where they are counted.
};

/// What a daemon remembers, at instants of the node's wall clock. Where it was asked for fewer than it has, each is the
/// last of a span of equal length.
struct History {
  std::string host;
  int64_t now_unix_ns = 0;             ///< When it answered.
  std::vector<int64_t> times_unix_ns;  ///< Ascending.
  std::vector<HistorySeries> series;   ///< By kind, then labels.
  std::vector<HistoryEvent> events;    ///< Oldest first.
  bool is_cut = false;                 ///< There was more than an answer holds.
};

// What an answer holds at most.
constexpr size_t kMostHistorySeries = 8192;
constexpr size_t kMostHistoryEvents = 2048;
constexpr size_t kMostHistoryValues = 400'000;  ///< Series times figures times instants.

/// The path with its query of GET /api/v1/history.
std::string HistoryPath(const HistoryQuery& query);
/// Of the part behind '?'. Errors: kInvalidArgument: a word that is unknown, a number that is none.
Result<HistoryQuery> ReadHistoryQuery(std::string_view text);

std::string ToJson(const History& history);
/// Errors: kCorruptData, kInvalidArgument, kLimitExceeded; as those of json.h.
Result<History> ReadHistory(std::string_view json);

}  // namespace lockstep::control
