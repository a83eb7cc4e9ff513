#include "analysis/hang/record_draft.h"

#include <algorithm>
#include <limits>

namespace lockstep::hang {
namespace {

using evidence::EntryState;
using evidence::FlightEntry;
using evidence::FlightRecord;
using evidence::kNotRecorded;
using evidence::Tristate;

/// No job counts so far, and sums with numbers up to here do not overflow.
constexpr int64_t kMaxSequence = INT64_MAX / 4;

/// -1 for an empty list: not recorded, or nothing to send.
int64_t ElementCount(const std::vector<std::vector<int64_t>>& shapes) {
  if (shapes.empty()) {
    return -1;
  }
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / 2;
  int64_t sum = 0;
  for (const std::vector<int64_t>& shape : shapes) {
    int64_t count = 1;
    for (const int64_t extent : shape) {
      if (extent <= 0) {
        count = 0;
        break;
      }
      if (count > kMax / extent) {
        return kMax;  // No tensor has as many; equal nonsense still compares equal.
      }
      count *= extent;
    }
    sum = sum > kMax - count ? kMax : sum + count;
  }
  return sum;
}

struct Key {
  uint32_t operation, input_sizes, output_sizes, input_dtypes, output_dtypes;
  bool operator==(const Key&) const = default;
};

/// Open addressing: a record has a few dozen different operations and thousands of entries.
class SignatureTable {
 public:
  SignatureTable() : slots_(256) {}
  /// Value of `key`, or `next` after storing it.
  uint32_t Find(const Key& key, uint32_t next) {
    if ((used_ + 1) * 2 > slots_.size()) {
      Grow();
    }
    Slot& slot = SlotOf(key);
    if (slot.value == kNone) {
      slot = {key, next};
      ++used_;
    }
    return slot.value;
  }

 private:
  struct Slot {
    Key key{};
    uint32_t value = kNone;
  };
  Slot& SlotOf(const Key& key) {
    uint64_t hash = key.operation;
    for (const uint32_t part : {key.input_sizes, key.output_sizes, key.input_dtypes, key.output_dtypes}) {
      hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    }
    size_t index = hash & (slots_.size() - 1);
    while (slots_[index].value != kNone && !(slots_[index].key == key)) {
      index = (index + 1) & (slots_.size() - 1);
    }
    return slots_[index];
  }
  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value != kNone) {
        SlotOf(slot.key) = slot;
      }
    }
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

Signature SignatureOf(const FlightEntry& entry, const Operation& operation,
                      const std::vector<int64_t>& element_counts) {
  Signature signature;
  signature.kind = operation.kind;
  const int64_t input = element_counts[entry.input_sizes];
  const int64_t output = element_counts[entry.output_sizes];
  const uint32_t dtype = entry.input_dtypes != 0 ? entry.input_dtypes : entry.output_dtypes;
  switch (operation.kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kAllGather:
    case OperationKind::kReduce:
    case OperationKind::kGather:
    case OperationKind::kBroadcast:
      signature.elements = input >= 0 ? input : output;
      signature.dtype = dtype;
      break;
    case OperationKind::kReduceScatter:
      signature.elements = output >= 0 ? output : input;
      signature.dtype = dtype;
      break;
    case OperationKind::kScatter: signature.elements = output; break;  // Only the root has inputs.
    case OperationKind::kAllToAll: signature.dtype = dtype; break;     // Uneven splits are legal.
    case OperationKind::kBarrier:
    case OperationKind::kCoalesced:
    case OperationKind::kSend:
    case OperationKind::kRecv: break;
    case OperationKind::kOther: signature.name = entry.operation; break;
  }
  return signature;
}

/// Finds the user's frames in stacks. What a text is, is found out once: stacks share most of their frames.
class SiteFinder {
 public:
  explicit SiteFinder(const FlightRecord& record) : record_(record), texts_(record.texts.size()) {}

  UserSite Find(uint32_t stack) {
    UserSite site;
    for (const evidence::FlightFrame& frame : record_.stacks[stack]) {
      const std::string& file = record_.texts[frame.file];
      TextFacts& facts = texts_[frame.file];
      if (!facts.is_judged) {
        facts.is_judged = true;
        facts.is_user_file = IsUserFile(file);
      }
      if (!facts.is_user_file) {
        continue;
      }
      if (site.file.empty()) {
        site.function = record_.texts[frame.function];
        site.file = file;
        site.line = frame.line;
      } else {
        const uint64_t hash = HashOf(frame.function) ^ (HashOf(frame.file) << 1);
        site.callers = (site.callers ^ hash ^ static_cast<uint64_t>(frame.line)) * 0x9E3779B97F4A7C15ULL;
      }
    }
    return site;
  }

 private:
  struct TextFacts {
    bool is_judged = false;
    bool is_user_file = false;
    bool is_hashed = false;
    uint64_t hash = 0;
  };

  uint64_t HashOf(uint32_t text) {
    TextFacts& facts = texts_[text];
    if (!facts.is_hashed) {
      facts.is_hashed = true;
      facts.hash = std::hash<std::string>{}(record_.texts[text]);
    }
    return facts.hash;
  }

  const FlightRecord& record_;
  std::vector<TextFacts> texts_;
};

void AddCall(GroupDraft& group, const Call& call, std::vector<SignatureDraft>& signatures) {
  if (!group.calls.empty()) {
    Call& last = group.calls.back();
    if (last.sequence == call.sequence) {  // Members of one coalesced launch.
      Signature joined;
      joined.kind = OperationKind::kCoalesced;
      const Signature& before = signatures[last.signature].signature;
      if (before.kind == OperationKind::kCoalesced) {
        joined.parts = before.parts;
      } else {
        joined.parts = {last.signature};
      }
      if (signatures[call.signature].signature.kind != OperationKind::kCoalesced) {
        joined.parts.push_back(call.signature);
      }
      if (joined.parts.size() == 1) {
        last.done = last.done && call.done;  // The closing "coalesced" entry of a launch of one operation.
        return;
      }
      // Launches repeat: look among the latest first.
      for (size_t i = signatures.size(); i-- > 1 && signatures.size() - i < 64;) {
        if (signatures[i].signature == joined) {
          last.signature = static_cast<uint32_t>(i);
          last.done = last.done && call.done;
          return;
        }
      }
      signatures.push_back({std::move(joined)});
      last.signature = static_cast<uint32_t>(signatures.size() - 1);
      last.done = last.done && call.done;
      return;
    }
    group.sorted = group.sorted && last.sequence < call.sequence;
  }
  group.calls.push_back(call);
}

}  // namespace

bool IsUserFile(std::string_view file) {
  if (file.empty() || file.front() == '<') {
    return false;
  }
  if (file == "??" || file.ends_with(".so") || file.find(".so.") != std::string_view::npos || file.ends_with(".cpp") ||
      file.ends_with(".cc") || file.ends_with(".h") || file.ends_with(".c")) {
    return false;
  }
  const bool in_packages =
      file.find("site-packages/") != std::string_view::npos || file.find("dist-packages/") != std::string_view::npos;
  if (in_packages) {
    const size_t site = file.rfind("site-packages/");
    const size_t dist = file.rfind("dist-packages/");
    const size_t from = site != std::string_view::npos ? site + 14 : dist + 14;
    const std::string_view package = file.substr(from);
    return !package.starts_with("torch/") && !package.starts_with("lockstep/");
  }
  const size_t library = file.find("/lib/python3");
  const size_t library64 = file.find("/lib64/python3");
  if (library != std::string_view::npos || library64 != std::string_view::npos) {
    return false;
  }
  return !file.starts_with("torch/") && file.find("/torch/distributed/") == std::string_view::npos &&
         file.find("/lockstep/_hang.py") == std::string_view::npos;
}

RecordDraft DraftRecord(const FlightRecord& record) {
  RecordDraft draft;
  draft.groups.resize(record.groups.size());
  draft.signatures.emplace_back();
  draft.sites.emplace_back();
  if (record.entries.empty()) {
    draft.active_only = true;
    draft.ring_wrapped = true;  // Nothing tells that it is not.
    return draft;
  }
  std::vector<int64_t> element_counts(record.size_lists.size());
  for (size_t i = 0; i < record.size_lists.size(); ++i) {
    element_counts[i] = ElementCount(record.size_lists[i]);
  }
  std::vector<Operation> operations(record.texts.size());
  std::vector<char> is_read(record.texts.size(), 0);
  std::vector<uint32_t> site_of_stack(record.stacks.size(), kNone);
  SiteFinder site_finder(record);
  SignatureTable table;
  draft.active_only = true;
  const int64_t first_id = record.entries.front().record_id;
  draft.ring_wrapped = first_id == kNotRecorded ? record.entries.size() >= 2000 : first_id > 0;
  int64_t newest_id = kNotRecorded;
  for (uint32_t i = 0; i < record.entries.size(); ++i) {
    const FlightEntry& entry = record.entries[i];
    if (is_read[entry.operation] == 0) {
      operations[entry.operation] = ReadOperation(record.texts[entry.operation]);
      is_read[entry.operation] = 1;
    }
    const Operation& operation = operations[entry.operation];
    GroupDraft& group = draft.groups[entry.group];
    const bool is_hook = IsHookBackend(operation.backend);
    const bool done = entry.state == EntryState::kCompleted || entry.retired == Tristate::kYes;
    draft.active_only = draft.active_only && !done;
    if (entry.created_unix_ns != kNotRecorded) {
      draft.oldest_created_ns =
          std::min(draft.oldest_created_ns.value_or(entry.created_unix_ns), entry.created_unix_ns);
      draft.newest_created_ns =
          std::max(draft.newest_created_ns.value_or(entry.created_unix_ns), entry.created_unix_ns);
    }
    if (entry.record_id == kNotRecorded || newest_id == kNotRecorded || entry.record_id >= newest_id) {
      newest_id = entry.record_id;
      draft.newest_entry = i;
    }
    uint32_t& site = site_of_stack[entry.stack];
    if (site == kNone) {
      const UserSite user = entry.stack == 0 ? UserSite{} : site_finder.Find(entry.stack);
      site = 0;
      if (!user.file.empty()) {
        site = static_cast<uint32_t>(draft.sites.size());
        draft.sites.push_back(user);
      }
    }
    if (operation.kind == OperationKind::kSend || operation.kind == OperationKind::kRecv) {
      P2pCall call;
      call.order = i;
      call.peer = operation.peer;
      call.entry = i;
      call.site = site;
      call.is_send = operation.kind == OperationKind::kSend;
      call.elements = element_counts[call.is_send ? entry.input_sizes : entry.output_sizes];
      call.done = done && !is_hook;
      group.on_device = group.on_device || CompletesOnDevice(operation.backend);
      group.p2p.push_back(call);
      continue;
    }
    if (entry.is_p2p) {
      continue;  // The closing "coalesced" entry of a batch of sends and receives: they stand for themselves.
    }
    if (is_hook) {
      group.has_hook = true;
    } else if (!group.has_native) {
      group.has_native = true;
      group.on_device = CompletesOnDevice(operation.backend);
    }
    if (entry.operation_id != kNotRecorded && !is_hook) {
      group.newest_operation_id = std::max(group.newest_operation_id, entry.operation_id);
    }
    if (entry.collective_sequence == kNotRecorded || entry.collective_sequence > kMaxSequence) {
      continue;
    }
    const Key key = {entry.operation, entry.input_sizes, entry.output_sizes, entry.input_dtypes, entry.output_dtypes};
    const auto next = static_cast<uint32_t>(draft.signatures.size());
    const uint32_t signature = table.Find(key, next);
    if (signature == next) {
      draft.signatures.push_back({SignatureOf(entry, operation, element_counts)});
    }
    Call call;
    call.sequence = entry.collective_sequence;
    call.signature = signature;
    call.entry = i;
    call.site = site;
    call.done = done;
    if (is_hook) {
      call.done = true;  // Says nothing: the hook retires what it records at once.
    }
    // A hook numbers operations on its own, so that its entries and native ones must not share a track. Native entries
    // of a group always come with the first operation, before or after the hook's.
    if (is_hook && group.has_native) {
      continue;
    }
    if (!is_hook && group.has_hook && group.calls.size() > 0 &&
        IsHookBackend(operations[record.entries[group.calls.front().entry].operation].backend)) {
      group.calls.clear();
      group.sorted = true;
    }
    AddCall(group, call, draft.signatures);
  }
  for (GroupDraft& group : draft.groups) {
    if (!group.sorted) {
      std::stable_sort(group.calls.begin(), group.calls.end(),
                       [](const Call& a, const Call& b) { return a.sequence < b.sequence; });
      group.calls.erase(std::unique(group.calls.begin(), group.calls.end(),
                                    [](const Call& a, const Call& b) { return a.sequence == b.sequence; }),
                        group.calls.end());
    }
  }
  return draft;
}

}  // namespace lockstep::hang
