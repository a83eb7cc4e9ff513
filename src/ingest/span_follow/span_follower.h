#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ingest/span_follow/chunk_places.h"

namespace lockstep::ingest::span_follow {

/// Times are nanoseconds of the host's wall clock, as far as one rate from the first anchor to the newest gives them.
struct FollowedSpan {
  uint64_t thread_id = 0;
  uint32_t name = 0;  ///< SpanFollower::NameOf.
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

struct FollowedStep {
  uint64_t thread_id = 0;  ///< Where the step was begun.
  int64_t number = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

struct FollowedCounter {
  uint32_t name = 0;
  int64_t time_ns = 0;
  double value = 0;  ///< Finite.
};

struct FollowedRequest {
  enum class Kind : uint8_t { kBegin, kOutput, kEnd };
  Kind kind = Kind::kBegin;
  uint64_t request = 0;
  uint32_t name = 0;  ///< Of a begin.
  int64_t time_ns = 0;
  uint64_t output_count = 0;  ///< Of an output.
  bool failed = false;        ///< Of an end.
};

/// What a process has recorded since it was asked last. Of a thread in order of time.
struct Followed {
  std::vector<FollowedSpan> spans;  ///< Those that have ended; in order of begin within a chunk.
  std::vector<FollowedStep> steps;  ///< The same.
  std::vector<FollowedCounter> counters;
  std::vector<FollowedRequest> requests;
  /// Of the step that is under way: itself, and what has begun in it on its thread and not ended, the innermost last.
  /// Their durations are 0.
  std::vector<FollowedSpan> open;
  uint64_t record_count = 0;
  uint64_t missed_count = 0;   ///< Too many to be kept waiting for their end, or overwritten before: of those a whole
                               ///< chunk is counted, which is a little more than it can have held.
  uint64_t dropped_count = 0;  ///< Since its begin the process found no room for these.
  bool has_more = false;       ///< There was more than one reading takes: the next one goes on with it.
  bool has_ended = false;      ///< It ended orderly: there will be no more records.
};

/// Reads an open file, which it borrows.
ReadAt ReadOpenFile(int file);

/// Reads on in the file that liblockstep writes, while it does (docs/formats/span-trace.md). Costs what was recorded
/// since the last time and one chunk a thread; a reading takes 8 MiB at most. Steps that follow each other by the
/// program's clock do so in nanoseconds. The file's bytes are not trusted: a wrong file gives wrong figures, whose ends
/// int64_t still holds, and nothing worse. Not thread-safe.
class SpanFollower {
 public:
  /// Errors: kCorruptData (no span trace), kUnsupported (of another version).
  static Result<SpanFollower> Open(ReadAt read);

  /// Errors: kCorruptData when it is another file suddenly.
  Result<Followed> ReadOn();

  /// "" as long as it is not known.
  const std::string& NameOf(uint32_t name) const;
  const span_trace::Header& header() const { return header_; }
  /// How many spans, steps included, have begun and not ended.
  size_t open_count() const { return open_.size(); }

 private:
  struct Image {
    span_trace::ChunkHeader header = {};
    std::vector<span_trace::Slot> slots;  ///< Whole records.
    size_t place_idx = 0;
  };
  struct Chunk {
    uint32_t slot_count = 0;          ///< That were taken.
    std::vector<uint32_t> open = {};  ///< Slots whose span may be said to have ended here.
    uint64_t round = 0;               ///< In which it was there last.
  };
  struct OpenSpan {
    uint64_t thread_id = 0;
    uint32_t name = 0;
    uint64_t tick = 0;
    std::optional<int64_t> step;
  };

  explicit SpanFollower(ReadAt read) : read_(std::move(read)) {}
  Status ReadHeader();
  bool ReadImage(const ChunkPlaces::Place& place, Image* image) const;
  bool IsRead(const ChunkPlaces::Place& place) const;
  /// Reads places that were not looked at in this round, until `images` hold as much as they may; false: they do.
  bool LookAt(size_t begin, size_t end, size_t* bytes_left, std::vector<Image>* images);
  /// The same of copies alone, until all that there are were found.
  bool LookAtCopies(size_t* bytes_left, std::vector<Image>* images);
  void PutBackPlacesOfThreads(std::vector<Image>* images);
  void EndRound(Followed* followed);
  void SeeNumbers(const std::vector<Image>& images);
  void ReadNames();
  void ReadNames(uint32_t size_bytes, ChunkPlaces::Place* place);
  void Take(const Image& image, Followed* followed);
  void TakeRecord(const Image& image, size_t slot_idx, Chunk* chunk, Followed* followed);
  void Finish(uint64_t place, uint64_t end_tick, Followed* followed);
  void Emit(const OpenSpan& span, uint64_t end_tick, Followed* followed);
  std::vector<FollowedSpan> OpenInStep() const;
  void SeeAnchor(const span_trace::Anchor& anchor);
  bool KnowsRate() const;
  int64_t ToWall(uint64_t tick) const;
  int64_t ToNs(uint64_t ticks) const;

  ReadAt read_;
  span_trace::Header header_ = {};
  ChunkPlaces places_;
  uint64_t round_ = 1;                           ///< Readings in which all places are looked at once; mostly it is one.
  uint64_t reading_count_ = 0;                   ///< Of this round.
  bool is_behind_ = true;                        ///< What there is does, or may, not fit into one reading.
  uint64_t first_round_ = 0;                     ///< In which chunks were seen for the first time.
  uint64_t highest_number_ = 0;                  ///< Of any chunk that was seen.
  std::map<uint64_t, uint64_t> unseen_numbers_;  ///< Below it, and for how many rounds they have not been.
  std::map<uint64_t, Chunk> chunks_;             ///< By number; those that may still change.
  size_t open_slot_count_ = 0;                   ///< Chunk::open of all.
  // By place, and so by age: the oldest entry without a partner is dropped first.
  std::map<uint64_t, OpenSpan> open_;
  std::map<uint64_t, uint64_t> early_ends_;  ///< Of spans that were not seen yet: the tick.
  std::unordered_map<uint32_t, std::string> names_;
  size_t name_text_bytes_ = 0;
  uint64_t last_step_end_tick_ = 0;  ///< Of the step that ended last.
  int64_t last_step_end_ns_ = 0;
  std::optional<span_trace::Anchor> first_;
  span_trace::Anchor newest_ = {};
};

}  // namespace lockstep::ingest::span_follow
