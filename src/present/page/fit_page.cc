#include "present/page/fit_page.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/mutex.h"
#include "present/page/data_blocks.h"
#include "present/page/page_template.h"
#include "present/page/parallel.h"

namespace lockstep::page {
namespace {

constexpr uint64_t kTagBytes = 120;
constexpr size_t kSampledRanks = 8;
constexpr uint64_t kFewestEventsPerRank = 20;  // Fewer tell nothing: the page does without.
constexpr int kThinningTries = 3;
constexpr int64_t kCoarseUnitNs = 100;
constexpr uint64_t kFewestBytesWithSql = uint64_t{4} << 20;  // SQLite takes half a MiB of it.

void SetEvents(bool taken, PageLimits* limits) {
  limits->python_events = taken;
  limits->cpu_events = taken;
  limits->device_events = taken;
}

/// What makes a page without single events smaller, in this order.
using Shrink = void (*)(PageLimits*);
constexpr Shrink kShrinks[] = {
    [](PageLimits* limits) { limits->sql = false; },
    [](PageLimits* limits) {
      limits->collective_instances = 10'000;
      limits->collective_members = 400'000;
    },
    [](PageLimits* limits) { limits->timeline_bytes = size_t{4} << 20; },
    [](PageLimits* limits) { limits->exact_step_cells = 0; },
    [](PageLimits* limits) {
      limits->name_rows = 500;
      limits->rank_columns = 0;
      limits->wait_pairs = 2'000;
      limits->path_steps = 500;
      limits->path_rows = 4'000;
      limits->path_pieces = 10'000;
      limits->table_rows = 1'000;
      limits->memory_points = 10'000;
      limits->counter_points = 10'000;
    },
    [](PageLimits* limits) {
      limits->collective_instances = 1'000;
      limits->collective_members = 20'000;
    },
    [](PageLimits* limits) { limits->timeline_bytes = size_t{1} << 20; },
    [](PageLimits* limits) { limits->step_cells = 200'000; },
    [](PageLimits* limits) {
      limits->collective_instances = 0;
      limits->timeline_bytes = 0;
      limits->step_cells = 20'000;
      limits->name_rows = 100;
      limits->wait_pairs = 200;
      limits->causes = 20;
      limits->path_steps = 20;
      limits->path_rows = 400;
      limits->path_pieces = 400;
      limits->table_rows = 100;
      limits->memory_points = 0;
      limits->counter_points = 0;
    },
};

/// How many events are how long, in steps of 1/256 of a power of two.
class LengthHistogram {
 public:
  void Add(int64_t length_ns) { ++counts_[Slot(length_ns)]; }
  /// The shortest length that at most `count` events have or exceed.
  int64_t LengthOfLongest(uint64_t count) const {
    uint64_t seen = 0;
    for (size_t slot = counts_.size(); slot-- > 0;) {
      seen += counts_[slot];
      if (seen > count) return Lowest(slot + 1);
    }
    return 0;
  }

 private:
  static constexpr int kFractionBits = 8;
  static size_t Slot(int64_t length_ns) {
    const auto length = static_cast<uint64_t>(std::max<int64_t>(length_ns, 0));
    const auto width = static_cast<int>(std::bit_width(length));
    if (width <= kFractionBits + 1) return static_cast<size_t>(length);
    const int shift = width - kFractionBits - 1;
    return (static_cast<size_t>(shift) << kFractionBits) + static_cast<size_t>(length >> shift);
  }
  static int64_t Lowest(size_t slot) {
    constexpr size_t kWhole = size_t{2} << kFractionBits;
    if (slot < kWhole) return static_cast<int64_t>(slot);
    const size_t shift = (slot >> kFractionBits) - 1;
    return static_cast<int64_t>(((slot & (kWhole / 2 - 1)) | (kWhole / 2)) << shift);
  }
  std::array<uint64_t, size_t{64} << kFractionBits> counts_ = {};
};

class PageFitter {
 public:
  PageFitter(const PageInput& input, uint64_t page_bytes, const PageProgress& on_progress)
      : input_(input), page_bytes_(page_bytes), on_progress_(on_progress) {}

  FittedPage Fit() {
    SetEvents(false, &limits_);
    limits_.sql = page_bytes_ >= kFewestBytesWithSql;
    std::vector<Block> base = MakeAll();
    for (const Shrink shrink : kShrinks) {
      if (BytesOf(base) <= page_bytes_) break;
      const PageLimits before = limits_;
      shrink(&limits_);
      std::vector<Block> smaller = MakeAll();
      if (BytesOf(smaller) < BytesOf(base) / 50 * 49) {
        base = std::move(smaller);
      } else {
        limits_ = before;  // What saves nothing is not left out.
      }
    }
    const uint64_t used = BytesOf(base);
    const bool found = used < page_bytes_ && FitEvents(page_bytes_ - used);
    if (!found) {
      SetEvents(false, &limits_);
      limits_.event_unit_ns = 1;
      events_.clear();
    }
    // The words of what was left out are known now.
    const PageBlocks page(input_, limits_);
    FittedPage fitted{.frame = page.Frame(), .blocks = {}, .reductions = page.reductions()};
    if (Result<Block> main = page.Make("main")) fitted.blocks.push_back(std::move(*main));
    for (Block& block : base) {
      if (block.name != "main") fitted.blocks.push_back(std::move(block));
    }
    for (Block& block : events_) fitted.blocks.push_back(std::move(block));
    return fitted;
  }

 private:
  std::vector<Block> MakeAll() {
    const PageBlocks page(input_, limits_);
    frame_bytes_ = PageTemplate(PageKind::kAnalyze).size() + page.Frame().summary_html.size() + 1024;
    return Make(page, page.names());
  }

  std::vector<Block> Make(const PageBlocks& page, const std::vector<std::string>& names) {
    std::vector<Block> blocks(names.size());
    all_ += names.size();
    ForEachIndex(names.size(), input_.options.thread_count, [&](size_t i) {
      if (Result<Block> block = page.Make(names[i])) blocks[i] = std::move(*block);
      const MutexLock lock(progress_mutex_);
      ++done_;
      if (on_progress_) on_progress_(done_, all_);
    });
    return blocks;
  }

  uint64_t BytesOf(const std::vector<Block>& blocks) const {
    uint64_t bytes = frame_bytes_;
    for (const Block& block : blocks) bytes += EmbeddedBytes(block);
    return bytes;
  }

  /// Single events in `room` bytes: all; without Python frames; without CPU threads; with rounded times; the longest.
  bool FitEvents(uint64_t room) {
    const bool has_device_events = std::any_of(input_.run.ranks.begin(), input_.run.ranks.end(),
                                               [](const auto& trace) { return trace.HasDeviceEvents(); });
    SetEvents(true, &limits_);
    if (TryEvents(room)) return true;
    limits_.python_events = false;
    if (TryEvents(room)) return true;
    if (has_device_events) {
      limits_.cpu_events = false;
      if (TryEvents(room)) return true;
    }
    limits_.event_unit_ns = kCoarseUnitNs;
    if (TryEvents(room)) return true;
    return ThinEvents(room);
  }

  /// Looks at a few ranks first; makes all blocks only where they promise to fit.
  bool TryEvents(uint64_t room) {
    const PageBlocks page(input_, limits_);
    std::vector<std::string> names;
    for (const std::string& name : page.names()) {
      if (name == "names" || name.starts_with("events-")) names.push_back(name);
    }
    if (names.empty()) return false;
    const double all = static_cast<double>(CountTaken(nullptr));
    if (names.size() > 2 * kSampledRanks) {
      std::vector<std::string> sampled;
      double sampled_count = 0;
      const size_t rank_count = names.size() - 1;
      for (size_t i = 0; i < kSampledRanks; ++i) {
        const size_t rank = i * rank_count / kSampledRanks;
        sampled.push_back(names[rank + 1]);
        sampled_count += static_cast<double>(CountTaken(&input_.run.ranks[rank]));
      }
      double bytes = 0;
      for (const Block& block : Make(page, sampled)) bytes += static_cast<double>(EmbeddedBytes(block));
      bytes_per_event_ = sampled_count > 0 ? bytes / sampled_count : 0;
      if (bytes_per_event_ * all > 1.05 * static_cast<double>(room)) return false;
    }
    events_ = Make(page, names);
    uint64_t bytes = 0;
    for (const Block& block : events_) bytes += EmbeddedBytes(block);
    bytes_per_event_ = all > 0 ? static_cast<double>(bytes) / all : 0;
    return bytes <= room;
  }

  bool ThinEvents(uint64_t room) {
    LengthHistogram lengths;
    for (const model::RankTrace& trace : input_.run.ranks) {
      for (const model::Track& track : trace.tracks) {
        if (!TakesLane(limits_, track.lane)) continue;
        for (const int64_t length_ns : track.events.duration_ns) lengths.Add(length_ns);
      }
    }
    double share = 0.95;
    for (int i = 0; i < kThinningTries && bytes_per_event_ > 0; ++i) {
      const auto count = static_cast<uint64_t>(share * static_cast<double>(room) / bytes_per_event_);
      if (count < kFewestEventsPerRank * input_.run.ranks.size()) return false;
      limits_.shortest_event_ns = lengths.LengthOfLongest(count);
      if (TryEvents(room)) return true;
      share *= 0.9;
    }
    return false;
  }

  /// Events that the limits take, of one rank or of all.
  uint64_t CountTaken(const model::RankTrace* only) const {
    uint64_t count = 0;
    const auto add = [&](const model::RankTrace& trace) {
      for (const model::Track& track : trace.tracks) {
        if (!TakesLane(limits_, track.lane)) continue;
        for (const int64_t length_ns : track.events.duration_ns)
          count += length_ns >= limits_.shortest_event_ns ? 1 : 0;
      }
    };
    if (only != nullptr) {
      add(*only);
    } else {
      for (const model::RankTrace& trace : input_.run.ranks) add(trace);
    }
    return count;
  }

  const PageInput& input_;
  const uint64_t page_bytes_;
  const PageProgress& on_progress_;
  Mutex progress_mutex_;
  size_t done_ LOCKSTEP_GUARDED_BY(progress_mutex_) = 0;
  size_t all_ = 0;
  PageLimits limits_;
  uint64_t frame_bytes_ = 0;
  double bytes_per_event_ = 0;
  std::vector<Block> events_;
};

}  // namespace

uint64_t EmbeddedBytes(const Block& block) { return (block.gzip.size() + 2) / 3 * 4 + kTagBytes; }

FittedPage FitPage(const PageInput& input, uint64_t page_bytes, const PageProgress& on_progress) {
  return PageFitter(input, page_bytes, on_progress).Fit();
}

void WriteAnalyzePage(const PageInput& input, uint64_t page_bytes, std::ostream& out, const PageProgress& on_progress) {
  const FittedPage page = FitPage(input, page_bytes, on_progress);
  ComposePage(page.frame, page.blocks, out);
}

}  // namespace lockstep::page
