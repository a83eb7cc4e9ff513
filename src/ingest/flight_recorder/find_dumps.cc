#include "ingest/flight_recorder/find_dumps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ingest/flight_recorder/entry_fields.h"
#include "ingest/flight_recorder/flight_recorder.h"

namespace lockstep::ingest {

namespace {

constexpr int kMaxDepth = 3;

class Finder {
 public:
  explicit Finder(const DumpTables& tables) : tables_(tables) {}

  std::vector<FoundDump> Find(const Value& top) {
    if (top.kind == ValueKind::kEntries || top.kind == ValueKind::kEmptyList) return {{std::nullopt, top}};
    if (IsDump(top)) return {{OwnRank(top), top}};
    Collect(top, 0);
    if (found_.empty() && top.kind == ValueKind::kOtherDict && HasKeyOfDump(top)) return {{OwnRank(top), top}};
    return std::move(found_);
  }

 private:
  using Items = std::vector<DictItem>;

  const Items& ItemsOf(const Value& dict) const { return tables_.dicts[dict.idx()]; }

  bool HasKeyOfDump(const Value& dict) const {
    const Items& items = ItemsOf(dict);
    return std::any_of(items.begin(), items.end(), [](const DictItem& item) {
      return item.key.key >= DumpKey::kVersion && item.key.key <= DumpKey::kCommunicatorState;
    });
  }

  // Other files have versions too, and entries that are not collectives.
  bool IsDump(const Value& value) const {
    if (value.kind == ValueKind::kEntries) return true;
    if (value.kind != ValueKind::kOtherDict) return false;
    const Items& items = ItemsOf(value);
    return std::any_of(items.begin(), items.end(), [](const DictItem& item) {
      const bool has_entries = item.value.kind == ValueKind::kEntries || item.value.kind == ValueKind::kEmptyList;
      return (item.key.key == DumpKey::kEntries && has_entries) || item.key.key == DumpKey::kPgConfig ||
             item.key.key == DumpKey::kPgStatus;
    });
  }

  std::optional<int32_t> OwnRank(const Value& dump) const {
    if (dump.kind != ValueKind::kOtherDict) return std::nullopt;
    for (const DictItem& item : ItemsOf(dump)) {
      if (item.key.key == DumpKey::kRank) return AsRank(NumberOf(item.value, tables_.texts));
    }
    return std::nullopt;
  }

  static std::optional<int32_t> AsRank(std::optional<int64_t> number) {
    if (!number || *number < 0 || *number > INT32_MAX) return std::nullopt;
    return static_cast<int32_t>(*number);
  }

  std::optional<int32_t> RankOfKey(const Value& key) const {
    if (const auto number = NumberOf(key, tables_.texts)) return AsRank(number);
    return key.kind == ValueKind::kText ? RankOfDumpName(tables_.texts[key.idx()]) : std::nullopt;
  }

  void Take(const Value& dump, std::optional<int32_t> rank) {
    if (!taken_.emplace(dump.kind, dump.bits).second) return;
    if (const auto own = OwnRank(dump)) rank = own;
    found_.push_back({rank, dump});
  }

  void Collect(const Value& value, int depth) {
    if (depth == kMaxDepth || (value.kind != ValueKind::kDicts && value.kind != ValueKind::kOtherDict)) return;
    if (!taken_.emplace(value.kind, value.bits).second) return;  // What several refer to is walked through once.
    if (value.kind == ValueKind::kDicts) return CollectList(tables_.dict_lists[value.idx()], depth);
    for (const DictItem& item : ItemsOf(value)) {
      if (IsDump(item.value)) {
        Take(item.value, RankOfKey(item.key));
      } else {
        Collect(item.value, depth + 1);
      }
    }
  }

  void CollectList(const std::vector<uint32_t>& dicts, int depth) {
    const size_t before = found_.size();
    for (const uint32_t idx : dicts) {
      const Value dict{ValueKind::kOtherDict, 0, DumpKey::kOther, 0, idx};
      if (IsDump(dict)) {
        Take(dict, std::nullopt);
      } else {
        Collect(dict, depth + 1);
      }
    }
    if (std::any_of(found_.begin() + static_cast<std::ptrdiff_t>(before), found_.end(),
                    [](const FoundDump& found) { return found.rank.has_value(); })) {
      return;
    }
    for (size_t i = before; i < found_.size(); ++i) found_[i].rank = static_cast<int32_t>(i - before);
  }

  const DumpTables& tables_;
  std::set<std::pair<ValueKind, int64_t>> taken_;
  std::vector<FoundDump> found_;
};

}  // namespace

std::vector<FoundDump> FindDumps(const Value& top, const DumpTables& tables) { return Finder(tables).Find(top); }

}  // namespace lockstep::ingest
