#include "ingest/flight_recorder/entry_fields.h"

#include <bit>
#include <cmath>
#include <string>

#include "base/nanoseconds.h"
#include "base/text_scan.h"

namespace lockstep::ingest {

using evidence::EntryState;
using evidence::FlightEntry;
using evidence::kNotRecorded;
using evidence::Tristate;

std::optional<int64_t> NumberOf(std::string_view text) { return WholeNumber(text); }

std::optional<int64_t> NumberOf(const Value& value, const DumpTexts& texts) {
  if (value.kind == ValueKind::kInt) return value.bits;
  if (value.kind == ValueKind::kText) return NumberOf(texts[value.idx()]);
  return std::nullopt;
}

// A number that counts something: what is below 0, or None, is not recorded.
int64_t EntryFields::Count(DumpKey key, const Value& value) {
  if (value.kind == ValueKind::kInt) return value.bits < 0 ? kNotRecorded : value.bits;
  if (value.kind == ValueKind::kNone) return kNotRecorded;
  const auto number = NumberOf(value, tables_.texts);
  if (!number) tables_.notes.WrongType(key);
  return number && *number >= 0 ? *number : kNotRecorded;
}

// An instant or a span of time that is 0 or less, or None, is not recorded.
int64_t EntryFields::Scaled(DumpKey key, const Value& value, int64_t factor) {
  const int64_t number = Count(key, value);
  if (number <= 0) return kNotRecorded;
  int64_t scaled = 0;
  if (!__builtin_mul_overflow(number, factor, &scaled)) return scaled;
  tables_.notes.WrongType(key);
  return kNotRecorded;
}

std::optional<int64_t> EntryFields::DurationNs(double milliseconds) {
  const double duration_ns = milliseconds * 1e6;
  if (!(duration_ns >= 0 && duration_ns < 9e18)) return std::nullopt;  // Nor what is not a number.
  return std::llround(duration_ns);
}

int64_t EntryFields::Duration(const Value& value) {
  if (value.kind != ValueKind::kFloat) return Scaled(DumpKey::kDurationMs, value, kMillisecondNs);
  const auto duration_ns = DurationNs(std::bit_cast<double>(value.bits));
  if (!duration_ns) tables_.notes.WrongType(DumpKey::kDurationMs);
  return duration_ns.value_or(kNotRecorded);
}

uint32_t EntryFields::Text(DumpKey key, const Value& value) {
  if (value.kind == ValueKind::kText) return value.idx();
  if (value.kind != ValueKind::kNone) tables_.notes.WrongType(key);
  return 0;
}

uint32_t EntryFields::List(DumpKey key, const Value& value, ValueKind kind) {
  if (value.kind == kind) return value.idx();
  if (value.kind != ValueKind::kEmptyList && value.kind != ValueKind::kNone) tables_.notes.WrongType(key);
  return 0;
}

std::optional<uint32_t> EntryFields::Joined(uint32_t list) {
  if (list == 0) return 0;
  if (joined_.size() <= list) joined_.resize(list + 1, 0);
  if (joined_[list] != 0) return joined_[list];
  const auto texts = tables_.text_lists[list];
  if (texts.size() == 1) return joined_[list] = texts[0];
  uint64_t length = texts.size();
  for (const uint32_t text : texts) length += tables_.texts[text].size();
  if (!tables_.Charge(length)) return std::nullopt;
  std::string joined;
  joined.reserve(length);
  for (const uint32_t text : texts) (joined += tables_.texts[text]) += ',';
  joined.pop_back();
  return joined_[list] = tables_.texts.AddCopy(joined);
}

uint32_t EntryFields::Dtypes(DumpKey key, const Value& value) {
  const auto joined = Joined(List(key, value, ValueKind::kTexts));
  if (!joined) within_limits_ = false;
  return joined.value_or(0);
}

bool EntryFields::Bool(DumpKey key, const Value& value, bool& known) {
  known = value.kind == ValueKind::kBool || (value.kind == ValueKind::kInt && (value.bits == 0 || value.bits == 1));
  if (!known && value.kind != ValueKind::kNone) tables_.notes.WrongType(key);
  return known && value.bits != 0;
}

void EntryFields::Set(DumpKey key, const Value& value, FlightEntry& entry) {
  bool known = false;
  switch (key) {
    case DumpKey::kFrames: entry.stack = List(key, value, ValueKind::kFrames); return;
    case DumpKey::kRecordId: entry.record_id = Count(key, value); return;
    case DumpKey::kPgId: group_.local_id = Count(key, value); return;
    case DumpKey::kProcessGroup: {
      group_.name = group_.description = 0;
      if (const uint32_t list = List(key, value, ValueKind::kTexts); list != 0) {
        const auto texts = tables_.text_lists[list];
        group_.name = texts[0];
        if (texts.size() > 1) group_.description = texts[1];
      }
      return;
    }
    case DumpKey::kThreadName: entry.thread_name = Text(key, value); return;
    case DumpKey::kThreadId: entry.thread_id = Scaled(key, value, 1); return;
    case DumpKey::kCollectiveSequence: entry.collective_sequence = Count(key, value); return;
    case DumpKey::kP2pSequence: entry.p2p_sequence = Count(key, value); return;
    case DumpKey::kOperationId: entry.operation_id = Count(key, value); return;
    case DumpKey::kProfilingName: entry.operation = Text(key, value); return;
    case DumpKey::kTimeCreatedNs: entry.created_unix_ns = Scaled(key, value, 1); return;
    case DumpKey::kTimeCreatedUs: entry.created_unix_ns = Scaled(key, value, 1000); return;
    case DumpKey::kTimeStartedNs: entry.started_unix_ns = Scaled(key, value, 1); return;
    case DumpKey::kTimeStartedUs: entry.started_unix_ns = Scaled(key, value, 1000); return;
    case DumpKey::kTimeCompletedNs: entry.completed_unix_ns = Scaled(key, value, 1); return;
    case DumpKey::kTimeCompletedUs: entry.completed_unix_ns = Scaled(key, value, 1000); return;
    case DumpKey::kDurationMs: entry.duration_ns = Duration(value); return;
    case DumpKey::kTimeoutMs: entry.timeout_ns = Scaled(key, value, kMillisecondNs); return;
    case DumpKey::kInputSizes: entry.input_sizes = List(key, value, ValueKind::kSizes); return;
    case DumpKey::kOutputSizes: entry.output_sizes = List(key, value, ValueKind::kSizes); return;
    case DumpKey::kInputDtypes: entry.input_dtypes = Dtypes(key, value); return;
    case DumpKey::kOutputDtypes: entry.output_dtypes = Dtypes(key, value); return;
    case DumpKey::kState: {
      const uint32_t text = Text(key, value);
      const DumpKey state = value.key;
      entry.state = state == DumpKey::kScheduled   ? EntryState::kScheduled
                    : state == DumpKey::kStarted   ? EntryState::kStarted
                    : state == DumpKey::kCompleted ? EntryState::kCompleted
                                                   : EntryState::kUnknown;
      if (text != 0 && entry.state == EntryState::kUnknown) tables_.notes.WrongType(key);
      return;
    }
    case DumpKey::kRetired: {
      const bool retired = Bool(key, value, known);
      entry.retired = !known ? Tristate::kUnknown : retired ? Tristate::kYes : Tristate::kNo;
      return;
    }
    case DumpKey::kIsP2p: entry.is_p2p = Bool(key, value, known); return;
    default: return;
  }
}

uint32_t EntryFields::GroupIndex(const GroupKey& key) {
  const int64_t parts[] = {key.local_id, key.name, key.description};
  const uint32_t id = group_ids_.Add(parts);
  if (id > groups_.size()) groups_.push_back(key);
  return id - 1;
}

bool EntryFields::Read(std::span<const Value> items, bool more, FlightEntry& entry) {
  if (!more) group_ = {};
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    const Value& key = items[i];
    if (key.kind != ValueKind::kText) {
      tables_.notes.UnknownKey("an entry", "(not a text)");
      continue;
    }
    if (IsEntryKey(key.key)) {
      Set(key.key, items[i + 1], entry);
    } else {
      tables_.notes.UnknownEntryKey(key.idx());
    }
  }
  entry.group = GroupIndex(group_);
  return within_limits_;
}

}  // namespace lockstep::ingest
