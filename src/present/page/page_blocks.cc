#include "present/page/page_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>
#include <utility>

#include "present/page/analyze_json.h"
#include "present/page/data_blocks.h"
#include "present/page/page_model.h"
#include "present/page/sql_program.h"
#include "present/page/summary.h"
#include "present/report/json_stream.h"

namespace lockstep::page {
namespace {

constexpr std::string_view kEventsPrefix = "events-";

std::string PageTitle(const PageModel& model) { return JobName(model.run()) + " - lockstep"; }

}  // namespace

struct PageBlocks::State {
  PageModel model;
  std::vector<std::string> names = {};
  std::vector<Reduction> reductions = {};
  StepPlan steps = {};
  std::vector<size_t> collectives = {};
  TimelinePlan timeline = {};
  std::vector<const analysis::Table*> tables = {};
  NamePlan event_names = {};
  bool has_events = false;
  /// Made when it is first asked for, with the rest of `reductions`: a page is planned more often than it is written.
  std::once_flag main_made = {};
  std::string data_json = {};

  void MakeMain();
  std::string TimelineJson() const;
  std::optional<size_t> RankOfEvents(std::string_view name) const;
};

std::string PageBlocks::State::TimelineJson() const {
  if (timeline.bucket_counts.empty()) return "null";
  report::JsonRow json;
  json.Key("span_ns").Int(model.span_ns).Key("level_bucket_counts").List(timeline.bucket_counts);
  json.Key("has_events").Bool(has_events);
  return std::string(json.Finish());
}

PageBlocks::PageBlocks(const PageInput& input, const PageLimits& limits)
    : state_(new State{.model = MakePageModel(input, limits)}) {
  State& state = *state_;
  state.names = {"main"};
  state.steps = PlanSteps(state.model, &state.reductions);
  if (!state.steps.step_numbers.empty()) state.names.emplace_back("steps");
  state.collectives = PlanCollectives(state.model, &state.reductions);
  if (!state.collectives.empty()) state.names.emplace_back("collectives");
  state.tables = PlanTables(state.model, &state.reductions);
  if (!state.tables.empty()) {
    state.names.emplace_back("tables");
    if (limits.sql) {
      state.names.insert(state.names.end(), {"sql-worker", "sqlite"});
    } else {
      state.reductions.push_back({"sql", "SQLite, which answers SQL in the page; lockstep query asks the traces"});
    }
  }
  // An operation trace has no tracks: there is nothing to see over time.
  if (!input.run.operations) state.timeline = PlanTimeline(state.model, &state.reductions);
  if (!state.timeline.bucket_counts.empty()) state.names.emplace_back("timeline");
  state.has_events = !state.timeline.bucket_counts.empty() && PlanEvents(state.model, &state.reductions);
  if (state.has_events) {
    state.event_names = PlanNames(state.model);
    state.names.emplace_back("names");
    for (size_t rank = 0; rank < input.run.ranks.size(); ++rank) {
      state.names.push_back(fmt::format("{}{}", kEventsPrefix, rank));
    }
  }
}

void PageBlocks::State::MakeMain() {
  std::call_once(main_made, [this] {
    data_json = AnalyzeJson(model, {StepShapeJson(steps), TimelineJson(), TableListJson(model, tables)}, &reductions);
  });
}

std::optional<size_t> PageBlocks::State::RankOfEvents(std::string_view name) const {
  if (name.substr(0, kEventsPrefix.size()) != kEventsPrefix) return std::nullopt;
  const std::string_view digits = name.substr(kEventsPrefix.size());
  size_t rank = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return rank < model.run().ranks.size() ? std::optional(rank) : std::nullopt;
}

PageBlocks::~PageBlocks() = default;
PageBlocks::PageBlocks(PageBlocks&&) noexcept = default;
PageBlocks& PageBlocks::operator=(PageBlocks&&) noexcept = default;

const std::vector<std::string>& PageBlocks::names() const { return state_->names; }
const std::vector<Reduction>& PageBlocks::reductions() const {
  state_->MakeMain();
  return state_->reductions;
}

Result<Block> PageBlocks::Make(std::string_view name) const {
  State& state = *state_;
  const PageModel& model = state.model;
  const auto pack = [&](const std::string& bytes) { return MakeBlock(std::string(name), bytes); };
  if (std::find(state.names.begin(), state.names.end(), name) != state.names.end()) {
    if (name == "main") {
      state_->MakeMain();
      return pack(DocumentJson(PageKind::kAnalyze, PageTitle(model), model.input.partial, state.reductions,
                               model.run().ledger, state.data_json));
    }
    if (name == "steps") return pack(StepsBytes(model, state.steps));
    if (name == "collectives") return pack(CollectivesBytes(model, state.collectives));
    if (name == "tables") return pack(TablesBytes(model, state.tables));
    if (name == "sql-worker") return MakeBlock(std::string(name), SqlWorker());
    if (name == "sqlite") return MakeBlock(std::string(name), SqlEngine());
    if (name == "timeline") return pack(TimelineBytes(model, state.timeline));
    if (name == "names") return pack(NamesBytes(model, state.event_names));
    if (const auto rank = state.RankOfEvents(name)) return pack(EventsBytes(model, state.event_names, *rank));
  }
  return Error{.code = ErrorCode::kNotFound, .message = "the page has no block of this name"};
}

PageFrame PageBlocks::Frame() const {
  return {.kind = PageKind::kAnalyze,
          .title = PageTitle(state_->model),
          .summary_html = SummaryHtml(state_->model, reductions())};
}

}  // namespace lockstep::page
