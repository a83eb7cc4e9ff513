#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/perfetto/sequence_state.h"
#include "ingest/torch_trace/event_text.h"

namespace lockstep::ingest::perfetto {

/// The args of one event as fields, as the JSON reader would have found them: lists and dictionaries as JSON text,
/// numbers as text. Reused from event to event; views are valid until the next Clear.
class Annotations {
 public:
  void Clear();
  /// Takes a DebugAnnotation. False when it is not a message, or nests too deep.
  bool Add(std::string_view message, const SequenceState& state);
  /// Takes a name and a text value.
  void AddText(std::string_view key, std::string_view value, ValueKind kind = ValueKind::kString);
  const std::vector<Field>& fields() const { return fields_; }
  const Field* Find(std::string_view key) const;

 private:
  std::string_view Keep(std::string text);

  std::vector<Field> fields_;
  std::deque<std::string> texts_;
  size_t text_count_ = 0;
};

}  // namespace lockstep::ingest::perfetto
