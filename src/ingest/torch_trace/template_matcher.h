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
  NameId last_name;
  /// By NameId: the name that followed it last time. Traces repeat themselves, so this is right for most events.
  std::vector<uint32_t> next_name;
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
