#include "ingest/bytes/prefetch_source.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kPrefetchBytes = size_t{256} << 10;
constexpr size_t kBlockCount = 3;

class PrefetchSource final : public ByteSource {
 public:
  explicit PrefetchSource(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), total_bytes_(source_->total_bytes()), compression_(source_->compression()) {
    for (Block& block : blocks_) block.bytes = std::make_unique_for_overwrite<char[]>(kPrefetchBytes);
    reader_ = std::jthread([this](std::stop_token stop) { ReadAhead(stop); });
  }

  Result<size_t> Read(std::span<char> window) override {
    size_t filled = 0;
    while (filled < window.size()) {
      Block& block = blocks_[taking_ % kBlockCount];
      if (offset_ == 0) {
        MutexLock lock(mutex_);
        changed_.wait(lock, [this]() LOCKSTEP_REQUIRES(mutex_) { return taking_ < filled_count_; });
      }
      // The end and an error stay in their block, for the calls to come.
      if (block.size == 0) {
        if (filled == 0 && block.error) return *block.error;
        return filled;
      }
      const size_t count = std::min(window.size() - filled, block.size - offset_);
      std::memcpy(window.data() + filled, block.bytes.get() + offset_, count);
      filled += count;
      offset_ += count;
      if (offset_ == block.size) {
        offset_ = 0;
        {
          const MutexLock lock(mutex_);
          ++taking_;
        }
        changed_.notify_all();
      }
    }
    return filled;
  }

  uint64_t consumed_bytes() const override { return consumed_bytes_.load(std::memory_order_relaxed); }
  uint64_t total_bytes() const override { return total_bytes_; }
  Compression compression() const override { return compression_; }

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;  // 0 = the end, or `error`.
    std::optional<Error> error = {};
  };

  void ReadAhead(const std::stop_token& stop) {
    for (size_t filling = 0;; ++filling) {
      {
        MutexLock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return filling < taking_ + kBlockCount; })) return;
      }
      Block& block = blocks_[filling % kBlockCount];
      Fill(block);
      {
        const MutexLock lock(mutex_);
        filled_count_ = filling + 1;
      }
      changed_.notify_all();
      if (block.size == 0 || stop.stop_requested()) return;
    }
  }

  void Fill(Block& block) {
    block.size = 0;
    try {
      auto got = source_->Read({block.bytes.get(), kPrefetchBytes});
      if (got) {
        block.size = *got;
      } else {
        block.error = std::move(got).error();
      }
    } catch (const std::exception& failure) {
      block.error = Error{.code = ErrorCode::kIo, .message = std::string("cannot be read: ") + failure.what()};
    }
    consumed_bytes_.store(source_->consumed_bytes(), std::memory_order_relaxed);
  }

  // The reading thread's, after construction.
  std::unique_ptr<ByteSource> source_;
  const uint64_t total_bytes_;
  const Compression compression_;
  std::atomic<uint64_t> consumed_bytes_ = 0;

  // Blocks [taking_, filled_count_) belong to the caller, the others to the reading thread.
  std::array<Block, kBlockCount> blocks_;
  size_t offset_ = 0;  // The caller's place in its first block.
  Mutex mutex_;
  std::condition_variable_any changed_;
  size_t taking_ = 0;  // Written by the caller under mutex_.
  size_t filled_count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;

  std::jthread reader_;  // Last: it is joined before anything it uses goes.
};

}  // namespace

std::unique_ptr<ByteSource> Prefetch(std::unique_ptr<ByteSource> source) {
  return std::make_unique<PrefetchSource>(std::move(source));
}

}  // namespace lockstep::ingest
