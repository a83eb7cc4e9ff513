#pragma once

#include <gmock/gmock.h>

#include <cstdint>

#include "model/stages/rank_stages.h"
#include "model/stages/stage.h"

namespace lockstep::ingest::span_follow {

/// Matches a StageSpan.
inline auto Span(model::Stage stage, int64_t ns) {
  return ::testing::AllOf(::testing::Field(&model::StageSpan::stage, stage),
                          ::testing::Field(&model::StageSpan::duration_ns, ns));
}

}  // namespace lockstep::ingest::span_follow
