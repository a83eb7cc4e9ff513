#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ingest/torch_trace/event_text.h"
#include "ingest/torch_trace/trace_assembler.h"
#include "ingest/torch_trace/track_writer.h"

namespace lockstep::ingest {

/// The kind of value between two literals of an event.
enum class SlotKind : uint8_t {
  kNone,
  kName,        ///< String without escapes; the event's name.
  kInteger,     ///< Decimal integer of at most 16 digits, perhaps negative.
  kTime,        ///< Decimal microseconds: at most 16 digits, and 1 to 3 digits of fraction or none.
  kSkipNumber,  ///< A number that is not read.
  kSkipString,  ///< A string that is not read.
  kSkipNested,  ///< An array or object that is not read.
};

/// Which value a slot fills.
enum class SlotRole : uint8_t {
  kProcessId,
  kThreadId,
  kStart,
  kDuration,
  kCorrelation,
  kBytes,
  kAllocated,
  kReserved,
  kDeviceType,
  kDeviceId,
  kNone,
};
inline constexpr size_t kSlotRoleCount = 11;

/// What follows a node: more nodes, unread text up to the event's closing brace, or the event's end.
enum class Ending : uint8_t { kContinue, kSkipTail, kEnd };

/// One step of a template: at most 64 bytes of literal text, then a slot. Nodes form a trie, so that templates share
/// beginnings.
struct TemplateNode {
  static constexpr size_t kLiteralBytes = 64;
  static constexpr int32_t kNoNode = -1;

  alignas(64) char literal[kLiteralBytes] = {};
  uint8_t length = 0;
  SlotKind slot = SlotKind::kNone;
  SlotRole role = SlotRole::kNone;
  Ending ending = Ending::kContinue;
  bool quoted = false;      ///< The slot's closing quote follows; for kSkipTail.
  uint8_t open_braces = 0;  ///< Not yet closed after the slot; for kSkipTail.
  TraceAssembler::Understood::Kind kind = TraceAssembler::Understood::Kind::kIgnored;  ///< At endings.
  model::Category category = model::Category::kOther;                                  ///< At endings.
  model::Lane lane = model::Lane::kOther;                                              ///< At endings.
  int32_t first_child = kNoNode;
  int32_t next_sibling = kNoNode;
  int32_t hot_child = kNoNode;  ///< The child that matched last; tried first. At endings: the root child that followed.
  // The track that the last event of this ending went to.
  int64_t process_id = -1;
  int64_t thread_id = -1;
  TrackWriter* track = nullptr;
};

/// Shapes of events, learned from events that the general path has accepted. A program writes its events from a handful
/// of format strings, so a few dozen templates cover a file; an event that fits none takes the general path, which is
/// always right. A template fixes every byte that is not a value (keys, punctuation, white space) up to the last value
/// that anything reads and what must end it; behind that only strings and braces are followed to the event's end.
class EventTemplates {
 public:
  EventTemplates();

  /// Learns the shape of an event that begins at `begin` and whose fields are `fields`. Does nothing when the shape is
  /// known, cannot repeat, or the limits on nodes are reached.
  void Learn(const char* begin, const char* end, const std::vector<Field>& fields,
             const TraceAssembler::Understood& understood);

  std::vector<TemplateNode>& nodes() { return nodes_; }
  static constexpr int32_t kRoot = 0;

 private:
  struct Path;
  int32_t Insert(int32_t parent, const TemplateNode& node);

  std::vector<TemplateNode> nodes_;
};

}  // namespace lockstep::ingest
