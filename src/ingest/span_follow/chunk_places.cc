#include "ingest/span_follow/chunk_places.h"

#include <algorithm>

namespace lockstep::ingest::span_follow {
namespace {

using span_trace::ChunkHeader;
using span_trace::kPageBytes;

// A file of lies may not make us remember more: 1 GiB of whole chunks, and as many threads again.
constexpr size_t kMostPlaces = 1 << 16;
constexpr size_t kMostRuns = 1 << 10;
constexpr uint64_t kMostSearchedBytes = uint64_t{64}
                                        << 20;  // Free, they take a hundredth of a second; then the next time.
constexpr size_t kMostPagesAgain = 64;          // Of a run that was free before: further ones are taken after these.

constexpr uint64_t NextPage(uint64_t offset) { return (offset / kPageBytes + 1) * kPageBytes; }

}  // namespace

bool IsChunk(const ChunkHeader& header) {
  return header.magic == span_trace::kChunkMagic && header.size_bytes >= sizeof(ChunkHeader) &&
         header.size_bytes <= span_trace::kMostChunkBytes && header.size_bytes % sizeof(span_trace::Slot) == 0 &&
         (header.kind == span_trace::kRecordChunk || header.kind == span_trace::kNameChunk);
}

bool ChunkPlaces::AddAt(const ReadAt& read, uint64_t offset, uint64_t end) {
  ChunkHeader header = {};
  if (places_.size() == kMostPlaces || end - offset < sizeof(header)) return false;
  if (read(offset, reinterpret_cast<char*>(&header), sizeof(header)) != sizeof(header)) return false;
  if (!IsChunk(header) || header.size_bytes > end - offset) return false;
  places_.push_back({offset, header.size_bytes});
  return true;
}

// Room is taken in order and filled in any: behind a page that is still free a chunk may be whole already.
void ChunkPlaces::SearchRun(const ReadAt& read, const Run& run, size_t most_pages, std::vector<Run>* left) {
  uint64_t free_begin = run.begin;
  uint64_t at = run.begin;
  size_t pages = 0;
  while (at < run.end && pages < most_pages) {
    if (AddAt(read, at, run.end)) {
      if (free_begin < at) left->push_back({free_begin, at});
      at += places_.back().size_bytes;
      free_begin = at;
    } else {
      at = std::min(NextPage(at), run.end);
      ++pages;
    }
  }
  if (free_begin < run.end) left->push_back({free_begin, run.end});
}

void ChunkPlaces::Search(const ReadAt& read, uint64_t used_bytes) {
  std::vector<Run> left;
  for (const Run& run : free_) SearchRun(read, run, kMostPagesAgain, &left);
  if (searched_ < used_bytes) {
    const uint64_t end = std::min(used_bytes, searched_ + kMostSearchedBytes);
    SearchRun(read, {searched_, end}, SIZE_MAX, &left);
    searched_ = end;
  }
  // Many short rests of chunks: the first are the oldest, and will not be filled any more.
  if (left.size() > kMostRuns) left.erase(left.begin(), left.end() - kMostRuns);
  free_ = std::move(left);
}

void ChunkPlaces::Update(size_t place, const ChunkHeader& header) {
  Place& there = places_[place];
  there.is_final = header.is_copy == 1;
  there.number = header.chunk_number;
  if (header.size_bytes >= there.size_bytes) return;
  if (free_.size() < kMostRuns) free_.push_back({there.offset + header.size_bytes, there.offset + there.size_bytes});
  there.size_bytes = header.size_bytes;
}

void ChunkPlaces::ForgetFinal() {
  std::erase_if(places_, [](const Place& place) { return place.is_final; });
}

}  // namespace lockstep::ingest::span_follow
