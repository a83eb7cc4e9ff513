#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "analysis/collectives.h"
#include "analysis/name_rows.h"
#include "analysis/wait_steps.h"
#include "present/page/column_block.h"
#include "present/page/data_blocks.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using analysis::CollectiveInstance;
using analysis::CollectiveMember;

constexpr uint32_t kNone = UINT32_MAX;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// How a member's waiting follows from arrivals and ends.
enum WaitRule : uint8_t {
  kNoWait = 0,       ///< Not measured.
  kUntilLast = 1,    ///< Last arrival - own arrival.
  kUntilOwnEnd = 2,  ///< The same, but no more than end - arrival.
};

int64_t TotalWait(const CollectiveInstance& instance) {
  int64_t total_ns = 0;
  for (const CollectiveMember& member : instance.members) {
    total_ns = analysis::AddSaturating(total_ns, member.wait_ns.value_or(0));
  }
  return total_ns;
}

/// Texts by number, in order of first use.
class TextTable {
 public:
  uint32_t Index(const std::string& text) {
    const auto [at, added] = index_.emplace(text, static_cast<uint32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return at->second;
  }
  void AddTo(const char* key, report::JsonRow* json) const { json->Key(key).List(texts_); }

 private:
  std::map<std::string, uint32_t> index_;
  std::vector<std::string> texts_;
};

double OrUnknown(std::optional<int64_t> value) { return value ? static_cast<double>(*value) : kUnknown; }

struct Columns {
  TextTable names;
  TextTable groups;
  std::map<std::vector<uint32_t>, uint32_t> sets;
  std::vector<uint32_t> set_sizes, set_ranks;
  std::vector<uint32_t> name, group, set, last_rank;
  std::vector<double> sequence, bytes, first_arrival, last_arrival, transfer, busbw, total_wait, step;
  std::vector<uint8_t> wait_rule;
  std::vector<uint32_t> arrival, end;  ///< Of members: after the first arrival; after the own arrival.
};

class Builder {
 public:
  Builder(const PageModel& model, const std::vector<size_t>& indices) : model_(model), indices_(indices) {
    const auto& all = model.result().Get<analysis::Collectives>().instances;
    int64_t most_ns = 0;
    int64_t longest_ns = 0;
    for (const size_t i : indices) {
      const auto [first_ns, last_ns] = Arrivals(all[i]);
      most_ns = std::max(most_ns, last_ns - first_ns);
      for (const CollectiveMember& member : all[i].members)
        longest_ns = std::max(longest_ns, member.end_ns - member.arrival_ns);
    }
    arrival_unit_ns_ = 1 + most_ns / int64_t{UINT32_MAX};
    duration_unit_ns_ = 1 + longest_ns / int64_t{UINT32_MAX};
  }

  std::string Build() {
    const auto& all = model_.result().Get<analysis::Collectives>().instances;
    const auto steps = analysis::StepsOfInstances(model_.shared, model_.result().Get<analysis::Collectives>());
    for (const size_t i : indices_) {
      AddInstance(all[i]);
      columns_.step.push_back(OrUnknown(steps[i]));
    }
    return Write();
  }

 private:
  /// When the member arrives, from the page's zero.
  int64_t Arrival(const CollectiveMember& member) const {
    return member.arrival_ns - model_.rank_origin_ns[member.rank_index];
  }
  std::pair<int64_t, int64_t> Arrivals(const CollectiveInstance& instance) const {
    int64_t first_ns = std::numeric_limits<int64_t>::max();
    int64_t last_ns = std::numeric_limits<int64_t>::min();
    for (const CollectiveMember& member : instance.members) {
      first_ns = std::min(first_ns, Arrival(member));
      last_ns = std::max(last_ns, Arrival(member));
    }
    if (instance.members.empty()) return {0, 0};
    return {first_ns, last_ns};
  }

  uint32_t RankSet(const CollectiveInstance& instance) {
    std::vector<uint32_t> ranks;
    ranks.reserve(instance.members.size());
    for (const CollectiveMember& member : instance.members) ranks.push_back(static_cast<uint32_t>(member.rank_index));
    const auto [at, added] = columns_.sets.try_emplace(std::move(ranks), static_cast<uint32_t>(columns_.sets.size()));
    if (added) {
      columns_.set_sizes.push_back(static_cast<uint32_t>(at->first.size()));
      columns_.set_ranks.insert(columns_.set_ranks.end(), at->first.begin(), at->first.end());
    }
    return at->second;
  }

  static WaitRule RuleOf(const CollectiveInstance& instance) {
    if (instance.members.empty() || !instance.members.front().wait_ns) return kNoWait;
    return instance.synchronising ? kUntilLast : kUntilOwnEnd;
  }

  void AddInstance(const CollectiveInstance& instance) {
    const auto [first_ns, last_ns] = Arrivals(instance);
    Columns& c = columns_;
    c.name.push_back(c.names.Index(instance.name));
    c.group.push_back(c.groups.Index(instance.group));
    c.set.push_back(RankSet(instance));
    c.last_rank.push_back(instance.last_rank_index ? static_cast<uint32_t>(*instance.last_rank_index) : kNone);
    c.sequence.push_back(static_cast<double>(instance.sequence));
    c.bytes.push_back(OrUnknown(instance.bytes));
    c.first_arrival.push_back(static_cast<double>(first_ns));
    c.last_arrival.push_back(static_cast<double>(last_ns));
    c.transfer.push_back(OrUnknown(instance.transfer_ns));
    c.busbw.push_back(instance.busbw_bytes_per_s.value_or(kUnknown));
    c.total_wait.push_back(static_cast<double>(TotalWait(instance)));
    c.wait_rule.push_back(RuleOf(instance));
    for (const CollectiveMember& member : instance.members) {
      c.arrival.push_back(static_cast<uint32_t>((Arrival(member) - first_ns) / arrival_unit_ns_));
      c.end.push_back(
          static_cast<uint32_t>(std::max<int64_t>(member.end_ns - member.arrival_ns, 0) / duration_unit_ns_));
    }
  }

  std::string Write() {
    ColumnBlock block;
    block.header().Key("count").Uint(indices_.size()).Key("arrival_unit_ns").Int(arrival_unit_ns_);
    block.header().Key("duration_unit_ns").Int(duration_unit_ns_);
    columns_.names.AddTo("names", &block.header());
    columns_.groups.AddTo("groups", &block.header());
    Columns& c = columns_;
    block.Add("name", c.name);
    block.Add("group", c.group);
    block.Add("set", c.set);
    block.Add("last_rank", c.last_rank);
    block.Add("sequence", c.sequence);
    block.Add("bytes", c.bytes);
    block.Add("first_arrival", c.first_arrival);
    block.Add("last_arrival", c.last_arrival);
    block.Add("transfer", c.transfer);
    block.Add("busbw", c.busbw);
    block.Add("total_wait", c.total_wait);
    block.Add("step", c.step);
    block.Add("wait_rule", c.wait_rule);
    block.Add("set_size", c.set_sizes);
    block.Add("set_rank", c.set_ranks);
    block.Add("member_arrival", c.arrival);
    block.Add("member_duration", c.end);
    return block.Finish();
  }

  const PageModel& model_;
  const std::vector<size_t>& indices_;
  int64_t arrival_unit_ns_ = 1;
  int64_t duration_unit_ns_ = 1;
  Columns columns_;
};

}  // namespace

std::vector<size_t> PlanCollectives(const PageModel& model, std::vector<Reduction>* reductions) {
  const auto& all = model.result().Get<analysis::Collectives>().instances;
  std::vector<size_t> kept(all.size());
  std::iota(kept.begin(), kept.end(), size_t{0});
  size_t member_count = 0;
  for (const CollectiveInstance& instance : all) member_count += instance.members.size();
  if (all.size() <= model.limits.collective_instances && member_count <= model.limits.collective_members) return kept;

  // Half for those with the most waiting, half for an even spread of the others.
  std::vector<int64_t> waits(all.size());
  for (size_t i = 0; i < all.size(); ++i) waits[i] = TotalWait(all[i]);
  std::vector<size_t> worst_first = kept;
  std::stable_sort(worst_first.begin(), worst_first.end(), [&](size_t a, size_t b) { return waits[a] > waits[b]; });
  kept.clear();
  size_t members = 0;
  size_t worst = 0;
  for (; worst < worst_first.size() && kept.size() < model.limits.collective_instances / 2; ++worst) {
    const size_t more = all[worst_first[worst]].members.size();
    if (members + more > model.limits.collective_members / 2) break;
    members += more;
    kept.push_back(worst_first[worst]);
  }
  std::vector<size_t> rest(worst_first.begin() + static_cast<std::ptrdiff_t>(worst), worst_first.end());
  std::sort(rest.begin(), rest.end());
  const double mean_members = std::max(1.0, static_cast<double>(member_count) / static_cast<double>(all.size()));
  const size_t room =
      std::min(model.limits.collective_instances - kept.size(),
               static_cast<size_t>(static_cast<double>(model.limits.collective_members - members) / mean_members));
  const size_t spread = std::min(room, rest.size());
  for (size_t i = 0; i < spread; ++i) {
    const size_t index = rest[i * rest.size() / spread];
    if (members + all[index].members.size() > model.limits.collective_members) break;
    members += all[index].members.size();
    kept.push_back(index);
  }
  std::sort(kept.begin(), kept.end());
  reductions->push_back(
      {"collective_instances",
       fmt::format("single collectives: {} of {}: the {} with the most waiting and an even spread of the others; all "
                   "figures beside them count all",
                   report::FormatCount(kept.size()), report::FormatCount(all.size()), report::FormatCount(worst))});
  return kept;
}

std::string CollectivesBytes(const PageModel& model, const std::vector<size_t>& instances) {
  return Builder(model, instances).Build();
}

}  // namespace lockstep::page
