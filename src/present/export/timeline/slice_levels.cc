#include "present/export/timeline/slice_levels.h"

namespace lockstep::timeline {
namespace {

/// Ends of the slices that are open on one level, outermost first.
class OpenSlices {
 public:
  /// Closes what has ended at `start_ns`; the end of the innermost slice that is still open, or INT64_MAX.
  int64_t Room(int64_t start_ns) {
    while (!ends_.empty() && ends_.back() <= start_ns) ends_.pop_back();
    return ends_.empty() ? INT64_MAX : ends_.back();
  }
  void Push(int64_t end_ns) { ends_.push_back(end_ns); }

 private:
  std::vector<int64_t> ends_;
};

}  // namespace

NestingLevels FindNestingLevels(const model::EventColumns& events) {
  NestingLevels found;
  std::vector<OpenSlices> levels(1);
  for (size_t row = 0; row < events.size(); ++row) {
    const int64_t start_ns = events.start_ns[row];
    int64_t end_ns = events.end_ns(row);
    uint32_t level = 0;
    for (int64_t room = levels[0].Room(start_ns); room < end_ns; room = levels[level].Room(start_ns)) {
      if (level + 1 == kMaxLevels) {
        end_ns = room;
        found.cut_end_ns[row] = end_ns;
        break;
      }
      if (++level == levels.size()) levels.emplace_back();
    }
    levels[level].Push(end_ns);
    if (level == 0) continue;
    if (found.level_of_row.empty()) found.level_of_row.resize(events.size(), 0);
    found.level_of_row[row] = level;
    ++found.moved_count;
  }
  found.level_count = static_cast<uint32_t>(levels.size());
  return found;
}

}  // namespace lockstep::timeline
