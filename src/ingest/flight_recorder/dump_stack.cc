#include "ingest/flight_recorder/dump_stack.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

namespace lockstep::ingest {

bool DumpStack::Fail(ErrorCode code, std::string message) {
  error_.code = code;
  error_.message = std::move(message);
  return false;
}

bool DumpStack::FailGet(uint32_t number) {
  return Fail(ErrorCode::kCorruptData, fmt::format("refers to number {}, which was never given", number));
}

void DumpStack::PushFloat(double value) {
  stack_.push_back({ValueKind::kFloat, 0, DumpKey::kOther, 0, std::bit_cast<int64_t>(value)});
}

bool DumpStack::Mark() {
  if (marks_.size() >= kMaxNesting) {
    return Fail(ErrorCode::kLimitExceeded, fmt::format("nests deeper than {} levels", kMaxNesting));
  }
  marks_.push_back(stack_.size());
  return true;
}

bool DumpStack::PopMark(size_t& mark) {
  if (marks_.empty()) return Fail(ErrorCode::kCorruptData, "closes what was never opened");
  mark = marks_.back();
  marks_.pop_back();
  return true;
}

bool DumpStack::AfterFill(size_t target) {
  const Value& filled = stack_[target];
  if (filled.depth > kMaxNesting) {
    return Fail(ErrorCode::kLimitExceeded, fmt::format("nests deeper than {} levels", kMaxNesting));
  }
  if (filled.memo == 0) return true;
  Value& remembered = memo_[filled.memo - 1];
  if (remembered.memo == kShared) return Fail(ErrorCode::kUnsupported, "changes a list or dict that is already in use");
  remembered = filled;
  remembered.memo = 0;
  return true;
}

bool DumpStack::FillList(size_t target, size_t first) {
  Value& list = stack_[target];
  if (!IsList(list.kind)) return Fail(ErrorCode::kCorruptData, "appends to what is not a list");
  if (list.memo == kShared) return Fail(ErrorCode::kUnsupported, "changes a list that is already in use");
  if (!builder_.FillList(list, From(first))) {
    return Fail(ErrorCode::kLimitExceeded, "fills its lists in more pieces than a writer would");
  }
  stack_.resize(first);
  return AfterFill(target);
}

bool DumpStack::FillDict(size_t target, size_t first) {
  Value& dict = stack_[target];
  if (!IsDict(dict.kind)) return Fail(ErrorCode::kCorruptData, "sets a key of what is not a dict");
  if (dict.memo == kShared) return Fail(ErrorCode::kUnsupported, "changes a dict that is already in use");
  if ((stack_.size() - first) % 2 != 0) return Fail(ErrorCode::kCorruptData, "has a key without a value");
  if (!builder_.FillDict(dict, From(first))) {
    return Fail(ErrorCode::kLimitExceeded, "fills its dicts in more pieces than a writer would");
  }
  stack_.resize(first);
  return AfterFill(target);
}

bool DumpStack::AppendSinceMark() {
  size_t mark = 0;
  if (!PopMark(mark)) return false;
  if (mark == 0) return Fail(ErrorCode::kCorruptData, "appends to what is not a list");
  return FillList(mark - 1, mark);
}

bool DumpStack::SetItemsSinceMark() {
  size_t mark = 0;
  if (!PopMark(mark)) return false;
  if (mark == 0) return Fail(ErrorCode::kCorruptData, "sets a key of what is not a dict");
  return FillDict(mark - 1, mark);
}

bool DumpStack::TupleSinceMark() {
  size_t mark = 0;
  if (!PopMark(mark)) return false;
  return Tuple(stack_.size() - mark);
}

bool DumpStack::DictSinceMark() {
  size_t mark = 0;
  if (!PopMark(mark)) return false;
  stack_.insert(stack_.begin() + static_cast<std::ptrdiff_t>(mark),
                Value{ValueKind::kEmptyDict, 1, DumpKey::kOther, 0, 0});
  return FillDict(mark, mark + 1);
}

bool DumpStack::Append() {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() < floor + 2) return Fail(ErrorCode::kCorruptData, "takes more values than there are");
  return FillList(stack_.size() - 2, stack_.size() - 1);
}

bool DumpStack::SetItem() {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() < floor + 3) return Fail(ErrorCode::kCorruptData, "takes more values than there are");
  return FillDict(stack_.size() - 3, stack_.size() - 2);
}

bool DumpStack::Tuple(size_t count) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() < floor + count) return Fail(ErrorCode::kCorruptData, "takes more values than there are");
  const size_t first = stack_.size() - count;
  Value tuple{ValueKind::kEmptyList, 1, DumpKey::kOther, 0, 0};
  if (!builder_.FillList(tuple, From(first))) {
    return Fail(ErrorCode::kLimitExceeded, "fills its lists in more pieces than a writer would");
  }
  stack_.resize(first);
  stack_.push_back(tuple);
  return AfterFill(first);
}

bool DumpStack::Memoize(uint32_t number, size_t max_number) {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) {
    return Fail(ErrorCode::kCorruptData, "numbers a value where there is none");
  }
  if (number > max_number) {
    return Fail(ErrorCode::kLimitExceeded,
                fmt::format("gives the number {} to what is at most its value {}", number, max_number));
  }
  if (number >= memo_.size()) {
    memo_.resize(number + 1);
  } else if (memo_[number].kind != ValueKind::kUnset) {
    return Fail(ErrorCode::kUnsupported, fmt::format("gives the number {} twice", number));
  }
  ++memo_count_;
  Value& value = stack_.back();
  memo_[number] = value;
  memo_[number].memo = 0;
  if (!IsContainer(value.kind)) return true;
  if (value.memo != 0) return Fail(ErrorCode::kUnsupported, "gives one list or dict two numbers");
  value.memo = number + 1;
  return true;
}

bool DumpStack::Top(Value& top) {
  if (!marks_.empty()) return Fail(ErrorCode::kCorruptData, "stops inside a list or dict");
  if (stack_.size() != 1) {
    return Fail(ErrorCode::kCorruptData, fmt::format("stops with {} values instead of one", stack_.size()));
  }
  top = stack_[0];
  return true;
}

std::optional<Value> DumpStack::CloseAll() {
  const auto lowest = [this] { return marks_.empty() ? size_t{1} : marks_.back(); };
  // What was opened and is still empty.
  while (stack_.size() > lowest() && (stack_.back().kind == ValueKind::kEmptyDict)) stack_.pop_back();
  if (!CloseMarks() || !CloseSingleItems() || stack_.empty()) return std::nullopt;
  return stack_[0];
}

// What is filled by MARK ... SETITEMS or APPENDS: all but protocol 0.
bool DumpStack::CloseMarks() {
  while (!marks_.empty()) {
    size_t mark = 0;
    if (!PopMark(mark) || mark == 0) return false;
    if (mark > stack_.size()) continue;  // What it was to fill went with the one above.
    const size_t target = mark - 1;
    if (IsDict(stack_[target].kind)) {
      if ((stack_.size() - mark) % 2 != 0) stack_.pop_back();
      if (stack_.size() == mark || builder_.IsEntryOrFrame(From(mark))) {
        // Not whole. What it was to be the value of goes with it: an odd key.
        stack_.resize(target == 0 ? mark : target);
        continue;
      }
      if (!FillDict(target, mark)) return false;
    } else if (IsList(stack_[target].kind)) {
      if (!FillList(target, mark)) return false;
    } else {
      stack_.resize(mark);  // A tuple, or what protocol 0 begins with MARK and fills later.
    }
  }
  return true;
}

// What protocol 0 fills item by item lies on the stack unmarked: each list or dict above the one that it goes into,
// with its key. An entry or frame that still lies there is not whole.
bool DumpStack::CloseSingleItems() {
  while (stack_.size() > 1) {
    const size_t top = stack_.size() - 1;
    const ValueKind kind = stack_[top].kind;
    const bool whole = kind != ValueKind::kEntry && kind != ValueKind::kFrame && kind != ValueKind::kEmptyDict;
    if (whole && top >= 2 && stack_[top - 1].kind == ValueKind::kText && IsDict(stack_[top - 2].kind)) {
      if (!FillDict(top - 2, top - 1)) return false;
    } else if (whole && IsList(stack_[top - 1].kind)) {
      if (!FillList(top - 1, top)) return false;
    } else {
      stack_.pop_back();
    }
  }
  return true;
}

}  // namespace lockstep::ingest
