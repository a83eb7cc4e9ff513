#include "node/agent/history/history_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>

namespace lockstep::agent {
namespace {

// The file begins with this, and blocks follow it; all numbers are the machine's own (little-endian).
struct FileHeader {
  char magic[8] = {'L', 'K', 'H', 'I', 'S', 'T', '0', '1'};
  uint32_t block_bytes = HistoryFile::kBlockBytes;
  uint32_t fingerprint = 0;
};
constexpr size_t kHeaderBytes = 4096;

struct BlockHeader {
  uint64_t sequence = 0;
  uint32_t tier = 0;
  uint32_t check = 0;  ///< Of the two before it.
};
struct FrameHeader {
  uint32_t length = 0;
  uint32_t check =
      0;  ///< Of the block's sequence, the place in it and the frame: what an older use left there is none.
};

uint32_t CheckOf(const BlockHeader& header) {
  boost::crc_32_type crc;
  crc.process_bytes(&header.sequence, sizeof(header.sequence));
  crc.process_bytes(&header.tier, sizeof(header.tier));
  return crc.checksum();
}

uint32_t CheckOf(uint64_t sequence, uint64_t place, std::string_view frame) {
  boost::crc_32_type crc;
  crc.process_bytes(&sequence, sizeof(sequence));
  crc.process_bytes(&place, sizeof(place));
  crc.process_bytes(frame.data(), frame.size());
  return crc.checksum();
}

template <typename T>
void Put(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
bool Get(std::string_view bytes, size_t at, T* value) {
  if (at > bytes.size() || bytes.size() - at < sizeof(*value)) return false;
  std::memcpy(value, bytes.data() + at, sizeof(*value));
  return true;
}

off_t PlaceOf(size_t block_idx) { return static_cast<off_t>(kHeaderBytes + block_idx * HistoryFile::kBlockBytes); }

/// As much as there is.
std::string ReadAt(const UniqueFd& fd, off_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  size_t used = 0;
  while (used < bytes) {
    const ssize_t got = ::pread(fd.get(), text.data() + used, bytes - used, offset + static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  text.resize(used);
  return text;
}

Status WriteAt(const UniqueFd& fd, off_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd.get(), bytes.data(), bytes.size(), offset);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return Error{ErrorCode::kIo, fmt::format("history cannot be written: {}", std::strerror(errno))};
    bytes.remove_prefix(static_cast<size_t>(wrote));
    offset += wrote;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<HistoryFile>> HistoryFile::Open(const Options& options, int64_t now_ms, std::string* problem) {
  // Links are not followed, and a FIFO or device in its place is not opened.
  UniqueFd fd(::open(options.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat info = {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return Error{errno == EACCES || errno == EPERM ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
                 fmt::format("history cannot be opened: {}", std::strerror(errno)), options.path};
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kIo, "history is not a regular file: remove it, and the daemon makes a new one",
                 options.path};
  }
  std::unique_ptr<HistoryFile> file(new HistoryFile(options, std::move(fd)));
  if (info.st_size == 0 || !file->HasOurHeader()) {
    if (info.st_size != 0 && problem != nullptr) {
      *problem = options.path + ": is not a history of this version: a new one was begun";
    }
    RETURN_IF_ERROR(file->Begin());
    return file;
  }
  file->Scan(now_ms);
  return file;
}

bool HistoryFile::HasOurHeader() const {
  const std::string bytes = ReadAt(fd_, 0, sizeof(FileHeader));
  FileHeader found;
  const FileHeader expected{.fingerprint = FiguresFingerprint()};
  return Get(bytes, 0, &found) && std::memcmp(found.magic, expected.magic, sizeof(found.magic)) == 0 &&
         found.block_bytes == expected.block_bytes && found.fingerprint == expected.fingerprint;
}

Status HistoryFile::Begin() {
  if (::ftruncate(fd_.get(), 0) != 0) {
    return Error{ErrorCode::kIo, fmt::format("history cannot be begun: {}", std::strerror(errno)), options_.path};
  }
  std::string bytes;
  Put(FileHeader{.fingerprint = FiguresFingerprint()}, &bytes);
  bytes.resize(kHeaderBytes, '\0');
  return WriteAt(fd_, 0, bytes);
}

void HistoryFile::Scan(int64_t now_ms) {
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0) return;
  const size_t most = (options_.limit_bytes - kHeaderBytes) / kBlockBytes;
  const size_t there = info.st_size <= static_cast<off_t>(kHeaderBytes)
                           ? 0
                           : (static_cast<size_t>(info.st_size) - kHeaderBytes + kBlockBytes - 1) / kBlockBytes;
  // A limit that is smaller now: what lies beyond it goes.
  if (there > most && ::ftruncate(fd_.get(), PlaceOf(most)) != 0) return;
  blocks_.resize(std::min(there, most));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    int64_t time_ms = 0;
    bool is_first = true;
    block.used_bytes = ForEachFrame(
        i,
        [&](std::string_view frame) {
          const std::optional<int64_t> at_ms = FrameTime(frame, time_ms);
          if (!at_ms) return false;
          time_ms = *at_ms;
          if (is_first) block.first_ms = time_ms;
          is_first = false;
          block.last_ms = time_ms;
          return true;
        },
        &block);
    newest_sequence_ = std::max(newest_sequence_, block.sequence);
  }
  // Go on where the newest blocks end.
  for (size_t tier = 0; tier < kHistoryTiers; ++tier) {
    std::optional<size_t> newest;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].sequence == 0 || blocks_[i].tier != static_cast<HistoryTier>(tier)) continue;
      if (!newest || blocks_[*newest].sequence < blocks_[i].sequence) newest = i;
    }
    if (!newest || blocks_[*newest].last_ms < now_ms - options_.keep_ms.at(tier)) continue;
    HistoryFrameState state;
    bool is_sound = true;
    ForEachFrame(*newest, [&](std::string_view frame) { return is_sound = DecodeFrame(frame, {}, &state); });
    if (!is_sound) continue;  // A new block is begun.
    for (size_t i = 0; i < state.series.size(); ++i) {
      state.places.emplace(FrameKey(state.series[i].kind, state.series[i].labels), i);
    }
    writers_.at(tier) = {newest, std::move(state)};
  }
}

size_t HistoryFile::ForEachFrame(size_t block_idx, const std::function<bool(std::string_view frame)>& take,
                                 Block* found) const {
  const std::string bytes = ReadAt(fd_, PlaceOf(block_idx), kBlockBytes);
  BlockHeader header;
  if (!Get(bytes, 0, &header) || header.check != CheckOf(header) || header.sequence == 0 ||
      header.tier >= kHistoryTiers) {
    return 0;
  }
  if (found != nullptr) {
    found->sequence = header.sequence;
    found->tier = static_cast<HistoryTier>(header.tier);
  }
  size_t at = sizeof(header);
  FrameHeader frame;
  while (Get(bytes, at, &frame)) {
    const size_t begin = at + sizeof(frame);
    if (frame.length == 0 || frame.length > bytes.size() - begin) break;
    const std::string_view content = std::string_view(bytes).substr(begin, frame.length);
    if (frame.check != CheckOf(header.sequence, at, content) || !take(content)) break;
    at = begin + frame.length;
  }
  return at;
}

size_t HistoryFile::ChooseBlock(HistoryTier tier, int64_t now_ms) const {
  const size_t most = (options_.limit_bytes - kHeaderBytes) / kBlockBytes;
  std::optional<size_t> expired, oldest;
  size_t of_tier = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const bool is_written = std::any_of(writers_.begin(), writers_.end(),
                                        [&](const Writer& writer) { return writer.block == i && block.tier != tier; });
    if (is_written) continue;
    const bool is_over = block.sequence == 0 || block.last_ms < now_ms - KeepMs(block.tier);
    if (is_over && (!expired || block.sequence < blocks_[*expired].sequence)) expired = i;
    if (block.sequence == 0 || block.tier != tier) continue;
    ++of_tier;
    if (!oldest || block.sequence < blocks_[*oldest].sequence) oldest = i;
  }
  if (expired) return *expired;
  if ((of_tier < most / kHistoryTiers && blocks_.size() < most) || !oldest) return blocks_.size();
  return *oldest;
}

Status HistoryFile::Write(HistoryTier tier, int64_t now_ms, std::string_view frame, bool begins_block) {
  Writer& writer = writers_.at(static_cast<size_t>(tier));
  std::string bytes;
  size_t at = 0;
  size_t idx = 0;
  Block block;
  if (begins_block) {
    idx = ChooseBlock(tier, now_ms);
    block = {.sequence = newest_sequence_ + 1, .tier = tier, .used_bytes = 0, .first_ms = now_ms, .last_ms = now_ms};
    BlockHeader header{.sequence = block.sequence, .tier = static_cast<uint32_t>(tier)};
    header.check = CheckOf(header);
    Put(header, &bytes);
  } else {
    idx = *writer.block;
    block = blocks_[idx];
    at = block.used_bytes;
  }
  const size_t place = at + bytes.size();
  Put(FrameHeader{.length = static_cast<uint32_t>(frame.size()), .check = CheckOf(block.sequence, place, frame)},
      &bytes);
  bytes.append(frame);
  block.used_bytes = at + bytes.size();
  block.last_ms = now_ms;
  // Nothing is believed of what was there while its bytes change; an append that fails leaves what is before it.
  if (begins_block && idx < blocks_.size()) blocks_[idx] = {};
  writer.block.reset();
  RETURN_IF_ERROR(WriteAt(fd_, PlaceOf(idx) + static_cast<off_t>(at), bytes));
  if (idx == blocks_.size()) blocks_.emplace_back();
  blocks_[idx] = block;
  newest_sequence_ = std::max(newest_sequence_, block.sequence);
  writer.block = idx;
  return {};
}

Status HistoryFile::Append(HistoryTier tier, int64_t now_ms, const std::vector<HistorySample>& samples,
                           const std::vector<control::HistoryEvent>& events) {
  Writer& writer = writers_.at(static_cast<size_t>(tier));
  std::span<const HistorySample> samples_left(samples);
  std::span<const control::HistoryEvent> events_left(events);
  while (!samples_left.empty() || !events_left.empty()) {
    const auto samples_before = samples_left;
    const auto events_before = events_left;
    bool begins_block = !writer.block || writer.state.series.size() >= kMostBlockSeries;
    if (begins_block) writer.state = {};
    std::string frame = EncodeFrame(now_ms, &samples_left, &events_left, &writer.state);
    if (!begins_block && blocks_[*writer.block].used_bytes + sizeof(FrameHeader) + frame.size() > kBlockBytes) {
      // The next block is independent: it repeats all values, because there is no earlier frame in it to compare with.
      begins_block = true;
      writer.state = {};
      samples_left = samples_before;
      events_left = events_before;
      frame = EncodeFrame(now_ms, &samples_left, &events_left, &writer.state);
    }
    RETURN_IF_ERROR(Write(tier, now_ms, frame, begins_block));
  }
  return {};
}

HistoryView HistoryFile::View() const { return {this, blocks_}; }

void HistoryView::Read(HistoryTier tier, int64_t since_ms, int64_t until_ms, const Visitor& visitor) const {
  std::vector<size_t> order;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const HistoryFile::Block& block = blocks_[i];
    if (block.sequence != 0 && block.tier == tier && block.last_ms >= since_ms) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks_[a].sequence < blocks_[b].sequence; });
  for (const size_t i : order) {
    HistoryFrameState state;
    HistoryFrameReader reader;
    const auto is_asked = [&] { return state.time_ms >= since_ms && state.time_ms < until_ms; };
    if (visitor.sample) {
      reader.sample = [&](size_t idx) {
        if (is_asked()) visitor.sample(state.time_ms, state.series[idx]);
      };
    }
    if (visitor.event) {
      reader.event = [&](control::HistoryEvent event) {
        if (is_asked()) visitor.event(std::move(event));
      };
    }
    HistoryFile::Block found;
    file_->ForEachFrame(
        i,
        [&](std::string_view frame) {
          return found.sequence == blocks_[i].sequence && DecodeFrame(frame, reader, &state);
        },
        &found);
  }
}

std::optional<int64_t> HistoryView::OldestMs(HistoryTier tier, int64_t now_ms) const {
  std::optional<int64_t> oldest_ms;
  for (const HistoryFile::Block& block : blocks_) {
    if (block.sequence == 0 || block.tier != tier || block.last_ms < now_ms - file_->KeepMs(tier)) continue;
    oldest_ms = std::min(oldest_ms.value_or(block.first_ms), block.first_ms);
  }
  if (oldest_ms) oldest_ms = std::max(*oldest_ms, now_ms - file_->KeepMs(tier));
  return oldest_ms;
}

uint64_t HistoryFile::bytes() const { return kHeaderBytes + blocks_.size() * kBlockBytes; }

}  // namespace lockstep::agent
