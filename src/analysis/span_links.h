#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/run.h"

namespace lockstep::analysis {

/// A span or request with a W3C trace context.
struct SpanPart {
  size_t rank_index = 0;
  std::optional<model::RowRef> row = {};  ///< Of a span; absent: it is a request, which lies on no track.
  uint32_t index = 0;                     ///< Into the rank's linked_spans or, of a request, requests.
  int64_t start_ns = 0;                   ///< Common clock.
  int64_t end_ns = 0;
  model::TraceContext context = {};
};

/// From who called to who was called: indices into SpanLinks::parts.
struct SpanLink {
  uint32_t caller = 0;
  uint32_t called = 0;
};

struct SpanLinks {
  std::vector<SpanPart> parts;  ///< By rank: spans by start, then requests.
  std::vector<SpanLink> links;  ///< By the called one.
  /// Left out: the called one begins before its caller, as clocks of two hosts may say. A link goes forward in time.
  uint64_t backward_count = 0;
};

/// From every part that `takes(rank index, start on the rank's own clock)` accepts to each that names it as its parent,
/// whichever process and rank that is of; not to what lies inside its caller on the same thread, where nesting says it.
/// Spans that lie on no track are left out. Cost: O(n log n) in the parts.
SpanLinks FindSpanLinks(const model::Run& run, const std::function<bool(size_t, int64_t)>& takes);

}  // namespace lockstep::analysis
