#pragma once

#include <cstddef>
#include <cstdint>

#include "analysis/frontier/accounting.h"
#include "model/stages/stage.h"

namespace lockstep::frontier {

/// What an accounting says of the job.
enum class Answer : uint8_t {
  kStraggler,  ///< One rank costs the others time in one stage.
  kImbalance,  ///< A stage takes the ranks unequally long, and no rank alone is it.
  kStage,      ///< All ranks alike spend much in a stage that is not computing.
  kEven,       ///< No rank and no such stage stands out.
  kUndecided,  ///< The times cannot tell; Verdict::doubt says why.
};
/// "straggler", "imbalance", "stage", "even", "undecided".
const char* AnswerName(Answer answer);

/// Why there is no answer.
enum class Doubt : uint8_t {
  kNone,
  kTooFewSteps,  ///< Fewer than kLeastSteps that all ranks have.
  kOneRank,      ///< There is nobody who could wait.
  kNoMeeting,    ///< No wait for a collective was seen: which rank is behind, but not whether anybody waits for it.
};
/// "too_few_steps", "one_rank", "no_meeting"; null for kNone.
const char* DoubtName(Doubt doubt);

struct Verdict {
  Answer answer = Answer::kUndecided;
  Doubt doubt = Doubt::kNone;
  model::Stage stage = model::Stage::kOther;  ///< Of a straggler, an imbalance, a stage.
  size_t rank_idx = 0;                        ///< Of a straggler; of doubt, the rank that leads the stage most.
  int64_t cost_ns = 0;                        ///< What the job would save, over all its rounds.
  double cost_ratio = 0;                      ///< Of the job's time.
  int64_t step_count = 0;                     ///< Steps in which it cost something worth telling.
  /// 0..1: share of the job's eighths in which this rank and stage cost most; of a cost of few steps, how far it stands
  /// above what every other rank costs in its worst step.
  double confidence = 0;
  bool is_occasional = false;  ///< In few steps, or one.
};

constexpr int64_t kLeastSteps = 5;

Verdict Judge(const Accounting& account);

}  // namespace lockstep::frontier
