#include "present/page/page_model.h"

#include <algorithm>
#include <optional>

#include "analysis/kernel_kind.h"

namespace lockstep::page {

PageModel MakePageModel(const PageInput& input, const PageLimits& limits) {
  PageModel model{.input = input, .limits = limits, .shared = {}, .rank_origin_ns = {}};
  model.shared.run = &input.run;
  model.shared.options = input.options;
  model.shared.is_communication = analysis::ClassifyCommunication(input.run, input.options.communication_kernels);
  const std::vector<model::RankTrace>& ranks = input.run.ranks;
  std::optional<int64_t> first_ns;
  for (const model::RankTrace& trace : ranks) {
    if (!trace.first_ns || model::IsAdrift(ranks.front(), trace)) continue;
    const int64_t start_ns = trace.clock.ToRun(*trace.first_ns);
    first_ns = std::min(first_ns.value_or(start_ns), start_ns);
  }
  model.origin_ns = first_ns.value_or(0);
  for (const model::RankTrace& trace : ranks) {
    const bool adrift = trace.first_ns && model::IsAdrift(ranks.front(), trace);
    model.rank_origin_ns.push_back(adrift ? trace.clock.ToRun(*trace.first_ns) : model.origin_ns);
    if (trace.last_ns) {
      model.span_ns = std::max(model.span_ns, trace.clock.ToRun(*trace.last_ns) - model.rank_origin_ns.back());
    }
  }
  return model;
}

std::string JobName(const model::Run& run) {
  if (run.ranks.empty()) return "";
  std::string_view common = run.ranks.front().source;
  if (run.ranks.size() > 1) {
    for (const model::RankTrace& trace : run.ranks) {
      const std::string_view other = trace.source;
      const auto differ = std::mismatch(common.begin(), common.end(), other.begin(), other.end());
      common = common.substr(0, static_cast<size_t>(differ.first - common.begin()));
    }
    const size_t cut = common.find_last_of("/!");
    common = common.substr(0, cut == std::string_view::npos ? 0 : cut);
  }
  while (!common.empty() && common.back() == '/') common.remove_suffix(1);
  const size_t slash = common.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? common : common.substr(slash + 1);
  if (last.empty() || last == "." || last == "..") return "training job";
  return std::string(last);
}

}  // namespace lockstep::page
