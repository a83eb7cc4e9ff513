#include "page/page_blocks.h"

#include <fmt/format.h>

#include <utility>

#include "page/analyze_json.h"
#include "page/page_model.h"
#include "page/summary.h"

namespace lockstep::page {

struct PageBlocks::State {
  PageModel model;
  std::vector<std::string> names;
  std::vector<Reduction> reductions;
  std::string data_json;
};

PageBlocks::PageBlocks(const PageInput& input, const PageLimits& limits)
    : state_(new State{.model = MakePageModel(input, limits), .names = {}, .reductions = {}, .data_json = {}}) {
  state_->data_json = AnalyzeJson(state_->model, {}, &state_->reductions);
  state_->names = {"main"};
}

PageBlocks::~PageBlocks() = default;
PageBlocks::PageBlocks(PageBlocks&&) noexcept = default;
PageBlocks& PageBlocks::operator=(PageBlocks&&) noexcept = default;

const std::vector<std::string>& PageBlocks::names() const { return state_->names; }
const std::vector<Reduction>& PageBlocks::reductions() const { return state_->reductions; }

Result<Block> PageBlocks::Make(std::string_view name) const {
  const PageModel& model = state_->model;
  if (name == "main") {
    return MakeBlock("main", DocumentJson(PageKind::kAnalyze, Frame().title, model.input.partial, state_->reductions,
                                          model.run().ledger, state_->data_json));
  }
  return Error{.code = ErrorCode::kNotFound, .message = fmt::format("the page has no block '{}'", name)};
}

PageFrame PageBlocks::Frame() const {
  return {.kind = PageKind::kAnalyze,
          .title = JobName(state_->model.run()) + " - lockstep",
          .summary_html = SummaryHtml(state_->model, state_->reductions)};
}

void WriteAnalyzePage(const PageInput& input, uint64_t page_bytes, std::ostream& out) {
  static_cast<void>(page_bytes);
  const PageBlocks data(input);
  std::vector<Block> blocks;
  for (const std::string& name : data.names()) {
    if (Result<Block> block = data.Make(name)) blocks.push_back(std::move(*block));
  }
  ComposePage(data.Frame(), blocks, out);
}

}  // namespace lockstep::page
