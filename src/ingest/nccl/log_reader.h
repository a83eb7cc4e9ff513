#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ingest/nccl/log_line.h"
#include "ingest/nccl/words.h"
#include "model/evidence/nccl_job.h"

namespace lockstep::ingest {

inline constexpr size_t kMostUnknownSamples = 20;  ///< Of a job's lines of unknown kind.

/// A line while it is handled, and where it stands.
struct NcclLineInHand {
  NcclLogLine line;
  std::string_view message;  ///< Without "[Rank 3] ".
  uint64_t number = 0;       ///< From 1.
  uint32_t process = 0;
};

/// The state of reading one file: what handlers of events fill in.
class NcclLogReader {
 public:
  NcclLogReader(std::string_view file_name, std::optional<int32_t> rank);

  void Read(std::string_view text);
  evidence::NcclJob Finish();

  // For the handlers of events.
  evidence::NcclJob& job() { return job_; }
  evidence::NcclProcess& Process(const NcclLineInHand& hand) { return job_.processes[hand.process]; }
  evidence::NcclPlace Place(const NcclLineInHand& hand) const { return {0, hand.number}; }
  std::optional<int64_t> Time(const NcclLineInHand& hand) const { return PrefixTime(hand.line.prefix); }
  uint32_t Intern(std::string_view text);

  /// The communicator that this thread creates or created last; a new one where the thread has none and the process
  /// has none that it could be.
  evidence::NcclMember& MemberOfThread(const NcclLineInHand& hand);
  /// The same for lines that only creation prints: never one that is complete.
  evidence::NcclMember& MemberInCreation(const NcclLineInHand& hand);
  /// The one that has these ranks in a connection.
  evidence::NcclMember& MemberOfConnection(const NcclLineInHand& hand, int32_t from, int32_t to);
  /// By its pointer; 0 = unknown, which gives the thread's. `create_anew`: its creation starts here.
  evidence::NcclMember& MemberOfPointer(const NcclLineInHand& hand, uint64_t pointer, bool create_anew);
  void CloseThread(const NcclLineInHand& hand);  ///< Its communicator is complete; the next line may be another's.

  /// Whether another connection, operation or error may still be kept.
  bool MayKeepConnection() { return connection_count_++ < kConnectionLimit; }
  bool MayKeepOperation() { return operation_count_++ < kOperationLimit; }
  bool MayKeepError() const { return job_.errors.size() + job_.call_results.size() < kErrorLimit; }

  static constexpr uint64_t kConnectionLimit = 4'000'000;
  static constexpr uint64_t kOperationLimit = 4'000'000;
  static constexpr size_t kErrorLimit = 100'000;
  static constexpr size_t kMemberLimit = 200'000;
  static constexpr size_t kProcessLimit = 100'000;

 private:
  using ProcessKey = std::tuple<std::string, int64_t, int32_t>;
  struct Thread {
    uint32_t member = UINT32_MAX;
    bool closed = false;
  };

  void Line(std::string_view raw, uint64_t number, bool cut);
  void BareLine(std::string_view line, uint64_t number);
  std::optional<uint32_t> FindProcess(const NcclLogLine& line);
  uint32_t NewMember(uint32_t process);
  void Count(const char* kind) { ++job_.kinds[kind]; }

  evidence::NcclJob job_;
  std::optional<int32_t> rank_;
  std::map<ProcessKey, uint32_t> processes_;
  std::unordered_map<std::string, uint32_t> texts_;
  std::map<std::pair<uint32_t, int64_t>, Thread> threads_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> members_by_pointer_;
  std::map<uint32_t, std::vector<uint32_t>> members_of_process_;
  uint64_t connection_count_ = 0;
  uint64_t operation_count_ = 0;
  std::map<int32_t, std::pair<std::string, uint64_t>> bare_versions_;  ///< By launcher's rank, -1 = none: text, line.
};

/// Handles the message of an event; false = it has not this event's form after all.
using NcclEventHandler = bool (*)(NcclLogReader& reader, const NcclLineInHand& hand, Words words);

/// One row of the catalogue of events. `mark` stands at the message's beginning, or anywhere in it.
struct NcclEventRule {
  const char* name;
  std::string_view mark;
  bool anywhere = false;
  NcclEventHandler handler = nullptr;  ///< nullptr: known and of no interest.
};

/// The kind of the first rule that knows the message, having handled it; nullptr = none does.
const char* HandleNcclEvent(NcclLogReader& reader, const NcclLineInHand& hand);

/// Classifies a line of level WARN, or one of level INFO that tells of a failure. The kind, or nullptr (of INFO only).
const char* HandleNcclError(NcclLogReader& reader, const NcclLineInHand& hand);

}  // namespace lockstep::ingest
