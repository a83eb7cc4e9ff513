#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/agent/history/frame.h"

namespace lockstep::agent {

/// Which of two histories: one that looks often and is short, one that looks seldom and is long.
enum class HistoryTier : uint8_t { kFine, kCoarse };
inline constexpr size_t kHistoryTiers = 2;

class HistoryView;

/// Samples and events of two tiers in one file of bounded size: docs/formats/history.md. Blocks of 64 KiB that are
/// used again, the oldest first; a tier has at most half of them. What is appended is in the kernel's hands when the
/// call returns, so that a killed process loses nothing of it. Whatever the file holds, what is not a frame of ours is
/// as if it were not there. Not thread-safe.
class HistoryFile {
 public:
  struct Options {
    std::string path;
    uint64_t limit_bytes = uint64_t{16} << 20;        ///< kLeastBytes at least.
    std::array<int64_t, kHistoryTiers> keep_ms = {};  ///< What is older may be written over, and is not read.
  };
  static constexpr size_t kBlockBytes = size_t{64} << 10;
  static constexpr uint64_t kLeastBytes = 8 * kBlockBytes;

  /// Finds again what is there, or makes a new file. `problem`, where it is not null, gets a line when what was there
  /// could not be used. Errors: kIo, kPermissionDenied: no file can be had.
  static Result<std::unique_ptr<HistoryFile>> Open(const Options& options, int64_t now_ms, std::string* problem);

  /// Errors: kIo (no room): what did not fit is left out, and the next call tries again.
  Status Append(HistoryTier tier, int64_t now_ms, const std::vector<HistorySample>& samples,
                const std::vector<control::HistoryEvent>& events);

  /// What there is to read now.
  HistoryView View() const;

  uint64_t bytes() const;  ///< Of the file.
  uint64_t limit_bytes() const { return options_.limit_bytes; }

 private:
  friend class HistoryView;
  struct Block {
    uint64_t sequence = 0;  ///< 0: empty.
    HistoryTier tier = HistoryTier::kFine;
    size_t used_bytes = 0;
    int64_t first_ms = 0;
    int64_t last_ms = 0;
  };
  struct Writer {
    std::optional<size_t> block;  ///< That is appended to.
    HistoryFrameState state;
  };

  HistoryFile(const Options& options, UniqueFd fd) : options_(options), fd_(std::move(fd)) {}
  bool HasOurHeader() const;
  Status Begin();
  void Scan(int64_t now_ms);
  /// The frames of a block, as far as they are sound; returns how many bytes these take.
  size_t ForEachFrame(size_t block_idx, const std::function<bool(std::string_view frame)>& take,
                      Block* found = nullptr) const;
  size_t ChooseBlock(HistoryTier tier, int64_t now_ms) const;
  Status Write(HistoryTier tier, int64_t now_ms, std::string_view frame, bool begins_block);
  int64_t KeepMs(HistoryTier tier) const { return options_.keep_ms.at(static_cast<size_t>(tier)); }

  const Options options_;
  const UniqueFd fd_;
  std::vector<Block> blocks_;
  uint64_t newest_sequence_ = 0;
  std::array<Writer, kHistoryTiers> writers_;
};

/// What a file had at one moment. May be read by another thread while the file is written: blocks that were used again
/// since are left out. The file must be there as long.
class HistoryView {
 public:
  /// Hands out frames of a tier within [since_ms, until_ms), in the order of writing; one instant may be several.
  struct Visitor {
    std::function<void(int64_t time_ms, const HistoryFrameState::Series& series)> sample = nullptr;
    std::function<void(control::HistoryEvent event)> event = nullptr;
  };
  void Read(HistoryTier tier, int64_t since_ms, int64_t until_ms, const Visitor& visitor) const;
  /// When the oldest frame of a tier was written that is still kept; nullopt: there is none.
  std::optional<int64_t> OldestMs(HistoryTier tier, int64_t now_ms) const;

 private:
  friend class HistoryFile;
  HistoryView(const HistoryFile* file, std::vector<HistoryFile::Block> blocks)
      : file_(file), blocks_(std::move(blocks)) {}

  const HistoryFile* file_;
  std::vector<HistoryFile::Block> blocks_;
};

}  // namespace lockstep::agent
