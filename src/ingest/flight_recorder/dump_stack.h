#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/flight_recorder/dump_value.h"
#include "ingest/flight_recorder/record_builder.h"

namespace lockstep::ingest {

/// The stack machine that a pickle drives; a JSON dump drives it as well. Every function that returns bool returns
/// false when the dump asks for something that cannot be; `error()` then says what. One dump, one thread.
///
/// Lists and dicts are given to the builder each time something is put into them, and what is on the stack is then
/// what they have become. The memo holds values, not references: a container in the memo is brought up to date when it
/// is filled, and one that was taken out of the memo cannot be filled any more, as it can only be by a list or dict
/// that holds itself.
class DumpStack {
 public:
  static constexpr size_t kMaxNesting = 64;              ///< Lists and dicts inside each other.
  static constexpr size_t kMaxValues = size_t{1} << 22;  ///< On the stack at once: the entries of a dump, and some.

  explicit DumpStack(RecordBuilder& builder) : builder_(builder) {}

  void PushNone() { stack_.push_back({ValueKind::kNone, 0, DumpKey::kOther, 0, 0}); }
  void PushBool(bool value) { stack_.push_back({ValueKind::kBool, 0, DumpKey::kOther, 0, value}); }
  void PushInt(int64_t value) { stack_.push_back({ValueKind::kInt, 0, DumpKey::kOther, 0, value}); }
  void PushFloat(double value);
  void PushText(uint32_t text) { stack_.push_back({ValueKind::kText, 0, builder_.texts().key(text), 0, text}); }
  void PushEntry(uint32_t entry) { stack_.push_back({ValueKind::kEntry, 3, DumpKey::kOther, 0, entry}); }
  void PushEmptyList() { stack_.push_back({ValueKind::kEmptyList, 1, DumpKey::kOther, 0, 0}); }
  void PushEmptyDict() { stack_.push_back({ValueKind::kEmptyDict, 1, DumpKey::kOther, 0, 0}); }
  /// Whether there is room for another value.
  [[nodiscard]] bool HasRoom() {
    return stack_.size() < kMaxValues || Fail(ErrorCode::kLimitExceeded, "too many values at once");
  }

  [[nodiscard]] bool Mark();
  [[nodiscard]] bool AppendSinceMark();    ///< What lies above the mark goes into the list below it.
  [[nodiscard]] bool SetItemsSinceMark();  ///< The same with keys and values and a dict.
  [[nodiscard]] bool
  TupleSinceMark();  ///< What lies above the mark becomes a tuple, or a list: they are the same here.
  [[nodiscard]] bool DictSinceMark();
  [[nodiscard]] bool Append();   ///< The topmost value goes into the list below it.
  [[nodiscard]] bool SetItem();  ///< The two topmost values go into the dict below them.
  [[nodiscard]] bool Tuple(size_t count);

  /// `max_number`: what a memo can hold at most at this place of the dump.
  [[nodiscard]] bool Memoize(uint32_t number, size_t max_number);
  uint32_t memo_count() const { return memo_count_; }  ///< Numbers that were given.
  [[nodiscard]] bool Get(uint32_t number) {
    if (number >= memo_.size() || memo_[number].kind == ValueKind::kUnset) return FailGet(number);
    Value& remembered = memo_[number];
    stack_.push_back(remembered);
    if (IsContainer(remembered.kind)) stack_.back().memo = remembered.memo = kShared;
    return true;
  }

  /// The one value that is left at the dump's end.
  [[nodiscard]] bool Top(Value& top);
  /// Fills every open list and dict with what there is, for a dump that was cut. An entry or a frame that is not
  /// whole is left out. nullopt when there is nothing.
  std::optional<Value> CloseAll();

  /// What a pickle has numbered so far. A container that is taken out must be marked as such: `memo` = kShared.
  std::span<Value> memo() { return memo_; }
  static constexpr uint32_t kShared = UINT32_MAX;

  Error TakeError() { return std::move(error_); }
  void SetError(Error error) { error_ = std::move(error); }

 private:
  [[nodiscard]] bool Fail(ErrorCode code, std::string message);
  [[nodiscard]] bool FailGet(uint32_t number);
  [[nodiscard]] bool FillList(size_t target, size_t first);
  [[nodiscard]] bool FillDict(size_t target, size_t first);
  [[nodiscard]] bool AfterFill(size_t target);
  [[nodiscard]] bool CloseMarks();
  [[nodiscard]] bool CloseSingleItems();
  [[nodiscard]] bool PopMark(size_t& mark);
  std::span<const Value> From(size_t first) const { return std::span(stack_).subspan(first); }

  RecordBuilder& builder_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // Heights of the stack.
  std::vector<Value> memo_;
  uint32_t memo_count_ = 0;
  Error error_;
};

}  // namespace lockstep::ingest
