#pragma once

#include <cstdint>

#include "model/name_table.h"
#include "model/run.h"

namespace lockstep::ingest {

/// What part of a span trace another trace takes over.
enum class SpanScope : uint8_t {
  kOwnTime,  ///< Of a profiler's window: spans that reach beyond it are cut there, so that no figure's time grows.
  kAll,      ///< Of another process of the rank.
};

/// Puts what `spans` holds into `into`, a trace of the same rank: tracks (sorted into those of the same thread),
/// counters, requests, linked spans. Steps go in only where `into` has none of its own. Out: how many events were left
/// out for lying outside.
uint64_t JoinSpans(const model::RankTrace& spans, const model::NameTable& names, SpanScope scope,
                   model::RankTrace* into);

}  // namespace lockstep::ingest
