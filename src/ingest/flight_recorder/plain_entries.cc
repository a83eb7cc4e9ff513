#include "ingest/flight_recorder/plain_entries.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/nanoseconds.h"
#include "ingest/flight_recorder/dump_stack.h"
#include "ingest/flight_recorder/pickle_opcodes.h"

namespace lockstep::ingest {

using evidence::EntryState;
using evidence::FlightEntry;
using evidence::kNotRecorded;
using evidence::Tristate;

namespace {

template <typename T>
T Load(const char* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

constexpr size_t kRecentGroups = 64;

}  // namespace

bool PlainEntries::TakeMemo(Value*& value) {
  uint32_t number;
  if (static_cast<Opcode>(*place_) == Opcode::kBinGet) {
    number = Load<uint8_t>(place_ + 1);
    place_ += 2;
  } else if (static_cast<Opcode>(*place_) == Opcode::kLongBinGet) {
    number = Load<uint32_t>(place_ + 1);
    place_ += 5;
  } else {
    return false;
  }
  if (number >= memo_.size()) return false;
  value = &memo_[number];
  return true;
}

bool PlainEntries::TakeInt(int64_t& number) {
  switch (static_cast<Opcode>(*place_)) {
    case Opcode::kBinInt1: number = Load<uint8_t>(place_ + 1), place_ += 2; return true;
    case Opcode::kBinInt2: number = Load<uint16_t>(place_ + 1), place_ += 3; return true;
    case Opcode::kBinInt: number = Load<int32_t>(place_ + 1), place_ += 5; return true;
    case Opcode::kLong1:
      if (place_[1] != 8) return false;
      number = Load<int64_t>(place_ + 2), place_ += 10;
      return true;
    default: return false;
  }
}

bool PlainEntries::TakeCount(int64_t& field) {
  int64_t number;
  if (!TakeInt(number)) return false;
  field = number < 0 ? kNotRecorded : number;
  return true;
}

bool PlainEntries::TakeTime(int64_t& field, int64_t factor) {
  int64_t number = 0;
  if (static_cast<Opcode>(*place_) == Opcode::kNone) {
    ++place_;
  } else if (!TakeInt(number)) {
    return false;
  }
  if (__builtin_mul_overflow(number, factor, &field)) return false;
  if (number <= 0) field = kNotRecorded;
  return true;
}

bool PlainEntries::TakeText(uint32_t& field) {
  Value* value;
  if (!TakeMemo(value) || value->kind != ValueKind::kText) return false;
  field = value->idx();
  return true;
}

bool PlainEntries::TakeThreadId(int64_t& field) {
  uint32_t text;
  if (!TakeText(text)) return false;
  if (text != last_thread_.first) {
    const auto number = NumberOf(tables_.texts[text]);
    if (!number) return false;
    last_thread_ = {text, *number > 0 ? *number : kNotRecorded};
  }
  field = last_thread_.second;
  return true;
}

bool PlainEntries::TakeGroup() {
  if (!TakeText(group_.name) || !HasRoom() || !TakeText(group_.description)) return false;
  return static_cast<Opcode>(*place_++) == Opcode::kTuple2;
}

bool PlainEntries::TakeState(EntryState& field) {
  Value* value;
  if (!TakeMemo(value)) return false;
  switch (value->key) {
    case DumpKey::kScheduled: field = EntryState::kScheduled; return true;
    case DumpKey::kStarted: field = EntryState::kStarted; return true;
    case DumpKey::kCompleted: field = EntryState::kCompleted; return true;
    default: return false;
  }
}

bool PlainEntries::TakeBool(bool& field) {
  const auto opcode = static_cast<Opcode>(*place_++);
  field = opcode == Opcode::kNewTrue;
  return field || opcode == Opcode::kNewFalse;
}

bool PlainEntries::TakeDuration(int64_t& field) {
  if (static_cast<Opcode>(*place_) != Opcode::kBinFloat) return false;
  const auto duration_ns =
      EntryFields::DurationNs(std::bit_cast<double>(__builtin_bswap64(Load<uint64_t>(place_ + 1))));
  if (!duration_ns) return false;
  field = *duration_ns;
  place_ += 9;
  return true;
}

// "](" ... "e".
bool PlainEntries::TakeFrames(uint32_t& field) {
  if (place_[0] != ']' || place_[1] != '(') return false;
  place_ += 2;
  scratch_.clear();
  for (;;) {
    if (!HasRoom()) return false;
    if (*place_ == 'e') break;
    Value* frame;
    if (!TakeMemo(frame) || frame->kind != ValueKind::kFrame) return false;
    frame->memo = DumpStack::kShared;
    scratch_.push_back(frame->idx());
  }
  ++place_;
  field = tables_.stacks.Add(scratch_);
  return true;
}

bool PlainEntries::TakeSizes(uint32_t& field) {
  if (place_[0] != ']' || place_[1] != '(') return false;
  place_ += 2;
  scratch_numbers_.clear();
  for (;;) {
    if (!HasRoom()) return false;
    if (*place_ == 'e') break;
    if (place_[0] != ']' || place_[1] != '(') return false;
    place_ += 2;
    const size_t length_at = scratch_numbers_.size();
    scratch_numbers_.push_back(0);
    while (*place_ != 'e') {
      int64_t length;
      if (!TakeInt(length) || !HasRoom()) return false;
      scratch_numbers_.push_back(length);
    }
    scratch_numbers_[length_at] = static_cast<int64_t>(scratch_numbers_.size() - length_at - 1);
    ++place_;
  }
  ++place_;
  const uint32_t flat = flat_sizes_.Add(scratch_numbers_);
  if (flat >= size_lists_.size()) {
    size_lists_.resize(flat + 1, 0);
    scratch_.clear();
    for (size_t at = 0; at < scratch_numbers_.size();) {
      const auto length = static_cast<size_t>(scratch_numbers_[at]);
      scratch_.push_back(tables_.numbers.Add(std::span<const int64_t>(scratch_numbers_).subspan(at + 1, length)));
      at += 1 + length;
    }
    size_lists_[flat] = tables_.size_lists.Add(scratch_);
  }
  field = size_lists_[flat];
  return true;
}

bool PlainEntries::TakeDtypes(uint32_t& field) {
  if (place_[0] != ']' || place_[1] != '(') return false;
  place_ += 2;
  scratch_.clear();
  for (;;) {
    if (!HasRoom()) return false;
    if (*place_ == 'e') break;
    uint32_t text;
    if (!TakeText(text)) return false;
    scratch_.push_back(text);
  }
  ++place_;
  const std::optional<uint32_t> joined =
      scratch_.size() == 1 ? scratch_[0] : fields_.Joined(tables_.text_lists.Add(scratch_));
  field = joined.value_or(0);
  return joined.has_value();
}

bool PlainEntries::TakeField(DumpKey key, FlightEntry& entry) {
  bool flag = false;
  switch (key) {
    case DumpKey::kFrames: return TakeFrames(entry.stack);
    case DumpKey::kRecordId: return TakeCount(entry.record_id);
    case DumpKey::kPgId: return TakeCount(group_.local_id);
    case DumpKey::kProcessGroup: return TakeGroup();
    case DumpKey::kThreadName: return TakeText(entry.thread_name);
    case DumpKey::kThreadId: return TakeThreadId(entry.thread_id);
    case DumpKey::kCollectiveSequence: return TakeCount(entry.collective_sequence);
    case DumpKey::kP2pSequence: return TakeCount(entry.p2p_sequence);
    case DumpKey::kOperationId: return TakeCount(entry.operation_id);
    case DumpKey::kProfilingName: return TakeText(entry.operation);
    case DumpKey::kTimeCreatedNs: return TakeTime(entry.created_unix_ns, 1);
    case DumpKey::kTimeStartedNs: return TakeTime(entry.started_unix_ns, 1);
    case DumpKey::kTimeCompletedNs: return TakeTime(entry.completed_unix_ns, 1);
    case DumpKey::kDurationMs: return TakeDuration(entry.duration_ns);
    case DumpKey::kInputSizes: return TakeSizes(entry.input_sizes);
    case DumpKey::kOutputSizes: return TakeSizes(entry.output_sizes);
    case DumpKey::kInputDtypes: return TakeDtypes(entry.input_dtypes);
    case DumpKey::kOutputDtypes: return TakeDtypes(entry.output_dtypes);
    case DumpKey::kState: return TakeState(entry.state);
    case DumpKey::kRetired:
      if (!TakeBool(flag)) return false;
      entry.retired = flag ? Tristate::kYes : Tristate::kNo;
      return true;
    case DumpKey::kTimeoutMs: return TakeTime(entry.timeout_ns, kMillisecondNs);
    case DumpKey::kIsP2p: return TakeBool(entry.is_p2p);
    default: return false;
  }
}

uint32_t PlainEntries::GroupIndex() {
  if (recent_groups_.empty()) recent_groups_.assign(kRecentGroups, {{}, UINT32_MAX});
  auto& [key, idx] = recent_groups_[static_cast<size_t>(group_.local_id) % kRecentGroups];
  if (idx == UINT32_MAX || key != group_) {
    key = group_;
    idx = fields_.GroupIndex(group_);
  }
  return idx;
}

// A number of the memo means the same throughout a dump, and so do equal bytes: what they gave before they give again.
bool PlainEntries::TakeExpected(FlightEntry& entry) {
  const EntryPatterns::Pattern* pattern = patterns_.Expected();
  if (pattern == nullptr) return false;
  const std::span<const EntryPatterns::Piece> pieces = patterns_.PiecesOf(*pattern);
  if (end_ - place_ < pattern->byte_count + kRoom * static_cast<ptrdiff_t>(pieces.size())) return false;
  entry = pattern->entry;
  for (const EntryPatterns::Piece& piece : pieces) {
    if (std::memcmp(place_, piece.bytes.data(), piece.bytes.size()) != 0) return false;
    place_ += piece.bytes.size();
    if (piece.number != DumpKey::kOther && !TakeField(piece.number, entry)) return false;
  }
  group_ = pattern->group;
  return true;
}

bool PlainEntries::TakeAny(FlightEntry& entry) {
  scratch_pieces_.clear();
  const char* piece = place_;
  const auto bytes_so_far = [&] { return std::string_view(piece, static_cast<size_t>(place_ - piece)); };
  if (!HasRoom() || *place_++ != '(') return false;
  do {
    Value* key;
    if (!TakeMemo(key) || key->kind != ValueKind::kText) return false;
    const bool is_number = IsVaryingNumber(key->key);
    if (is_number) scratch_pieces_.push_back({bytes_so_far(), key->key});
    if (!TakeField(key->key, entry) || !HasRoom()) return false;
    if (is_number) piece = place_;
  } while (static_cast<Opcode>(*place_) != Opcode::kSetItems);
  ++place_;
  scratch_pieces_.push_back({bytes_so_far(), DumpKey::kOther});
  entry.group = GroupIndex();
  return true;
}

bool PlainEntries::Read(const char*& at, const char* end, std::span<Value> memo, FlightEntry& entry) {
  place_ = at;
  end_ = end;
  memo_ = memo;
  if (TakeExpected(entry)) {
    patterns_.Confirm();
  } else {
    place_ = at;
    entry = {};
    group_ = {};
    if (!TakeAny(entry)) return false;
    patterns_.Learn(scratch_pieces_, entry, group_);
  }
  at = place_;
  fields_.SetLastGroup(group_);
  return true;
}

}  // namespace lockstep::ingest
