#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/hang/job_view.h"
#include "base/nanoseconds.h"
#include "model/evidence/job_evidence.h"

namespace lockstep::hang {

/// One operation as a test writes it down.
struct CallForTest {
  std::string operation = "gloo:all_reduce";
  std::vector<std::vector<int64_t>> inputs = {{64}};
  std::vector<std::vector<int64_t>> outputs = {{64}};
  std::string dtype = "Float";
  std::string function = {};  ///< Of the user's frame in train.py; "" = no stack.
  int32_t line = 1;
  bool done = true;
  bool begun = false;                      ///< On the device, where it is not done.
  std::optional<int64_t> created_ms = {};  ///< Since the job's begin; else a millisecond after the rank's call before.
  std::optional<int64_t> sequence = {};    ///< Else the next of the rank in the group.
  bool is_p2p = false;
};

inline const CallForTest kOpen = {.done = false};
inline const evidence::StackFrame kModule = {"<module>", "/home/user/train.py", 90};

/// The evidence of a small job, made by hand: flight records that agree with each other but for what a test says.
class JobForTest {
 public:
  static constexpr int64_t kBeginNs = 1'700'000'000'000'000'000;

  explicit JobForTest(int32_t world_size) {
    evidence_.world_size = world_size;
    for (int32_t rank = 0; rank < world_size; ++rank) {
      evidence::RankEvidence& made = evidence_.ranks.emplace_back();
      made.rank = rank;
      evidence::FlightRecord& record = made.record.emplace();
      record.version = "2.10";
      record.texts = {""};
      record.size_lists = {{}};
      record.stacks = {{}};
    }
  }

  /// Every member's configuration tells of the group; its number is returned.
  uint32_t Group(const std::string& name, const std::string& description, const std::vector<int32_t>& ranks) {
    const auto group = static_cast<uint32_t>(members_.size());
    members_.push_back(ranks);
    for (const int32_t rank : ranks) {
      local_group_[{rank, group}] = static_cast<uint32_t>(Record(rank).groups.size());
      evidence::FlightGroup& made = Record(rank).groups.emplace_back();
      made.local_id = group;
      made.name = name;
      made.description = description;
      made.ranks = ranks;
    }
    return group;
  }
  /// The group of all ranks.
  uint32_t World() {
    std::vector<int32_t> ranks;
    for (const evidence::RankEvidence& rank : evidence_.ranks) ranks.push_back(rank.rank);
    return Group("0", "default_pg", ranks);
  }

  void Call(int32_t rank, uint32_t group, const CallForTest& call = {}) {
    evidence::FlightRecord& record = Record(rank);
    evidence::FlightEntry entry;
    entry.record_id = record.entries.empty() ? first_id_ : record.entries.back().record_id + 1;
    int64_t& sequence = sequence_[{rank, group}];
    sequence = call.sequence.value_or(sequence + (call.is_p2p ? 0 : 1));
    entry.collective_sequence = sequence;
    int64_t& clock_ms = clock_ms_[rank];
    clock_ms = call.created_ms.value_or(clock_ms + 1);
    entry.created_unix_ns = kBeginNs + clock_ms * kMillisecondNs;
    entry.group = local_group_.at({rank, group});
    entry.operation = Text(record, call.operation);
    entry.input_sizes = Sizes(record, call.inputs);
    entry.output_sizes = Sizes(record, call.outputs);
    entry.input_dtypes = entry.output_dtypes = Text(record, call.dtype);
    entry.state = call.done    ? evidence::EntryState::kCompleted
                  : call.begun ? evidence::EntryState::kStarted
                               : evidence::EntryState::kScheduled;
    entry.retired = call.done ? evidence::Tristate::kYes : evidence::Tristate::kNo;
    entry.is_p2p = call.is_p2p;
    if (!call.function.empty()) {
      record.stacks.push_back({{Text(record, call.function), Text(record, "/home/user/train.py"), call.line}});
      entry.stack = static_cast<uint32_t>(record.stacks.size() - 1);
    }
    record.entries.push_back(entry);
  }
  /// All members make the call.
  void CallAll(uint32_t group, const CallForTest& call = {}) { CallAllBut({}, group, call); }
  void CallAllBut(const std::vector<int32_t>& but, uint32_t group, const CallForTest& call = {}) {
    for (const int32_t rank : members_[group]) {
      if (std::find(but.begin(), but.end(), rank) == but.end()) Call(rank, group, call);
    }
  }

  /// The first entry of each ring gets this id: operations before it were overwritten. Before the first call.
  void WrapRings(int64_t first_id) { first_id_ = first_id; }
  void LoseRecord(int32_t rank) { Rank(rank).record.reset(); }
  void CollectAt(int64_t milliseconds) { evidence_.collected_unix_ns = kBeginNs + milliseconds * kMillisecondNs; }
  void MainThreadIn(int32_t rank, std::vector<evidence::StackFrame> python) {
    evidence::ThreadStack& thread = Rank(rank).stacks.emplace_back();
    thread.is_main = true;
    thread.python = std::move(python);
  }
  void Log(int32_t rank, evidence::LogEventKind kind, const std::string& text,
           std::optional<int64_t> milliseconds = {}) {
    evidence::LogEvent& event = Rank(rank).log.emplace_back();
    event.kind = kind;
    event.text = text;
    if (milliseconds) event.time_unix_ns = kBeginNs + *milliseconds * kMillisecondNs;
  }

  evidence::RankEvidence& Rank(int32_t rank) { return evidence_.ranks[static_cast<size_t>(rank)]; }
  evidence::FlightRecord& Record(int32_t rank) { return *Rank(rank).record; }
  /// The group as a member's record describes it.
  evidence::FlightGroup& GroupOf(int32_t rank, uint32_t group) {
    return Record(rank).groups[local_group_.at({rank, group})];
  }
  evidence::JobEvidence& evidence() { return evidence_; }
  /// Lives no longer than the job.
  JobView View() const { return MakeJobView(evidence_, 1); }

 private:
  static uint32_t Text(evidence::FlightRecord& record, const std::string& text) { return Add(record.texts, text); }
  static uint32_t Sizes(evidence::FlightRecord& record, const std::vector<std::vector<int64_t>>& sizes) {
    return Add(record.size_lists, sizes);
  }
  template <typename Value>
  static uint32_t Add(std::vector<Value>& values, const Value& value) {
    const auto place = std::find(values.begin(), values.end(), value);
    if (place != values.end()) return static_cast<uint32_t>(place - values.begin());
    values.push_back(value);
    return static_cast<uint32_t>(values.size() - 1);
  }

  evidence::JobEvidence evidence_;
  std::vector<std::vector<int32_t>> members_;                     ///< By group.
  std::map<std::pair<int32_t, uint32_t>, uint32_t> local_group_;  ///< By rank and group: index in its record.
  std::map<std::pair<int32_t, uint32_t>, int64_t> sequence_;
  std::map<int32_t, int64_t> clock_ms_;
  int64_t first_id_ = 0;
};

}  // namespace lockstep::hang
