#include "ingest/flight_recorder/record_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "ingest/flight_recorder/find_dumps.h"
#include "ingest/flight_recorder/renumbering.h"

namespace lockstep::ingest {

using evidence::FlightEntry;
using evidence::FlightGroup;
using evidence::FlightRecord;
using evidence::kNotRecorded;

namespace {

// pg_config writes ranks as text, "[0, 1, 2]". nullopt when it is not that.
std::optional<std::vector<int32_t>> RanksOf(std::string_view text) {
  std::vector<int32_t> ranks;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    int32_t rank = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc() || rank < 0) return std::nullopt;
    ranks.push_back(rank);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  return ranks;
}

// The things that each record of a file numbers for itself.
struct Renumberings {
  Renumbering texts, size_lists, stacks, groups;

  void Reset() {
    for (Renumbering* numbers : {&texts, &size_lists, &stacks, &groups}) numbers->Reset();
  }
};

class RecordMaker {
 public:
  RecordMaker(DumpTables& tables, Renumberings& numbers, FlightRecord* record)
      : tables_(tables), numbers_(numbers), record_(record) {}

  // `entries` are moved from where they are the record's all.
  void ReadTop(const Value& top, std::vector<FlightEntry>& entries) {
    if (top.kind != ValueKind::kOtherDict) return TakeEntries(top, entries);
    for (const DictItem& item : tables_.dicts[top.idx()]) {
      const DumpKey key = item.key.key;
      switch (key) {
        case DumpKey::kVersion: record_->version = TextOf(key, item.value); break;
        case DumpKey::kLibraryVersion: record_->library_version = TextOf(key, item.value); break;
        case DumpKey::kPgConfig: config_ = DictOf(key, item.value); break;
        case DumpKey::kPgStatus: status_ = DictOf(key, item.value); break;
        case DumpKey::kEntries: TakeEntries(item.value, entries); break;
        case DumpKey::kCommunicatorState: break;
        case DumpKey::kRank: break;
        default: tables_.notes.UnknownKey("the dump", NameOf(item.key));
      }
    }
  }

  void MakeGroups(const std::vector<EntryFields::GroupKey>& keys) {
    for (FlightEntry& entry : record_->entries) {
      // Numbers of a Renumbering begin with 1; 0 means none.
      entry.group = numbers_.groups(entry.group + 1, [&] {
        const EntryFields::GroupKey& key = keys[entry.group];
        FlightGroup& group = record_->groups.emplace_back();
        group.local_id = key.local_id;
        group.name = tables_.texts[key.name];
        group.description = tables_.texts[key.description];
      });
      --entry.group;
    }
    ReadConfig();
    ReadStatus();
    SortGroups();
  }

  // Entries hold indices into the tables until now. False when shared content would outgrow the dump.
  bool FillTables() {
    record_->texts.assign(1, "");
    record_->size_lists.resize(1);
    record_->stacks.resize(1);
    for (FlightEntry& entry : record_->entries) {
      entry.operation = Text(entry.operation);
      entry.input_dtypes = Text(entry.input_dtypes);
      entry.output_dtypes = Text(entry.output_dtypes);
      entry.thread_name = Text(entry.thread_name);
      entry.input_sizes = Sizes(entry.input_sizes);
      entry.output_sizes = Sizes(entry.output_sizes);
      entry.stack = Stack(entry.stack);
    }
    return within_limits_;
  }

 private:
  std::string_view NameOf(const Value& key) const {
    return key.kind == ValueKind::kText ? tables_.texts[key.idx()] : "(not a text)";
  }

  std::string TextOf(DumpKey key, const Value& value) {
    if (value.kind == ValueKind::kText) {
      const std::string_view text = tables_.texts[value.idx()];
      if (tables_.Charge(text.size())) return std::string(text);
    }
    if (value.kind != ValueKind::kNone) tables_.notes.WrongType(key);
    return "";
  }

  const std::vector<DictItem>* DictOf(DumpKey key, const Value& value) {
    if (value.kind == ValueKind::kOtherDict) return &tables_.dicts[value.idx()];
    if (value.kind != ValueKind::kEmptyDict && value.kind != ValueKind::kNone) tables_.notes.WrongType(key);
    return nullptr;
  }

  // What is not an entry of this list was found elsewhere, and is left out.
  void TakeEntries(const Value& list, std::vector<FlightEntry>& entries) {
    if (list.kind != ValueKind::kEntries) {
      if (list.kind != ValueKind::kEmptyList) tables_.notes.WrongType(DumpKey::kEntries);
      return;
    }
    // Taken once: of dumps that share a list one has it, so that a short file cannot become many long records.
    const std::vector<uint32_t> idxs = std::exchange(tables_.entry_lists[list.idx()], {});
    bool are_all = idxs.size() == entries.size();
    for (size_t i = 0; are_all && i < idxs.size(); ++i) are_all = idxs[i] == i;
    if (are_all) {
      record_->entries = std::move(entries);
    } else {
      for (const uint32_t idx : idxs) {
        if (idx < entries.size()) record_->entries.push_back(entries[idx]);
      }
    }
    // A little that is never used costs less than a copy.
    if (record_->entries.capacity() > record_->entries.size() + record_->entries.size() / 8) {
      record_->entries.shrink_to_fit();
    }
  }

  void ReadConfig() {
    if (config_ == nullptr) return;
    std::unordered_multimap<std::string_view, size_t> by_name;
    const size_t of_entries = record_->groups.size();
    std::vector<FlightGroup> others;
    for (size_t i = 0; i < of_entries; ++i) by_name.emplace(record_->groups[i].name, i);
    for (const DictItem& item : *config_) {
      FlightGroup group;
      group.name = TextOf(DumpKey::kName, item.key);
      if (const auto* facts = DictOf(DumpKey::kPgConfig, item.value)) ReadGroup(*facts, group);
      const auto [first, last] = by_name.equal_range(group.name);
      if (first == last || group.name.empty()) {
        others.push_back(std::move(group));
        continue;
      }
      for (auto named = first; named != last; ++named) {
        FlightGroup& known = record_->groups[named->second];
        if (known.description.empty()) known.description = group.description;
        if (tables_.Charge(group.ranks.size())) known.ranks = group.ranks;
      }
    }
    for (FlightGroup& group : others) record_->groups.push_back(std::move(group));
  }

  void ReadGroup(const std::vector<DictItem>& facts, FlightGroup& group) {
    for (const DictItem& fact : facts) {
      const DumpKey key = fact.key.key;
      if (key == DumpKey::kName) {
        group.name = TextOf(key, fact.value);
      } else if (key == DumpKey::kDescription) {
        group.description = TextOf(key, fact.value);
      } else if (key == DumpKey::kRanks) {
        group.ranks = Ranks(fact.value);
      } else {
        tables_.notes.UnknownKey("a group", NameOf(fact.key));
      }
    }
  }

  std::vector<int32_t> Ranks(const Value& value) {
    std::vector<int32_t> ranks;
    if (value.kind == ValueKind::kText) {
      const std::string_view text = tables_.texts[value.idx()];
      if (auto read = tables_.Charge(text.size()) ? RanksOf(text) : std::nullopt) return std::move(*read);
    } else if (value.kind == ValueKind::kInts) {
      const auto numbers = tables_.numbers[value.idx()];
      const bool fit = std::all_of(numbers.begin(), numbers.end(), [](int64_t n) { return n >= 0 && n <= INT32_MAX; });
      if (fit && tables_.Charge(numbers.size())) {
        for (const int64_t number : numbers) ranks.push_back(static_cast<int32_t>(number));
        return ranks;
      }
    } else if (value.kind == ValueKind::kEmptyList || value.kind == ValueKind::kNone) {
      return ranks;
    }
    tables_.notes.WrongType(DumpKey::kRanks);
    return ranks;
  }

  void ReadStatus() {
    if (status_ == nullptr) return;
    std::unordered_multimap<int64_t, size_t> by_id;
    for (size_t i = 0; i < record_->groups.size(); ++i) {
      if (record_->groups[i].local_id != kNotRecorded) by_id.emplace(record_->groups[i].local_id, i);
    }
    for (const DictItem& item : *status_) {
      const auto id = NumberOf(item.key, tables_.texts);
      const auto* facts = DictOf(DumpKey::kPgStatus, item.value);
      if (!id || *id < 0) {
        tables_.notes.WrongType(DumpKey::kPgStatus);
        continue;
      }
      if (!by_id.contains(*id)) {
        by_id.emplace(*id, record_->groups.size());
        record_->groups.emplace_back().local_id = *id;
      }
      const auto [first, last] = by_id.equal_range(*id);
      if (facts == nullptr || !tables_.Charge(facts->size() * static_cast<size_t>(std::distance(first, last))))
        continue;
      for (auto group = first; group != last; ++group) ReadProgress(*facts, record_->groups[group->second]);
    }
  }

  void ReadProgress(const std::vector<DictItem>& facts, FlightGroup& group) {
    for (const DictItem& fact : facts) {
      const DumpKey key = fact.key.key;
      int64_t* field = key == DumpKey::kLastEnqueued    ? &group.last_enqueued
                       : key == DumpKey::kLastStarted   ? &group.last_started
                       : key == DumpKey::kLastCompleted ? &group.last_completed
                                                        : nullptr;
      if (field == nullptr) {
        tables_.notes.UnknownKey("a group's status", NameOf(fact.key));
        continue;
      }
      const auto number = NumberOf(fact.value, tables_.texts);
      *field = number && *number >= -1 ? *number : kNotRecorded;
      if (!number && fact.value.kind != ValueKind::kNone) tables_.notes.WrongType(key);
    }
  }

  // The order in which a dump names its groups differs between pickle and JSON.
  void SortGroups() {
    std::vector<uint32_t> order(record_->groups.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto& groups = record_->groups;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const bool a_known = groups[a].local_id != kNotRecorded, b_known = groups[b].local_id != kNotRecorded;
      if (a_known != b_known) return a_known;
      return std::tie(groups[a].local_id, groups[a].name, groups[a].description) <
             std::tie(groups[b].local_id, groups[b].name, groups[b].description);
    });
    std::vector<uint32_t> place(order.size());
    std::vector<FlightGroup> sorted;
    sorted.reserve(order.size());
    for (const uint32_t from : order) {
      place[from] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(record_->groups[from]));
    }
    record_->groups = std::move(sorted);
    for (FlightEntry& entry : record_->entries) entry.group = place[entry.group];
  }

  uint32_t Text(uint32_t text) {
    return numbers_.texts(text, [&] {
      const std::string_view content = tables_.texts[text];
      if (Charge(content.size())) record_->texts.emplace_back(content);
    });
  }

  uint32_t Sizes(uint32_t list) {
    return numbers_.size_lists(list, [&] {
      std::vector<std::vector<int64_t>>& shapes = record_->size_lists.emplace_back();
      if (!Charge(tables_.size_lists[list].size())) return;
      for (const uint32_t shape : tables_.size_lists[list]) {
        const auto lengths = tables_.numbers[shape];
        if (Charge(lengths.size())) shapes.emplace_back(lengths.begin(), lengths.end());
      }
    });
  }

  uint32_t Stack(uint32_t stack) {
    return numbers_.stacks(stack, [&] {
      std::vector<evidence::FlightFrame>& frames = record_->stacks.emplace_back();
      if (!Charge(tables_.stacks[stack].size())) return;
      for (const uint32_t frame : tables_.stacks[stack]) {
        const auto parts = tables_.frame_parts[frame];
        frames.push_back({Text(parts[0]), Text(parts[1]), static_cast<int32_t>(parts[2])});
      }
    });
  }

  bool Charge(uint64_t item_count) { return within_limits_ = within_limits_ && tables_.Charge(item_count); }

  DumpTables& tables_;
  Renumberings& numbers_;
  FlightRecord* record_;
  const std::vector<DictItem>* config_ = nullptr;
  const std::vector<DictItem>* status_ = nullptr;
  bool within_limits_ = true;
};

// Versions up to 2.x are known; their minor numbers add keys.
void NoteVersion(FlightRecord& record, DumpNotes& notes) {
  if (record.version.empty()) return;
  const size_t dot = std::min(record.version.find('.'), record.version.size());
  const auto major = NumberOf(std::string_view(record.version).substr(0, dot));
  if (!major || *major < 1 || *major > 2) {
    notes.Say(fmt::format("version \"{}\" is not known; read as 2.x", Printable(record.version.substr(0, 64))));
  }
}

}  // namespace

Result<std::vector<RankedRecord>> MakeRecords(const Value& top, bool truncated,
                                              const std::vector<EntryFields::GroupKey>& group_keys,
                                              std::vector<FlightEntry> entries, DumpTables& tables) {
  const std::vector<FoundDump> dumps = FindDumps(top, tables);
  if (dumps.empty()) {
    if (truncated) return Error{ErrorCode::kCorruptData, "ends before any content of a flight-recorder dump"};
    return Error{ErrorCode::kCorruptData, "holds none of the keys of a flight-recorder dump (version, entries, ...)"};
  }
  std::vector<RankedRecord> records;
  Renumberings numbers;
  for (const FoundDump& dump : dumps) {
    RankedRecord& ranked = records.emplace_back();
    ranked.rank = dump.rank;
    numbers.Reset();
    RecordMaker maker(tables, numbers, &ranked.record);
    maker.ReadTop(dump.dump, entries);
    maker.MakeGroups(group_keys);
    if (!maker.FillTables()) {
      return Error{ErrorCode::kLimitExceeded, "uses its lists so often that they would outgrow the file"};
    }
    NoteVersion(ranked.record, tables.notes);
  }
  records.back().record.truncated = truncated;
  records.front().record.notes = tables.notes.Take(tables.texts);
  return records;
}

}  // namespace lockstep::ingest
