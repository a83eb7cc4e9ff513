#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ingest/torch_trace/track_writer.h"
#include "model/run.h"

namespace lockstep::ingest::nsight {

/// A globalTid or globalPid: hardware and virtual machine in the upper 16 bits, process id in the next 24, thread id in
/// the lowest 24.
inline int64_t ProcessOf(int64_t global_id) { return global_id & ~int64_t{0xFFFFFF}; }
inline int64_t PidOf(int64_t global_id) { return (global_id >> 24) & 0xFFFFFF; }
inline int64_t TidOf(int64_t global_id) { return global_id & 0xFFFFFF; }

/// A change of a device's memory.
struct MemoryChange {
  int64_t time_ns = 0;
  int64_t change_bytes = 0;
  int16_t device = -1;
};

/// What one process of a report did, in the report's time.
class ProcessEvents {
 public:
  explicit ProcessEvents(int64_t global_pid) : global_pid_(global_pid) {}

  TrackWriter& Writer(model::Lane lane, int64_t process_id, int64_t thread_id) {
    const Key key{lane, process_id, thread_id};
    if (last_ == nullptr || key != last_key_) {
      std::unique_ptr<TrackWriter>& writer = writers_[key];
      if (writer == nullptr) writer = std::make_unique<TrackWriter>(lane, process_id, thread_id);
      last_ = writer.get();
      last_key_ = key;
    }
    return *last_;
  }
  void Collective(const model::CollectiveRecord& record) { collectives_.push_back(record); }
  void Synchronisation(const model::SyncRecord& record) { synchronisations_.push_back(record); }
  void Memory(const MemoryChange& change) { memory_.push_back(change); }

  int64_t global_pid() const { return global_pid_; }
  uint64_t EventCount(model::Lane lane) const;
  uint64_t event_count() const;
  /// The lowest device it used; INT64_MAX without one.
  int64_t FirstDevice() const;
  /// Takes over what `other` holds.
  void Absorb(ProcessEvents&& other);
  /// Splits off what ran on each device but the lowest, where one process stands for several that cannot be told apart.
  std::vector<std::unique_ptr<ProcessEvents>> SplitByDevice();

  /// Gives everything away, sorted, with `base_ns` added to every time.
  void Finish(int64_t base_ns, const std::map<int64_t, NameId>& thread_names, model::RankTrace* trace);

 private:
  using Key = std::tuple<model::Lane, int64_t, int64_t>;

  int64_t global_pid_;
  std::map<Key, std::unique_ptr<TrackWriter>> writers_;  // In the order of RankTrace::tracks.
  TrackWriter* last_ = nullptr;
  Key last_key_;
  std::vector<model::CollectiveRecord> collectives_;
  std::vector<model::SyncRecord> synchronisations_;
  std::vector<MemoryChange> memory_;
};

/// Ranges of a thread that begin inside another one and outlast it, each on a further track: those of NVTX need not
/// nest (start/end ranges, stacks of several domains), and passes take it that they do.
std::vector<model::Track> SplitCrossing(model::Track track);

}  // namespace lockstep::ingest::nsight
