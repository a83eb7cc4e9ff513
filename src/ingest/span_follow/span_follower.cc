#include "ingest/span_follow/span_follower.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace lockstep::ingest::span_follow {
namespace {

using namespace span_trace;

constexpr size_t kMostOpen = 1 << 16;
constexpr size_t kMostReadBytes = size_t{8} << 20;  // Of chunks that are read; the same of names.
constexpr uint64_t kForgetAfter = 3;                // Rounds in which a chunk was not seen.
constexpr size_t kMostUnseen = 1 << 12;
constexpr size_t kMostNames = 1 << 16;
constexpr size_t kMostNameTextBytes = size_t{16} << 20;
constexpr size_t kMostNameBytes = 2000;             // As the library cuts them.
constexpr int64_t kShortestRateNs = 200'000;        // Anchors closer than this say nothing of a clock's rate.
constexpr double kLongestNs = 4'611'686'018'427e6;  // 2^62 or so; no time is further from an anchor.
constexpr ClockKind kMonotonicClock = ClockKind::kMonotonic;
constexpr ClockKind kLastClock = ClockKind::kArmCounter;

double DoubleOf(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// How many of the slots hold whole records.
size_t WholeSlots(const std::vector<Slot>& slots) {
  size_t used = 0;
  while (used < slots.size()) {
    const uint32_t count = kSlotCounts[slots[used].kind()];
    if (count == 0 || used + count > slots.size()) break;
    used += count;
  }
  return used;
}

}  // namespace

ReadAt ReadOpenFile(int file) {
  return [file](uint64_t offset, char* to, size_t bytes) {
    if (offset > INT64_MAX) return size_t{0};
    const ssize_t got = ::pread(file, to, bytes, static_cast<off_t>(offset));
    return got < 0 ? size_t{0} : static_cast<size_t>(got);
  };
}

Result<SpanFollower> SpanFollower::Open(ReadAt read) {
  SpanFollower follower(std::move(read));
  RETURN_IF_ERROR(follower.ReadHeader());
  return follower;
}

Status SpanFollower::ReadHeader() {
  Header header = {};
  if (read_(0, reinterpret_cast<char*>(&header), sizeof(header)) != sizeof(header) ||
      std::memcmp(header.magic, kMagic.data(), kMagic.size()) != 0 || header.clock < kMonotonicClock ||
      header.clock > kLastClock) {
    return Error{.code = ErrorCode::kCorruptData, .message = "is not a span trace"};
  }
  if (header.version != kVersion) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = fmt::format("is a span trace of version {}; this lockstep follows version {}",
                                        header.version, kVersion)};
  }
  if (first_ && header.process_id != header_.process_id) {
    return Error{.code = ErrorCode::kCorruptData, .message = "became the file of another process"};
  }
  header_ = header;
  SeeAnchor(header.begin);
  if (header.end.tick != 0) SeeAnchor(header.end);
  return {};
}

void SpanFollower::SeeAnchor(const Anchor& anchor) {
  if (!first_) {
    first_ = newest_ = anchor;
  } else if (anchor.tick > newest_.tick && anchor.monotonic_ns >= newest_.monotonic_ns) {
    newest_ = anchor;
  }
}

bool SpanFollower::KnowsRate() const {
  return header_.clock == kMonotonicClock ||
         (newest_.tick > first_->tick && newest_.monotonic_ns - first_->monotonic_ns >= kShortestRateNs);
}

int64_t SpanFollower::ToNs(uint64_t ticks) const {
  double rate = 1;
  if (header_.clock != kMonotonicClock) {
    rate = (static_cast<double>(newest_.monotonic_ns) - static_cast<double>(first_->monotonic_ns)) /
           static_cast<double>(newest_.tick - first_->tick);
  }
  return static_cast<int64_t>(std::clamp(static_cast<double>(ticks) * rate, 0.0, kLongestNs));
}

int64_t SpanFollower::ToWall(uint64_t tick) const {
  const int64_t wall_ns = std::clamp<int64_t>(newest_.wall_ns, 0, static_cast<int64_t>(kLongestNs));
  return tick >= newest_.tick ? wall_ns + ToNs(tick - newest_.tick) : wall_ns - ToNs(newest_.tick - tick);
}

const std::string& SpanFollower::NameOf(uint32_t name) const {
  static const std::string kNone;
  const auto found = names_.find(name);
  return found == names_.end() ? kNone : found->second;
}

// A record becomes visible by the end of its first word, which lies behind the tick: a reader that copies from front to
// back may have copied the tick before it was written. So a record that is complete in one copy is read from the next
// copy.
bool SpanFollower::ReadImage(const ChunkPlaces::Place& place, Image* image) const {
  const auto read_header = [&](ChunkHeader* header) {
    return read_(place.offset, reinterpret_cast<char*>(header), sizeof(*header)) == sizeof(*header) &&
           IsChunk(*header) && header->size_bytes <= place.size_bytes;
  };
  if (!read_header(&image->header)) return false;
  if (image->header.kind != kRecordChunk) return true;
  std::vector<Slot>& slots = image->slots;
  size_t whole = 0;
  for (int pass = 0; pass < 2; ++pass) {
    slots.resize((image->header.size_bytes - sizeof(ChunkHeader)) / sizeof(Slot));
    const size_t bytes = slots.size() * sizeof(Slot);
    if (read_(place.offset + sizeof(ChunkHeader), reinterpret_cast<char*>(slots.data()), bytes) != bytes) return false;
    if (pass == 0) whole = WholeSlots(slots);
  }
  slots.resize(std::min(whole, WholeSlots(slots)));
  ChunkHeader after = {};
  return read_header(&after) && after.chunk_number == image->header.chunk_number;
}

bool SpanFollower::IsRead(const ChunkPlaces::Place& place) const {
  if (!place.is_final) return false;
  ChunkHeader header = {};
  return read_(place.offset, reinterpret_cast<char*>(&header), sizeof(header)) != sizeof(header) ||
         header.magic != kChunkMagic || header.chunk_number == place.number;
}

bool SpanFollower::LookAt(size_t begin, size_t end, size_t* bytes_left, std::vector<Image>* images) {
  for (size_t i = begin; i < end; ++i) {
    ChunkPlaces::Place& place = places_.place(i);
    if (place.round == round_) continue;
    if (!IsRead(place)) {
      if (*bytes_left < place.size_bytes) return false;
      Image image;
      image.place_idx = i;
      const bool is_read = ReadImage(place, &image);
      if (!is_read || image.header.kind == kRecordChunk) *bytes_left -= place.size_bytes;
      if (is_read) places_.Update(i, image.header);
      if (is_read && image.header.kind == kRecordChunk) images->push_back(std::move(image));
    }
    place.round = round_;
  }
  return true;
}

// A thread's place lies before the copies of what was in it earlier. In more readings than one these come first, in the
// file's order, which is the threads': requests end after they have begun, and the newest values are the newest
// chunk's.
bool SpanFollower::LookAtCopies(size_t* bytes_left, std::vector<Image>* images) {
  for (size_t i = 0; i < places_.places().size(); ++i) {
    ChunkHeader header = {};
    const bool is_head =
        read_(places_.place(i).offset, reinterpret_cast<char*>(&header), sizeof(header)) == sizeof(header);
    if (is_head && IsChunk(header) && header.is_copy == 1 && !LookAt(i, i + 1, bytes_left, images)) return false;
  }
  return places_.searched_bytes() >= header_.used_bytes;
}

void SpanFollower::PutBackPlacesOfThreads(std::vector<Image>* images) {
  std::erase_if(*images, [&](const Image& image) {
    if (image.header.is_copy == 1) return false;
    places_.place(image.place_idx).round = round_ - 1;
    return true;
  });
}

// Chunks are numbered without a gap. One may be seen late, as it was begun between two of our looks; one that is not
// seen in the third round was overwritten.
void SpanFollower::SeeNumbers(const std::vector<Image>& images) {
  if (header_.keeps_newest == 0) return;
  if (highest_number_ == 0) first_round_ = round_;
  const bool is_first = first_round_ == round_;
  const auto see = [&](uint64_t number) {
    if (number > highest_number_) {
      const uint64_t gap = number - highest_number_ - 1;
      // If the file existed before we did, or if its counts are wrong, it is not known what is missing.
      if (!is_first && gap <= kMostUnseen - std::min(kMostUnseen, unseen_numbers_.size())) {
        for (uint64_t i = 1; i <= gap; ++i) unseen_numbers_.emplace(highest_number_ + i, 0);
      }
      highest_number_ = number;
    }
    unseen_numbers_.erase(number);
  };
  for (const Image& image : images) see(image.header.chunk_number);
  for (const ChunkPlaces::Place& place : places_.places()) {
    if (place.number != 0) see(place.number);
  }
}

void SpanFollower::EndRound(Followed* followed) {
  // Between its place and its copy a chunk may be out of sight for a round.
  std::erase_if(chunks_, [&](const auto& entry) {
    const auto& [number, chunk] = entry;
    if (round_ - chunk.round < kForgetAfter) return false;
    for (const uint32_t slot : chunk.open) followed->missed_count += open_.erase(number << kSlotBits | slot);
    open_slot_count_ -= chunk.open.size();
    return true;
  });
  for (auto unseen = unseen_numbers_.begin(); unseen != unseen_numbers_.end();) {
    if (++unseen->second < kForgetAfter) {
      ++unseen;
      continue;
    }
    followed->missed_count += (kMostChunkBytes - sizeof(ChunkHeader)) / sizeof(Slot);
    unseen = unseen_numbers_.erase(unseen);
  }
  if (header_.keeps_newest == 0) places_.ForgetFinal();
  ++round_;
}

void SpanFollower::ReadNames() {
  size_t bytes_left = kMostReadBytes;
  for (size_t i = 0; i < places_.places().size(); ++i) {
    ChunkPlaces::Place& place = places_.place(i);
    ChunkHeader header = {};
    if (read_(place.offset, reinterpret_cast<char*>(&header), sizeof(header)) != sizeof(header)) continue;
    if (!IsChunk(header) || header.kind != kNameChunk || header.size_bytes > place.size_bytes) continue;
    if (place.name_bytes >= header.size_bytes) continue;
    const size_t rest = header.size_bytes - place.name_bytes;
    if (rest > bytes_left) return;
    bytes_left -= rest;
    ReadNames(header.size_bytes, &place);
  }
}

void SpanFollower::ReadNames(uint32_t size_bytes, ChunkPlaces::Place* place) {
  uint32_t& done = place->name_bytes;
  std::string bytes(size_bytes - done, '\0');
  if (read_(place->offset + done, bytes.data(), bytes.size()) != bytes.size()) return;
  std::string_view rest = bytes;
  while (rest.size() >= sizeof(uint64_t)) {
    uint64_t head = 0;
    std::memcpy(&head, rest.data(), sizeof(head));
    const auto number = static_cast<uint32_t>(head);
    const uint64_t length = head >> 32;
    const uint64_t whole = sizeof(head) + ((length + 7) & ~uint64_t{7});
    if (number == 0 || length > kMostNameBytes || whole > rest.size()) return;
    if (names_.size() < kMostNames && name_text_bytes_ < kMostNameTextBytes &&
        names_.try_emplace(number, ValidUtf8(rest.substr(sizeof(head), length))).second) {
      name_text_bytes_ += length;
    }
    rest.remove_prefix(whole);
    done += static_cast<uint32_t>(whole);
  }
}

Result<Followed> SpanFollower::ReadOn() {
  RETURN_IF_ERROR(ReadHeader());
  const bool has_ended = header_.end.tick != 0;  // What is read from here on is all.
  std::vector<Image> images;
  size_t bytes_left = kMostReadBytes;
  const auto search = [&]() -> Status {
    RETURN_IF_ERROR(ReadHeader());
    places_.Search(read_, header_.used_bytes);
    return {};
  };
  // Threads' places before the end of the file: whatever had been copied there when a place was used again is found
  // after it, so that no record falls between.
  bool is_whole = true;
  if (is_behind_) {
    RETURN_IF_ERROR(search());
    is_whole = LookAtCopies(&bytes_left, &images);
  }
  const size_t known = places_.places().size();
  is_whole = is_whole && LookAt(0, known, &bytes_left, &images);
  RETURN_IF_ERROR(search());
  is_whole = is_whole && LookAt(known, places_.places().size(), &bytes_left, &images);
  if (!is_whole && !is_behind_) PutBackPlacesOfThreads(&images);
  is_behind_ = ++reading_count_ > 1 || !is_whole;
  if (is_whole) reading_count_ = 0;
  // Names last: those of all these records were written before them. Records in what is found now have the next time.
  RETURN_IF_ERROR(search());
  ReadNames();

  Followed followed;
  followed.dropped_count = header_.dropped_records;
  for (const Image& image : images) {
    SeeAnchor(image.header.anchor);
    for (size_t i = 0; i < image.slots.size(); i += kSlotCounts[image.slots[i].kind()]) {
      const Slot& slot = image.slots[i];
      if (slot.kind() != kAnchor) continue;
      SeeAnchor({slot.tick, static_cast<int64_t>(image.slots[i + 1].tick),
                 static_cast<int64_t>(image.slots[i + 1].word), slot.payload()});
    }
  }
  // In the first fraction of a millisecond the length of a tick is not known; the record is read the next time.
  if (!KnowsRate()) {
    places_ = {};
    is_behind_ = true;
    return followed;
  }
  // Two may have one number: one is the other's copy.
  std::stable_sort(images.begin(), images.end(), [](const Image& a, const Image& b) {
    return std::pair(a.header.chunk_number, a.slots.size()) < std::pair(b.header.chunk_number, b.slots.size());
  });
  for (const Image& image : images) Take(image, &followed);
  // A request may be ended by another thread than the one that began it.
  std::stable_sort(followed.requests.begin(), followed.requests.end(),
                   [](const FollowedRequest& a, const FollowedRequest& b) { return a.time_ns < b.time_ns; });
  SeeNumbers(images);
  // What was not looked at is not missing.
  if (is_whole) EndRound(&followed);
  followed.has_more = !is_whole;
  if (is_whole) followed.open = OpenInStep();
  followed.has_ended = has_ended && is_whole;
  return followed;
}

void SpanFollower::Take(const Image& image, Followed* followed) {
  const uint64_t number = image.header.chunk_number;
  Chunk& chunk = chunks_[number];
  chunk.round = round_;
  open_slot_count_ -= std::erase_if(chunk.open, [&](uint32_t slot_idx) {
    if (slot_idx >= image.slots.size()) return false;
    const Slot& slot = image.slots[slot_idx];
    if (slot.payload() == kOpen) return false;
    if (slot.payload() < kLong) Finish(number << kSlotBits | slot_idx, slot.tick + slot.payload(), followed);
    return true;
  });
  for (size_t i = chunk.slot_count; i < image.slots.size(); i += kSlotCounts[image.slots[i].kind()]) {
    TakeRecord(image, i, &chunk, followed);
    ++followed->record_count;
  }
  chunk.slot_count = std::max(chunk.slot_count, static_cast<uint32_t>(image.slots.size()));
  // Spans that are open in a copy end by a record of their own. The chunk itself may be seen once more.
  if (image.header.is_copy == 1) {
    open_slot_count_ -= chunk.open.size();
    chunk.open.clear();
  }
}

void SpanFollower::TakeRecord(const Image& image, size_t slot_idx, Chunk* chunk, Followed* followed) {
  const Slot& slot = image.slots[slot_idx];
  const auto second = [&] { return image.slots[slot_idx + 1]; };
  switch (slot.kind()) {
    case kSpan:
    case kStep: {
      const uint64_t place = image.header.chunk_number << kSlotBits | slot_idx;
      OpenSpan open = {image.header.thread_id, slot.name(), slot.tick, std::nullopt};
      if (slot.kind() == kStep) open.step = static_cast<int64_t>(second().tick);
      if (slot.payload() < kLong) {
        Emit(open, slot.tick + slot.payload(), followed);
        return;
      }
      if (const auto early = early_ends_.extract(place); !early.empty()) {
        Emit(open, early.mapped(), followed);
        return;
      }
      open_.insert_or_assign(place, open);
      if (open_.size() > kMostOpen) {
        open_.erase(open_.begin());
        ++followed->missed_count;
      }
      if (slot.payload() == kOpen && open_slot_count_ < kMostOpen) {
        chunk->open.push_back(static_cast<uint32_t>(slot_idx));
        ++open_slot_count_;
      }
      return;
    }
    case kEnd: Finish(second().tick, slot.tick, followed); return;
    case kCounterInteger:
      followed->counters.push_back({slot.name(), ToWall(slot.tick), static_cast<double>(slot.payload())});
      return;
    case kCounter:
      if (const double value = DoubleOf(second().tick); std::isfinite(value)) {
        followed->counters.push_back({slot.name(), ToWall(slot.tick), value});
      }
      return;
    case kRequestBegin:
      followed->requests.push_back(
          {FollowedRequest::Kind::kBegin, second().tick, slot.name(), ToWall(slot.tick), 0, false});
      return;
    case kRequestOutput:
      followed->requests.push_back(
          {FollowedRequest::Kind::kOutput, second().tick, 0, ToWall(slot.tick), second().word, false});
      return;
    case kRequestEnd:
      followed->requests.push_back(
          {FollowedRequest::Kind::kEnd, second().tick, 0, ToWall(slot.tick), 0, slot.payload() != 0});
      return;
    default: return;  // Marks, links; anchors were seen.
  }
}

void SpanFollower::Finish(uint64_t place, uint64_t end_tick, Followed* followed) {
  if (const auto open = open_.extract(place); !open.empty()) {
    Emit(open.mapped(), end_tick, followed);
    return;
  }
  early_ends_.insert_or_assign(place, end_tick);
  if (early_ends_.size() > kMostOpen) early_ends_.erase(early_ends_.begin());
}

std::vector<FollowedSpan> SpanFollower::OpenInStep() const {
  std::vector<FollowedSpan> spans;
  const auto newest = std::find_if(open_.rbegin(), open_.rend(), [](const auto& entry) { return entry.second.step; });
  if (newest == open_.rend()) return spans;
  const OpenSpan& step = newest->second;
  // What began before it and is still open encloses it, or its end was lost.
  for (auto at = open_.find(newest->first); at != open_.end(); ++at) {
    const OpenSpan& span = at->second;
    if (span.thread_id == step.thread_id) spans.push_back({span.thread_id, span.name, ToWall(span.tick), 0});
  }
  return spans;
}

void SpanFollower::Emit(const OpenSpan& span, uint64_t end_tick, Followed* followed) {
  end_tick = std::max(end_tick, span.tick);
  int64_t start_ns = ToWall(span.tick);
  // Two steps that touch may overlap by what was rounded, or by what a newer anchor moved.
  if (span.step && span.tick >= last_step_end_tick_) start_ns = std::max(start_ns, last_step_end_ns_);
  const int64_t duration_ns = std::min(ToNs(end_tick - span.tick), INT64_MAX - std::max<int64_t>(start_ns, 0));
  if (!span.step) {
    followed->spans.push_back({span.thread_id, span.name, start_ns, duration_ns});
    return;
  }
  if (end_tick >= last_step_end_tick_) {
    last_step_end_tick_ = end_tick;
    last_step_end_ns_ = start_ns + duration_ns;
  }
  followed->steps.push_back({span.thread_id, *span.step, start_ns, duration_ns});
}

}  // namespace lockstep::ingest::span_follow
