#include "analysis/what_if/pipeline_bubbles.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/pass.h"

namespace lockstep::analysis {
namespace {

// A first iteration this much longer than the usual one compiles, allocates and connects.
constexpr double kWarmUpRatio = 1.5;

struct StageWork {
  std::vector<std::pair<int64_t, int64_t>> work_ns;  // start, end
  int32_t forward_count = 0;
};

int64_t UnionLength(std::vector<std::pair<int64_t, int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t length_ns = 0;
  int64_t reached_ns = INT64_MIN;
  for (const auto& [start_ns, end_ns] : intervals) {
    if (end_ns <= reached_ns) continue;
    length_ns += end_ns - std::max(start_ns, reached_ns);
    reached_ns = end_ns;
  }
  return length_ns;
}

void MarkWarmUp(std::vector<PipelineStepRow>* steps) {
  if (steps->empty()) return;
  const int64_t first = steps->front().step;
  std::vector<int64_t> others;
  int64_t first_ns = 0;
  for (const PipelineStepRow& row : *steps) {
    if (row.step == first) {
      first_ns = std::max(first_ns, row.iteration_ns);
    } else {
      others.push_back(row.iteration_ns);
    }
  }
  if (others.empty()) return;
  std::sort(others.begin(), others.end());
  const auto usual = static_cast<double>(others[others.size() / 2]);
  if (static_cast<double>(first_ns) <= kWarmUpRatio * usual) return;
  for (PipelineStepRow& row : *steps) row.warm_up = row.step == first;
}

}  // namespace

Bubbles ComputeBubbles(const model::OperationTrace& trace) {
  Bubbles bubbles;
  std::map<std::tuple<int64_t, int32_t, int32_t>, StageWork> work;
  std::map<std::pair<int64_t, int32_t>, std::pair<int64_t, int64_t>> spans;  // of a pipeline's step: first, last
  std::map<std::tuple<int64_t, int32_t, int32_t>, const model::Iteration*> iterations;
  for (const model::Operation& operation : trace.operations) {
    const int64_t end_ns = operation.start_ns + operation.duration_ns;
    auto& span = spans.try_emplace({operation.step, operation.data_rank}, operation.start_ns, end_ns).first->second;
    span.first = std::min(span.first, operation.start_ns);
    span.second = std::max(span.second, end_ns);
    const bool forward = trace.types[operation.type] == model::kForwardCompute;
    if (!forward && trace.types[operation.type] != model::kBackwardCompute) continue;
    StageWork& stage = work[{operation.step, operation.data_rank, operation.stage}];
    stage.work_ns.emplace_back(operation.start_ns, end_ns);
    if (forward) ++stage.forward_count;
  }
  for (const model::Iteration& iteration : trace.iterations)
    iterations[{iteration.step, 0, iteration.stage}] = &iteration;
  std::map<std::pair<int64_t, int32_t>, std::pair<PipelineStepRow, int64_t>> steps;  // and what was busy
  for (auto& [key, stage] : work) {
    const auto& [step, data_rank, index] = key;
    BubbleRow row;
    row.step = step;
    row.data_rank = data_rank;
    row.stage = index;
    const auto& span = spans.at({step, data_rank});
    const auto iteration = iterations.find(key);
    row.window_ns = iteration == iterations.end() ? span.second - span.first : iteration->second->total_ns;
    if (iteration != iterations.end()) row.memory_bytes = iteration->second->memory_bytes;
    row.busy_ns = UnionLength(std::move(stage.work_ns));
    if (row.window_ns > 0) row.bubble_ratio = 1 - static_cast<double>(row.busy_ns) / static_cast<double>(row.window_ns);
    auto& [pipeline, busy_ns] = steps[{step, data_rank}];
    pipeline.step = step;
    pipeline.data_rank = data_rank;
    ++pipeline.stage_count;
    pipeline.micro_batch_count = std::max(pipeline.micro_batch_count, stage.forward_count);
    pipeline.iteration_ns = std::max(pipeline.iteration_ns, row.window_ns);
    busy_ns += row.busy_ns;
    bubbles.stages.push_back(row);
  }
  for (auto& [key, entry] : steps) {
    PipelineStepRow row = entry.first;
    const double stages = row.stage_count;
    if (row.iteration_ns > 0) {
      row.bubble_ratio = 1 - static_cast<double>(entry.second) / (stages * static_cast<double>(row.iteration_ns));
    }
    row.ideal_bubble_ratio = (stages - 1) / (row.micro_batch_count + stages - 1);
    bubbles.steps.push_back(row);
  }
  const bool pipelined = std::any_of(bubbles.steps.begin(), bubbles.steps.end(),
                                     [](const PipelineStepRow& row) { return row.stage_count > 1; });
  if (!pipelined) return {};
  MarkWarmUp(&bubbles.steps);
  return bubbles;
}

namespace {

std::vector<RowColumn<BubbleRow>> BubbleColumns() {
  using Row = BubbleRow;
  return {
      Field<&Row::step>("step", "", "Number of the step."),
      Field<&Row::data_rank>("dp_rank", "", "Which of the data-parallel pipelines."),
      Field<&Row::stage>("stage", "", "Pipeline stage."),
      Field<&Row::window_ns>("window_ns", "ns", "The stage's own iteration."),
      Field<&Row::busy_ns>("busy_ns", "ns", "Forward and backward work in it."),
      Field<&Row::bubble_ratio>("bubble_ratio", "ratio", "1 - `busy_ns` / `window_ns`."),
      Field<&Row::memory_bytes>("memory_bytes", "bytes", "Peak of the device.", "not stated"),
  };
}

}  // namespace

Pass PipelineBubblesPass() {
  return RunPass<Bubbles>({.question = "How long do pipeline stages idle? (operation traces)",
                           .kind = PassKind::kOnRequest,
                           .tables = {DeclareTable("bubbles", "", "A stage of a pipeline in a step", &Bubbles::stages,
                                                   BubbleColumns(), {"bubbles.stages[]", TableOrder::kVerdicts})}},
                          [](PassContext& context) {
                            const auto& operations = context.run().operations;
                            return operations ? ComputeBubbles(*operations) : Bubbles{};
                          });
}

}  // namespace lockstep::analysis
