#pragma once

#include <cstdint>
#include <vector>

#include "ingest/torch_trace/event_templates.h"
#include "ingest/torch_trace/text_window.h"
#include "ingest/torch_trace/trace_assembler.h"

namespace lockstep::ingest {

/// What a matcher works on; kept between windows.
struct MatchState {
  EventTemplates* templates = nullptr;
  TraceAssembler* assembler = nullptr;
  int32_t last_ending = TemplateNode::kNoNode;  ///< Node that ended the last event.
  /// Names that followed two others last time, by a hash of the two. Traces repeat themselves, so this is right for
  /// most events, and comparing with a guess is cheaper than looking a name up.
  static constexpr uint32_t kPredictionBits = 13;
  std::vector<uint32_t> predictions = std::vector<uint32_t>(size_t{1} << kPredictionBits, 0);
  uint32_t prediction_slot = 0;
  uint32_t last_name = 0;

  void Remember(NameId name) {
    predictions[prediction_slot] = name.value;
    prediction_slot = (last_name * 0x85EBCA6BU + name.value * 0x9E3779B1U) >> (32 - kPredictionBits);
    last_name = name.value;
  }
};

/// Reads events of known shape from `cursor`, which is on an event's '{', and the separators between them. Stops in
/// front of the first event that it cannot take whole (unknown shape, damage, end of the window), or at what is no
/// event. Returns where it stopped. `end` is the end of the text; TextWindow's slack and padding surround it.
using MatchFunction = const char* (*)(MatchState*, const char* cursor, const char* end);

#if defined(__x86_64__)
const char* MatchEventsAvx2(MatchState* state, const char* cursor, const char* end);
const char* MatchEventsAvx512(MatchState* state, const char* cursor, const char* end);
#endif

/// The fastest matcher that this processor runs, or null: then every event takes the general path, which is right and
/// slower. LOCKSTEP_SIMD=none|avx2|avx512 in the environment sets an upper bound (tests compare them).
MatchFunction ChooseMatcher();

}  // namespace lockstep::ingest
