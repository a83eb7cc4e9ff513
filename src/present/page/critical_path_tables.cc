// The table critical_path of the page.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/critical_path/critical_path.h"
#include "present/page/depth_tables.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using analysis::CriticalPathPiece;
using analysis::CriticalPathRow;
using analysis::CriticalPathStep;
using graph::EdgeKind;
using report::JsonRow;

constexpr size_t kFewestPieces = 20;
constexpr size_t kMostPieces = 600;

/// Names of operators and kernels, each once; rows have their place.
class NameList {
 public:
  size_t Place(NameId name) { return places_.try_emplace(name, places_.size()).first->second; }
  void Write(const model::Run& run, JsonRow* json) const {
    std::vector<NameId> names(places_.size());
    for (const auto& [name, place] : places_) names[place] = name;
    json->Key("texts").StartArray();
    for (const NameId name : names) json->Text(run.names[name]);
    json->EndArray();
  }

 private:
  std::map<NameId, size_t> places_;
};

struct PathSums {
  int64_t step_ns = 0;
  int64_t path_ns = 0;
  int64_t largest_error_ns = 0;
  std::map<EdgeKind, int64_t> kind_ns;
  std::map<size_t, int64_t> rank_ns;
  std::map<size_t, std::map<EdgeKind, int64_t>> rank_kind_ns;
  std::map<size_t, int64_t> rank_slack_ns;  ///< Least over the steps.
  std::map<std::pair<EdgeKind, NameId>, int64_t> name_ns;
};

PathSums SumPath(const analysis::CriticalPath& path) {
  PathSums sums;
  for (const CriticalPathStep& step : path.steps) {
    sums.step_ns += step.step_ns;
    sums.path_ns += step.path_ns;
    sums.largest_error_ns = std::max(sums.largest_error_ns, std::abs(step.path_ns - step.step_ns));
    for (size_t i = 0; i < step.kind_ns.size(); ++i) {
      if (step.kind_ns[i] != 0) sums.kind_ns[static_cast<EdgeKind>(i)] += step.kind_ns[i];
    }
    for (const analysis::RankSlack& slack : step.slack) {
      const auto [least, is_new] = sums.rank_slack_ns.try_emplace(slack.rank_index, slack.slack_ns);
      if (!is_new) least->second = std::min(least->second, slack.slack_ns);
    }
  }
  for (const CriticalPathRow& row : path.rows) {
    sums.rank_ns[row.rank_index] += row.path_ns;
    sums.rank_kind_ns[row.rank_index][row.kind] += row.path_ns;
    sums.name_ns[{row.kind, row.name}] += row.path_ns;
  }
  for (const auto& entry : sums.rank_slack_ns) sums.rank_ns.try_emplace(entry.first, 0);
  return sums;
}

/// Largest first; equal ones by key.
template <typename Key>
std::vector<std::pair<Key, int64_t>> LargestSumFirst(const std::map<Key, int64_t>& sums) {
  std::vector<std::pair<Key, int64_t>> list(sums.begin(), sums.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return list;
}

void AddSums(const PageModel& model, const PathSums& sums, JsonRow* json) {
  const analysis::CriticalPath& path = model.result().Get<analysis::CriticalPath>();
  json->Key("step_ns").Int(sums.step_ns).Key("path_ns").Int(sums.path_ns);
  json->Key("largest_error_ns").Int(sums.largest_error_ns).Key("categories").StartArray();
  for (const auto& [kind, sum_ns] : LargestSumFirst(sums.kind_ns)) {
    json->StartObject().Key("category").Text(graph::EdgeKindName(kind)).Key("path_ns").Int(sum_ns).EndObject();
  }
  json->EndArray().Key("ranks").StartArray();
  for (const auto& [rank_index, sum_ns] : LargestSumFirst(sums.rank_ns)) {
    const auto slack = sums.rank_slack_ns.find(rank_index);
    json->StartObject().Key("rank_index").Uint(rank_index).Key("path_ns").Int(sum_ns).Key("slack_ns");
    slack == sums.rank_slack_ns.end() ? json->Null() : json->Int(slack->second);
    json->Key("category_ns").StartObject();
    if (const auto kinds = sums.rank_kind_ns.find(rank_index); kinds != sums.rank_kind_ns.end()) {
      for (const auto& [kind, kind_ns] : kinds->second) json->Key(graph::EdgeKindName(kind)).Int(kind_ns);
    }
    json->EndObject().EndObject();
  }
  json->EndArray();
  std::map<std::pair<EdgeKind, NameId>, int64_t> slack_ns;
  for (const analysis::NameSlack& name : path.names) slack_ns.try_emplace({name.kind, name.name}, name.slack_ns);
  json->Key("names").StartArray();
  const auto names = LargestSumFirst(sums.name_ns);
  int64_t rest_ns = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& [key, sum_ns] = names[i];
    if (i >= model.limits.name_rows) {
      rest_ns += sum_ns;
      continue;
    }
    const auto slack = slack_ns.find(key);
    json->StartObject().Key("category").Text(graph::EdgeKindName(key.first));
    json->Key("name").TextOrNull(model.run().names[key.second]).Key("path_ns").Int(sum_ns).Key("slack_ns");
    slack == slack_ns.end() ? json->Null() : json->Int(slack->second);
    json->EndObject();
  }
  json->EndArray().Key("rest_name_count").Uint(names.size() - std::min(names.size(), model.limits.name_rows));
  json->Key("rest_names_ns").Int(rest_ns);
}

/// Indices of the steps that are listed one by one, in order of time; if there are too many, the longest.
std::vector<size_t> ChooseSteps(const PageModel& model, std::vector<Reduction>* reductions) {
  const std::vector<CriticalPathStep>& steps = model.result().Get<analysis::CriticalPath>().steps;
  std::vector<size_t> chosen(steps.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  if (chosen.size() <= model.limits.path_steps) return chosen;
  reductions->push_back({"critical_path_steps",
                         fmt::format("critical path: the {} longest of {} steps one by one; sums "
                                     "are over all",
                                     report::FormatCount(model.limits.path_steps), report::FormatCount(steps.size()))});
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](size_t a, size_t b) { return steps[a].step_ns > steps[b].step_ns; });
  chosen.resize(model.limits.path_steps);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void AddSteps(const PageModel& model, const std::vector<size_t>& chosen, JsonRow* json,
              std::vector<Reduction>* reductions) {
  const std::vector<CriticalPathStep>& steps = model.result().Get<analysis::CriticalPath>().steps;
  size_t slack_count = 0;
  for (const size_t i : chosen) slack_count += steps[i].slack.size();
  const bool with_slack = slack_count <= model.limits.path_rows;
  if (!with_slack && model.limits.path_rows < PageLimits().path_rows) {
    reductions->push_back(
        {"critical_path_slack", "critical path: slack of ranks in single steps; the least over all steps is there"});
  }
  json->Key("steps").StartArray();
  for (const size_t i : chosen) {
    const CriticalPathStep& step = steps[i];
    json->StartObject().Key("window").Int(step.window).Key("step").Int(step.step);
    json->Key("start_ns").Int(step.start_ns - model.origin_ns).Key("step_ns").Int(step.step_ns);
    json->Key("path_ns").Int(step.path_ns).Key("rank_count").Uint(step.rank_count);
    json->Key("unmatched_count").Uint(step.unmatched_count).Key("category_ns").StartObject();
    for (size_t kind = 0; kind < step.kind_ns.size(); ++kind) {
      if (step.kind_ns[kind] != 0) json->Key(graph::EdgeKindName(static_cast<EdgeKind>(kind))).Int(step.kind_ns[kind]);
    }
    json->EndObject().Key("slack");
    if (with_slack) {
      json->StartArray();
      for (const analysis::RankSlack& slack : step.slack) {
        json->StartArray().Uint(slack.rank_index).Int(slack.slack_ns).EndArray();
      }
      json->EndArray();
    } else {
      json->Null();
    }
    json->EndObject();
  }
  json->EndArray();
}

/// Rows of the chosen steps as [step, rank index, category, name, ns] with places in `steps`, `kinds` and `texts`; the
/// largest of each step, and what the others hold.
void AddRows(const PageModel& model, const std::vector<size_t>& chosen, NameList* names, JsonRow* json,
             std::vector<Reduction>* reductions) {
  const analysis::CriticalPath& path = model.result().Get<analysis::CriticalPath>();
  const size_t most = std::max<size_t>(kFewestPieces, model.limits.path_rows / std::max<size_t>(1, chosen.size()));
  std::map<std::pair<int32_t, int64_t>, size_t> place;  // (window, step) -> place in `steps`
  for (size_t i = 0; i < chosen.size(); ++i) place[{path.steps[chosen[i]].window, path.steps[chosen[i]].step}] = i;
  std::vector<size_t> count(chosen.size());
  std::vector<int64_t> rest_ns(chosen.size());
  size_t left_out = 0;
  json->Key("rows").StartArray();
  for (const CriticalPathRow& row : path.rows) {
    const auto step = place.find({model.run().ranks[row.rank_index].window, row.step});
    if (step == place.end()) continue;
    if (count[step->second]++ >= most) {
      rest_ns[step->second] += row.path_ns;
      ++left_out;
      continue;
    }
    json->StartArray().Uint(step->second).Uint(row.rank_index).Uint(static_cast<uint64_t>(row.kind));
    json->Uint(names->Place(row.name)).Int(row.path_ns).EndArray();
  }
  json->EndArray().Key("rest_ns").List(rest_ns).Key("rows_per_step");
  left_out > 0 ? json->Uint(most) : json->Null();
  if (left_out > 0 && model.limits.path_rows < PageLimits().path_rows) {
    reductions->push_back(
        {"critical_path_rows", fmt::format("critical path: what it is made of in single steps, the {} "
                                           "largest parts of each",
                                           report::FormatCount(most))});
  }
}

/// A stretch of the path on one rank in one category.
struct Stretch {
  size_t rank_index = 0;
  EdgeKind kind = EdgeKind::kHost;
  NameId name;  ///< Of its longest piece.
  int64_t name_ns = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

/// Pieces that follow each other on one rank in one category are one; of too many the longest stay, in order of time.
std::vector<Stretch> Stretches(const CriticalPathStep& step, size_t most, bool* cut) {
  std::vector<Stretch> stretches;
  for (const CriticalPathPiece& piece : step.pieces) {
    Stretch* last = stretches.empty() ? nullptr : &stretches.back();
    if (last != nullptr && last->rank_index == piece.rank_index && last->kind == piece.kind &&
        last->start_ns + last->duration_ns == piece.start_ns) {
      last->duration_ns += piece.duration_ns;
      if (piece.duration_ns > last->name_ns) {
        last->name = piece.name;
        last->name_ns = piece.duration_ns;
      }
    } else {
      stretches.push_back(
          {piece.rank_index, piece.kind, piece.name, piece.duration_ns, piece.start_ns, piece.duration_ns});
    }
  }
  if (stretches.size() <= most) return stretches;
  *cut = true;
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.duration_ns > b.duration_ns; });
  stretches.resize(most);
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.start_ns < b.start_ns; });
  return stretches;
}

/// Where the path ran in time, as [step, rank index, category, name, ns after the step's start, ns].
void AddPieces(const PageModel& model, const std::vector<size_t>& chosen, NameList* names, JsonRow* json,
               std::vector<Reduction>* reductions) {
  const size_t most =
      std::clamp(model.limits.path_pieces / std::max<size_t>(1, chosen.size()), kFewestPieces, kMostPieces);
  bool cut = false;
  json->Key("pieces").StartArray();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const CriticalPathStep& step = model.result().Get<analysis::CriticalPath>().steps[chosen[i]];
    for (const Stretch& stretch : Stretches(step, most, &cut)) {
      json->StartArray().Uint(i).Uint(stretch.rank_index).Uint(static_cast<uint64_t>(stretch.kind));
      json->Uint(names->Place(stretch.name)).Int(stretch.start_ns - step.start_ns).Int(stretch.duration_ns).EndArray();
    }
  }
  json->EndArray().Key("pieces_per_step");
  cut ? json->Uint(most) : json->Null();
  if (cut && model.limits.path_pieces < PageLimits().path_pieces) {
    reductions->push_back(
        {"critical_path_pieces",
         fmt::format("critical path over time: the {} longest stretches of a step", report::FormatCount(most))});
  }
}

}  // namespace

void AddCriticalPath(const PageModel& model, JsonRow* json, std::vector<Reduction>* reductions) {
  json->Key("critical_path");
  if (!model.result().Has<analysis::CriticalPath>()) {
    json->Null();
    return;
  }
  json->StartObject().Key("step_count").Uint(model.result().Get<analysis::CriticalPath>().steps.size());
  AddSums(model, SumPath(model.result().Get<analysis::CriticalPath>()), json);
  const std::vector<size_t> chosen = ChooseSteps(model, reductions);
  AddSteps(model, chosen, json, reductions);
  NameList names;
  AddRows(model, chosen, &names, json, reductions);
  AddPieces(model, chosen, &names, json, reductions);
  names.Write(model.run(), json);
  json->Key("kinds").StartArray();
  for (int kind = 0; kind < graph::kEdgeKindCount; ++kind) json->Text(graph::EdgeKindName(static_cast<EdgeKind>(kind)));
  json->EndArray().EndObject();
}

}  // namespace lockstep::page
