#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ingest/span_trace/wire_format.h"

namespace lockstep::ingest::span_follow {

/// Reads bytes of a file that may change meanwhile: how many there were, 0 at its end or when it cannot be read.
using ReadAt = std::function<size_t(uint64_t offset, char* to, size_t bytes)>;

/// Where the chunks of a file lie that grows. A place keeps its bytes, but what is in it changes: a thread that has
/// copied its full chunk to the end begins another one there.
class ChunkPlaces {
 public:
  struct Place {
    uint64_t offset = 0;
    uint32_t size_bytes = 0;
    uint64_t number = 0;    ///< Of the chunk that was read there last; 0: none.
    bool is_final = false;  ///< Was read, and will not be written again: the copy of a full chunk.
    uint64_t round = 0;     ///< Of its reader, in which it was looked at last.
    uint32_t name_bytes = sizeof(span_trace::ChunkHeader);  ///< Of a chunk of names: how far it was read.
  };

  /// Looks for chunks in what was free before, and in what was added up to `used_bytes`. Costs a small read a free
  /// page, of a run of which nothing came at most 2048: a fifth of a millisecond.
  void Search(const ReadAt& read, uint64_t used_bytes);
  /// What is in a place was read: smaller when another thread was given the rest of it, or a whole copy.
  void Update(size_t place, const span_trace::ChunkHeader& header);
  /// Forgets those that were read and will not change; not to be done in a file that keeps the newest.
  void ForgetFinal();

  const std::vector<Place>& places() const { return places_; }
  Place& place(size_t place_idx) { return places_[place_idx]; }
  /// Up to where Search() has come.
  uint64_t searched_bytes() const { return searched_; }

 private:
  struct Run {
    uint64_t begin;
    uint64_t end;
  };
  /// Adds chunks that lie in `run`; what is still free goes to `left`.
  void SearchRun(const ReadAt& read, const Run& run, size_t most_pages, std::vector<Run>* left);
  bool AddAt(const ReadAt& read, uint64_t offset, uint64_t end);

  std::vector<Place> places_;
  std::vector<Run> free_;  ///< By offset of begin; where no chunk was.
  uint64_t searched_ = span_trace::kHeaderBytes;
};

/// Whether a chunk of records or of names begins so.
bool IsChunk(const span_trace::ChunkHeader& header);

}  // namespace lockstep::ingest::span_follow
