#include "ingest/flight_recorder/record_builder.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ingest/flight_recorder/record_parts.h"

namespace lockstep::ingest {

using evidence::FlightEntry;

namespace {

/// No recorder writes shorter ones; a file that does must not make us reserve many times its length.
constexpr size_t kLeastEntryBytes = 64;

bool AreAll(std::span<const Value> items, ValueKind kind, ValueKind or_kind) {
  return std::all_of(items.begin(), items.end(),
                     [&](const Value& item) { return item.kind == kind || item.kind == or_kind; });
}

uint8_t DepthAround(std::span<const Value> items) {
  uint8_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth);
  return static_cast<uint8_t>(depth + 1);  // The stack refuses far smaller depths than would overflow.
}

}  // namespace

template <typename T, typename Table>
bool RecordBuilder::AddToTable(Table& table, ValueKind kind, Value& target, std::span<const Value> items) {
  auto& scratch = [this]() -> std::vector<T>& {
    if constexpr (std::is_same_v<T, int64_t>)
      return scratch_numbers_;
    else
      return scratch_;
  }();
  scratch.clear();
  if (target.kind == kind) {
    const std::span<const T> before = table[target.idx()];
    if (!tables_.Charge(before.size())) return false;
    scratch.assign(before.begin(), before.end());
  }
  for (const Value& item : items) scratch.push_back(static_cast<T>(item.bits));
  target.kind = kind;
  target.bits = table.Add(scratch);
  return true;
}

bool RecordBuilder::AddToIndexList(std::vector<std::vector<uint32_t>>& lists, ValueKind list, ValueKind item_kind,
                                   Value& target, std::span<const Value> items) {
  if (target.kind != list) {
    lists.emplace_back();
    target.kind = list;
    target.bits = static_cast<int64_t>(lists.size() - 1);
  }
  std::vector<uint32_t>& idxs = lists[target.idx()];
  for (const Value& item : items) {
    if (item.kind == item_kind) {
      idxs.push_back(item.idx());
    } else {
      tables_.notes.WrongType(DumpKey::kEntries);
    }
  }
  return true;
}

bool RecordBuilder::FillList(Value& target, std::span<const Value> items) {
  if (items.empty()) return true;
  target.depth = std::max(target.depth, DepthAround(items));
  const ValueKind first = target.kind == ValueKind::kEmptyList ? items[0].kind : ValueKind::kUnset;
  const auto takes = [&](ValueKind list, ValueKind item, ValueKind or_item) {
    return (target.kind == list || first == item || first == or_item) && AreAll(items, item, or_item);
  };
  if (takes(ValueKind::kInts, ValueKind::kInt, ValueKind::kInt)) {
    return AddToTable<int64_t>(tables_.numbers, ValueKind::kInts, target, items);
  }
  if (takes(ValueKind::kSizes, ValueKind::kInts, ValueKind::kEmptyList)) {
    return AddToTable<uint32_t>(tables_.size_lists, ValueKind::kSizes, target, items);
  }
  if (takes(ValueKind::kTexts, ValueKind::kText, ValueKind::kText)) {
    return AddToTable<uint32_t>(tables_.text_lists, ValueKind::kTexts, target, items);
  }
  if (takes(ValueKind::kFrames, ValueKind::kFrame, ValueKind::kFrame)) {
    return AddToTable<uint32_t>(tables_.stacks, ValueKind::kFrames, target, items);
  }
  const bool has_entry =
      std::any_of(items.begin(), items.end(), [](const Value& item) { return item.kind == ValueKind::kEntry; });
  if (target.kind == ValueKind::kEntries || (target.kind == ValueKind::kEmptyList && has_entry)) {
    return AddToIndexList(tables_.entry_lists, ValueKind::kEntries, ValueKind::kEntry, target, items);
  }
  if (takes(ValueKind::kDicts, ValueKind::kOtherDict, ValueKind::kOtherDict)) {
    return AddToIndexList(tables_.dict_lists, ValueKind::kDicts, ValueKind::kOtherDict, target, items);
  }
  target.kind = ValueKind::kOtherList;
  target.bits = 0;
  return true;
}

bool RecordBuilder::IsEntryOrFrame(std::span<const Value> items) const {
  for (size_t i = 0; i < items.size(); i += 2) {
    const DumpKey key = items[i].key;
    if (IsEntryKey(key) || IsFrameKey(key)) return true;
  }
  return false;
}

uint32_t RecordBuilder::MakeFrame(const Value& target, std::span<const Value> items) {
  uint32_t parts[3] = {};  // Function, file, line.
  if (target.kind == ValueKind::kFrame) std::ranges::copy(tables_.frame_parts[target.idx()], parts);
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const Value& value = items[i + 1];
    const DumpKey key = items[i].key;
    if (key == DumpKey::kName || key == DumpKey::kFileName) {
      if (value.kind == ValueKind::kText) {
        parts[key == DumpKey::kFileName ? 1 : 0] = value.idx();
      } else {
        tables_.notes.WrongType(key);
      }
    } else if (key == DumpKey::kLine) {
      const auto line = NumberOf(value, tables_.texts);
      if (line && *line >= 0 && *line <= INT32_MAX) {
        parts[2] = static_cast<uint32_t>(*line);
      } else {
        tables_.notes.WrongType(key);
      }
    }
  }
  return tables_.frame_parts.Add(parts);
}

// What a dict is may show late where it is filled item by item: a frame may begin with its name, as a group does.
bool RecordBuilder::RefillDict(Value& target, std::span<const Value> items) {
  std::vector<Value> all;
  for (const DictItem& item : std::exchange(tables_.dicts[target.idx()], {})) {
    all.insert(all.end(), {item.key, item.value});
  }
  all.insert(all.end(), items.begin(), items.end());
  target.kind = ValueKind::kEmptyDict;
  return FillDict(target, all);
}

bool RecordBuilder::FillDict(Value& target, std::span<const Value> items) {
  if (items.empty()) return true;
  if (target.kind == ValueKind::kOtherDict && IsEntryOrFrame(items)) return RefillDict(target, items);
  target.depth = std::max(target.depth, DepthAround(items));
  bool is_entry = target.kind == ValueKind::kEntry, is_frame = target.kind == ValueKind::kFrame;
  const bool more = is_entry;
  if (target.kind == ValueKind::kEmptyDict) {
    for (size_t i = 0; i < items.size() && !is_entry; i += 2) {
      const DumpKey key = items[i].key;
      is_entry = IsEntryKey(key);
      is_frame = is_frame || IsFrameKey(key);
    }
  }
  if (is_entry) {
    if (!more) {
      target.kind = ValueKind::kEntry;
      target.bits = static_cast<int64_t>(entries_.size());
      entries_.emplace_back();
    } else if (target.bits + 1 != static_cast<int64_t>(entries_.size())) {
      return false;  // Would mix up two entries; no writer fills one in pieces around another.
    }
    return fields_.Read(items, more, entries_[target.idx()]);
  }
  if (is_frame) {
    target.bits = MakeFrame(target, items);
    target.kind = ValueKind::kFrame;
    return true;
  }
  if (target.kind == ValueKind::kEmptyDict) {
    target.kind = ValueKind::kOtherDict;
    target.bits = static_cast<int64_t>(tables_.dicts.size());
    tables_.dicts.emplace_back();
  }
  std::vector<DictItem>& dict = tables_.dicts[target.idx()];
  for (size_t i = 0; i + 1 < items.size(); i += 2) dict.push_back({items[i], items[i + 1]});
  return true;
}

std::optional<uint32_t> RecordBuilder::ReadPlainEntry(const char*& at, const char* end, std::span<Value> memo) {
  const char* begin = at;
  FlightEntry entry;
  if (!plain_.Read(at, end, memo, entry)) return std::nullopt;
  if (entries_.size() == entries_.capacity()) {
    // Entries are of about one length, which tells how many are to come.
    const size_t length = std::max(static_cast<size_t>(at - begin), kLeastEntryBytes);
    entries_.reserve(std::max(entries_.size() + 1 + static_cast<size_t>(end - at) / length, 2 * entries_.size()));
  }
  entries_.push_back(entry);
  return static_cast<uint32_t>(entries_.size() - 1);
}

Result<std::vector<RankedRecord>> RecordBuilder::Finish(const Value& top, bool truncated) {
  return MakeRecords(top, truncated, fields_.groups(), std::move(entries_), tables_);
}

}  // namespace lockstep::ingest
