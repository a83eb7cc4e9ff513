#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/nanoseconds.h"
#include "node/live/job_view.h"

namespace lockstep::live_site {

/// What views showed, as columns over time: what a page that has just been opened draws for the time before
/// (docs/formats/live-page.md#history). Times are put in buckets; of the looks of one bucket a mean is kept. When they
/// span too many buckets, two become one, until they are kLongestBucketNs long; then the oldest go. Thread-safe.
class ViewHistory {
 public:
  static constexpr int64_t kFirstBucketNs = kSecondNs;
  static constexpr int64_t kLongestBucketNs = 16'000'000'000;
  static constexpr size_t kMostBuckets = 512;
  static constexpr size_t kMostValues = size_t{4} << 20;  ///< Of all columns; 4 bytes each.

  /// Views come in the order of their times; one from before the last is passed over.
  void Add(const live::View& view);
  /// lockstep.live-history/1
  std::string Json() const;
  size_t bucket_count() const;
  int64_t bucket_ns() const;

 private:
  /// Values of all buckets; a column that came later begins with nothing.
  class Column {
   public:
    void Add(size_t bucket, double value);
    void Merge(const std::vector<size_t>& bucket_of, size_t count);
    void DropFirst(size_t count);
    bool empty() const;
    std::string Json(size_t count) const;

   private:
    std::vector<float> values_;  // NaN: nothing.
    size_t newest_count_ = 0;    // Of values in the last bucket.
  };
  using Columns = std::map<std::string, Column>;  // By name.
  struct Rank {
    Columns columns;
    std::string states;
  };
  struct RankOrder {
    bool operator()(const std::string& a, const std::string& b) const { return live::RankComesBefore(a, b); }
  };
  using ServingKey = std::tuple<std::string, std::string, std::string>;  // Host, model, engine.
  struct Job {
    Columns columns;
    std::unordered_map<std::string, Rank> ranks;
    std::map<ServingKey, Columns> serving;
  };
  struct Gpu {
    Columns columns;
    std::map<std::string, Columns, RankOrder> mig_instances;
  };
  struct Node {
    std::map<std::string, Gpu, RankOrder> gpus;
    std::map<live::PortKey, Columns> network;
  };

  void AddJob(const live::JobView& view, size_t bucket) LOCKSTEP_REQUIRES(mutex_);
  void AddNode(const live::NodeView& view, size_t bucket) LOCKSTEP_REQUIRES(mutex_);
  void Shrink() LOCKSTEP_REQUIRES(mutex_);
  void DropFirst(size_t count) LOCKSTEP_REQUIRES(mutex_);
  void Halve() LOCKSTEP_REQUIRES(mutex_);
  size_t ColumnCount() LOCKSTEP_REQUIRES(mutex_);
  template <typename Visit>
  void ForEach(Visit visit) LOCKSTEP_REQUIRES(mutex_);
  void DropEmpty() LOCKSTEP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  int64_t bucket_ns_ LOCKSTEP_GUARDED_BY(mutex_) = kFirstBucketNs;
  int64_t until_unix_ns_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  int64_t window_ns_ LOCKSTEP_GUARDED_BY(mutex_) = 0;       // Of the newest view.
  std::vector<int64_t> times_ LOCKSTEP_GUARDED_BY(mutex_);  // Begins of buckets.
  std::map<std::string, Job> jobs_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, Node> nodes_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::live_site
