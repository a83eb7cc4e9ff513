#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/finding.h"
#include "analysis/profile_history/capture_record.h"
#include "analysis/profile_history/level_detector.h"

namespace lockstep::profile_history {

struct HistoryOptions {
  LevelOptions level = {};
  size_t warm_up_count = 1;    ///< Captures of a job that are left out: caches fill, compilers run.
  size_t follow_count = 3;     ///< Captures after a regression in which other figures that change belong to it.
  size_t accepted_count = 50;  ///< Captures after which a regression is how the job is now.
};

struct FigureChange {
  std::string figure;
  std::string unit;
  double before = 0;  ///< The level that the job had.
  double after = 0;
  std::optional<int32_t> rank = {};
  std::string since_capture;  ///< The first that was so.
  int64_t since_unix_ns = 0;
  double ratio() const { return before == 0 ? 0 : after / before - 1; }
};

/// That a job has become slower, and what is known of why.
struct Regression {
  std::vector<FigureChange> figures;         ///< Step first, then by how much of the step, or of themselves, they lost.
  std::vector<int32_t> ranks;                ///< Whose own time has grown; empty: the whole job, or unknown.
  std::optional<analysis::Finding> finding;  ///< The one that costs most more than before.
  std::string since_capture;
  int64_t since_unix_ns = 0;
  std::string reference;  ///< The last capture before it; empty: none.
};

struct Judgement {
  bool is_warm_up = false;
  std::optional<Regression> regression;  ///< A new one.
  std::vector<FigureChange> recovered;   ///< Figures of a regression that are as they were before it.
  std::vector<FigureChange> accepted;    ///< Figures of a regression that have been so for long.
};

/// One figure as it is now.
struct FigureState {
  std::string unit;
  double value = 0;
  std::optional<double> level = {};  ///< Absent while there are too few values.
  std::optional<FigureChange> regression = {};
};

/// A job's captures in order, and the levels that follow from them. Pure and deterministic: a restarted program that
/// reads its records again gets the same state. The rule: docs/watch.md#what-a-regression-is.
class JobHistory {
 public:
  explicit JobHistory(const HistoryOptions& options = {}) : options_(options) {}

  /// Records of another job, or of another number of ranks, begin a past of their own.
  Judgement Observe(const CaptureRecord& record);

  size_t capture_count() const { return capture_count_; }        ///< Of this job, with figures.
  size_t regression_count() const { return regression_count_; }  ///< Of this job.
  std::map<std::string, FigureState> figures() const;

 private:
  struct Series {
    explicit Series(const LevelOptions& options) : detector(options) {}
    LevelDetector detector;
    Figure last;
    std::deque<double> recent;                                ///< The last three values.
    std::deque<std::pair<std::string, int64_t>> recent_from;  ///< Captures and times of the last few.
    bool is_suspect = false;
    std::optional<FigureChange> regression;
    size_t since_count = 0;  ///< Captures since it was called.
  };
  void Forget();
  FigureChange ChangeOf(const Series& series) const;
  void Settle(const Figure& figure, Series& series, Judgement* judgement);
  Regression Explain(std::vector<FigureChange> changes, const CaptureRecord& record) const;

  const HistoryOptions options_;
  std::string job_id_;
  int32_t world_size_ = 0;
  size_t capture_count_ = 0;
  size_t regression_count_ = 0;
  std::map<std::string, Series> series_;
  std::optional<CaptureRecord> reference_;  ///< The last in which nothing was out of the ordinary.
  std::optional<size_t> called_at_;         ///< capture_count_ at the last regression.
};

}  // namespace lockstep::profile_history
