#pragma once

#include <cstdint>

#include "model/event.h"

namespace lockstep::ingest {

/// Appends events to one track's columns. All columns grow together, so that an event costs one capacity test.
class TrackWriter {
 public:
  TrackWriter(model::Lane lane, int64_t process_id, int64_t thread_id);

  void Add(int64_t start_ns, int64_t duration_ns, NameId name, model::Category category, uint32_t correlation) {
    if (size_ == capacity_) [[unlikely]]
      Grow();
    sorted_ =
        sorted_ && (start_ns > last_start_ns_ || (start_ns == last_start_ns_ && duration_ns <= last_duration_ns_));
    last_start_ns_ = start_ns;
    last_duration_ns_ = duration_ns;
    start_[size_] = start_ns;
    duration_[size_] = duration_ns;
    name_[size_] = name;
    category_[size_] = category;
    if (correlation_ != nullptr) correlation_[size_] = correlation;
    ++size_;
  }

  int64_t process_id() const { return track_.process_id; }
  int64_t thread_id() const { return track_.thread_id; }
  model::Lane lane() const { return track_.lane; }
  size_t size() const { return size_; }

  /// Sorts if needed, adds `base_ns` to every start and gives the track away.
  model::Track Finish(int64_t base_ns);

 private:
  void Grow();

  model::Track track_;
  int64_t* start_ = nullptr;
  int64_t* duration_ = nullptr;
  NameId* name_ = nullptr;
  model::Category* category_ = nullptr;
  uint32_t* correlation_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  int64_t last_start_ns_ = INT64_MIN;
  int64_t last_duration_ns_ = INT64_MAX;
  bool sorted_ = true;
};

}  // namespace lockstep::ingest
