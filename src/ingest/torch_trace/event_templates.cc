#include "ingest/torch_trace/event_templates.h"

#include <algorithm>
#include <cstring>

#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest {
namespace {

using Kind = TraceAssembler::Understood::Kind;

constexpr size_t kMaxNodes = 1024;
constexpr int kMaxSiblings = 32;
constexpr size_t kMaxEventBytes = 4096;

uint32_t Bit(SlotRole role) { return uint32_t{1} << static_cast<uint32_t>(role); }

/// Values that must be read from an event of this kind; once all are, the rest of the event is skipped.
uint32_t NeededRoles(Kind kind, model::Lane lane) {
  constexpr auto kNameBit = uint32_t{1} << static_cast<uint32_t>(SlotRole::kNone);
  switch (kind) {
    case Kind::kComplete: {
      const uint32_t place = Bit(SlotRole::kProcessId) | Bit(SlotRole::kThreadId) | Bit(SlotRole::kStart) |
                             Bit(SlotRole::kDuration) | kNameBit;
      return HasCorrelation(lane) ? place | Bit(SlotRole::kCorrelation) : place;
    }
    case Kind::kMemory:
      return Bit(SlotRole::kStart) | Bit(SlotRole::kBytes) | Bit(SlotRole::kAllocated) | Bit(SlotRole::kReserved) |
             Bit(SlotRole::kDeviceType) | Bit(SlotRole::kDeviceId) | kNameBit;
    case Kind::kIgnored:
    case Kind::kOther: return 0;
  }
  return 0;
}

struct Slot {
  SlotKind kind = SlotKind::kNone;
  SlotRole role = SlotRole::kNone;
  bool constant = false;  ///< The value is part of the literal text.
};

Slot CompleteSlot(const Field& field, model::Lane lane) {
  const std::string_view key = field.key;
  if (!field.in_args) {
    if (key == "ph" || key == "cat") return {SlotKind::kNone, SlotRole::kNone, true};
    if (key == "name") return {SlotKind::kName, SlotRole::kNone};
    if (key == "pid") return {SlotKind::kInteger, SlotRole::kProcessId};
    if (key == "tid") return {SlotKind::kInteger, SlotRole::kThreadId};
    if (key == "ts") return {SlotKind::kTime, SlotRole::kStart};
    if (key == "dur") return {SlotKind::kTime, SlotRole::kDuration};
  } else if (key == "correlation" && HasCorrelation(lane)) {
    return {SlotKind::kInteger, SlotRole::kCorrelation};
  }
  return {};
}

Slot MemorySlot(const Field& field) {
  const std::string_view key = field.key;
  if (!field.in_args) {
    if (key == "ph" || key == "cat" || key == "name") return {SlotKind::kNone, SlotRole::kNone, true};
    if (key == "ts") return {SlotKind::kTime, SlotRole::kStart};
    return {};
  }
  if (key == "Bytes") return {SlotKind::kInteger, SlotRole::kBytes};
  if (key == "Total Allocated") return {SlotKind::kInteger, SlotRole::kAllocated};
  if (key == "Total Reserved") return {SlotKind::kInteger, SlotRole::kReserved};
  if (key == "Device Type") return {SlotKind::kInteger, SlotRole::kDeviceType};
  if (key == "Device Id") return {SlotKind::kInteger, SlotRole::kDeviceId};
  return {};
}

/// How a value that nothing reads is passed over.
Slot SkipSlot(const Field& field) {
  switch (field.kind) {
    case ValueKind::kNumber: return {SlotKind::kSkipNumber, SlotRole::kNone};
    case ValueKind::kString: return {SlotKind::kSkipString, SlotRole::kNone};
    case ValueKind::kArray:
    case ValueKind::kObject: return {SlotKind::kSkipNested, SlotRole::kNone};
    case ValueKind::kNonFinite:
    case ValueKind::kTrue:
    case ValueKind::kFalse:
    case ValueKind::kNull:
    case ValueKind::kUnknown: return {SlotKind::kNone, SlotRole::kNone, true};
  }
  return {SlotKind::kNone, SlotRole::kNone, true};
}

Slot SlotOf(const Field& field, Kind kind, model::Lane lane) {
  Slot slot;
  if (kind == Kind::kComplete)
    slot = CompleteSlot(field, lane);
  else if (kind == Kind::kMemory)
    slot = MemorySlot(field);
  else if (!field.in_args && field.key == "ph")
    slot.constant = true;
  if (slot.constant || slot.kind != SlotKind::kNone) return slot;
  return SkipSlot(field);
}

bool IsPlace(const Slot& slot) { return slot.role == SlotRole::kProcessId || slot.role == SlotRole::kThreadId; }

/// A slot reads only what was written as its kind of value.
bool Fits(const Slot& slot, const Field& field) {
  if (IsPlace(slot) && field.kind == ValueKind::kString) return true;
  if (slot.kind == SlotKind::kName) return field.kind == ValueKind::kString;
  if (slot.kind == SlotKind::kInteger || slot.kind == SlotKind::kTime) return field.kind == ValueKind::kNumber;
  return true;
}

}  // namespace

/// Collects literal text and cuts it into nodes.
struct EventTemplates::Path {
  EventTemplates* templates;
  int32_t at = kRoot;

  void Add(std::string_view literal, TemplateNode node) {
    while (at != TemplateNode::kNoNode) {
      const size_t taken = std::min(literal.size(), TemplateNode::kLiteralBytes);
      const bool last = taken == literal.size();
      TemplateNode part;
      if (last) part = node;
      std::memcpy(part.literal, literal.data(), taken);
      part.length = static_cast<uint8_t>(taken);
      at = templates->Insert(at, part);
      literal.remove_prefix(taken);
      if (last) return;
    }
  }
};

EventTemplates::EventTemplates() { nodes_.emplace_back(); }

int32_t EventTemplates::Insert(int32_t parent, const TemplateNode& node) {
  int sibling_count = 0;
  int32_t last = TemplateNode::kNoNode;
  for (int32_t i = nodes_[static_cast<size_t>(parent)].first_child; i != TemplateNode::kNoNode;
       i = nodes_[static_cast<size_t>(i)].next_sibling) {
    const TemplateNode& known = nodes_[static_cast<size_t>(i)];
    if (known.length == node.length && known.slot == node.slot && known.role == node.role &&
        known.ending == node.ending && std::memcmp(known.literal, node.literal, node.length) == 0) {
      return i;
    }
    last = i;
    ++sibling_count;
  }
  if (sibling_count >= kMaxSiblings || nodes_.size() >= kMaxNodes) return TemplateNode::kNoNode;
  const auto added = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(node);
  if (last == TemplateNode::kNoNode)
    nodes_[static_cast<size_t>(parent)].first_child = added;
  else
    nodes_[static_cast<size_t>(last)].next_sibling = added;
  if (nodes_[static_cast<size_t>(parent)].hot_child == TemplateNode::kNoNode)
    nodes_[static_cast<size_t>(parent)].hot_child = added;
  return added;
}

void EventTemplates::Learn(const char* begin, const char* end, const std::vector<Field>& fields,
                           const TraceAssembler::Understood& understood) {
  if (!understood.repeatable || static_cast<size_t>(end - begin) > kMaxEventBytes) return;
  const model::Lane lane = LaneOf(understood.category);
  uint32_t missing = NeededRoles(understood.kind, lane);
  Path path{.templates = this};
  const char* literal = begin;
  bool phase_seen = false;
  // Without a category of its own an event is fixed to its end: another one's category could lie in what is skipped.
  bool category_seen = understood.kind != Kind::kComplete && understood.kind != Kind::kMemory;
  for (const Field& field : fields) {
    // "args" itself: its members are fields of their own.
    if (!field.in_args && field.key == "args" && field.kind == ValueKind::kObject) continue;
    const Slot slot = SlotOf(field, understood.kind, lane);
    if (!Fits(slot, field)) return;
    phase_seen = phase_seen || (!field.in_args && field.key == "ph");
    category_seen = category_seen || (!field.in_args && field.key == "cat");
    const char* value_end = field.raw.data() + field.raw.size();
    TemplateNode node;
    node.slot = slot.kind;
    node.role = slot.role;
    if (!slot.constant) {
      const uint32_t seen = slot.kind == SlotKind::kName   ? uint32_t{1} << static_cast<uint32_t>(SlotRole::kNone)
                            : slot.role != SlotRole::kNone ? Bit(slot.role)
                                                           : 0;
      // The first of equal keys counts, so a second one is only passed over.
      if (seen != 0 && (missing & seen) == 0) return;
      missing &= ~seen;
    } else if (understood.kind == Kind::kMemory && field.key == "name") {
      missing &= ~(uint32_t{1} << static_cast<uint32_t>(SlotRole::kNone));
    }
    const bool complete = missing == 0 && phase_seen && category_seen;
    if (slot.constant && !complete) continue;  // Stays in the literal that the next slot begins with.
    if (complete) {
      node.ending = Ending::kSkipTail;
      node.quoted = !slot.constant && field.kind == ValueKind::kString;
      node.open_braces = field.in_args ? 2 : 1;
      node.kind = understood.kind;
      node.category = understood.category;
      node.lane = lane;
    }
    // Nothing may hide behind the literal: a constant string's literal ends behind its closing quote.
    const char* literal_end = slot.constant ? value_end + (field.kind == ValueKind::kString ? 1 : 0) : field.raw.data();
    if (IsPlace(slot) && field.kind == ValueKind::kString) literal_end += PlacePrefixLength(field.raw);
    path.Add({literal, static_cast<size_t>(literal_end - literal)}, node);
    if (complete || path.at == TemplateNode::kNoNode) return;
    literal = value_end;
  }
  if (!phase_seen) return;
  // A value that is needed in some events is absent here: the whole event is fixed, to its end.
  TemplateNode node;
  node.ending = Ending::kEnd;
  node.kind = understood.kind;
  node.category = understood.category;
  node.lane = lane;
  const uint32_t optional = Bit(SlotRole::kCorrelation) | Bit(SlotRole::kAllocated) | Bit(SlotRole::kReserved) |
                            Bit(SlotRole::kDeviceType) | Bit(SlotRole::kDeviceId);
  if ((missing & ~optional) != 0) return;
  path.Add({literal, static_cast<size_t>(end - literal)}, node);
}

}  // namespace lockstep::ingest
