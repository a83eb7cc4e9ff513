#include "analysis/parallelism/moe.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/pass.h"
#include "analysis/table.h"

namespace lockstep::analysis {
namespace {

/// An uneven group is chronic when this much of its unevenness remains over the whole trace.
constexpr double kChronicShare = 0.5;
/// It is so by one exchange alone when that has this much of the bytes above the mean.
constexpr double kOnceShare = 0.9;

/// Loads of one exchange, parallel to MoeSums::ranks.
using Loads = std::vector<int64_t>;

/// A group while its calls are added.
struct MoeSums {
  MoeRow row;
  std::map<size_t, MoeRankRow> ranks;  // by rank index
  std::vector<Loads> exchanges;
};

/// Sum of what is recorded; unknown from the first part on that is not.
void AddKnown(std::optional<int64_t> part, std::optional<int64_t>* sum) {
  int64_t total = 0;
  if (!part || !*sum || __builtin_add_overflow(**sum, *part, &total)) {
    sum->reset();
  } else {
    *sum = total;
  }
}

double Mean(const Loads& loads) {
  double sum = 0;
  for (const int64_t load : loads) sum += static_cast<double>(load);
  return sum / static_cast<double>(loads.size());
}

/// Largest / mean; 1 when there is nothing.
double MaxOfMean(const Loads& loads) {
  const double mean = Mean(loads);
  return mean > 0 ? static_cast<double>(*std::max_element(loads.begin(), loads.end())) / mean : 1;
}

/// The all_to_alls of each rank, to be found by their times.
class CallIndex {
 public:
  explicit CallIndex(const std::vector<RankTraffic>& by_rank_index) : traffic_(by_rank_index) {
    for (const RankTraffic& traffic : by_rank_index) {
      auto& list = calls_.emplace_back();
      for (size_t i = 0; i < traffic.calls.size(); ++i) {
        const TrafficCall& call = traffic.calls[i];
        if (call.kind == CollectiveKind::kAllToAll) list.emplace_back(call.start_ns, call.end_ns(), i);
      }
      std::sort(list.begin(), list.end());
    }
  }

  const TrafficCall* Of(const CollectiveMember& member) const {
    if (member.rank_index >= calls_.size()) return nullptr;
    const auto& list = calls_[member.rank_index];
    const auto at =
        std::lower_bound(list.begin(), list.end(), std::tuple(member.trace_start_ns, member.trace_end_ns, size_t{0}));
    if (at == list.end() || std::get<0>(*at) != member.trace_start_ns || std::get<1>(*at) != member.trace_end_ns) {
      return nullptr;
    }
    return &traffic_[member.rank_index].calls[std::get<2>(*at)];
  }

 private:
  const std::vector<RankTraffic>& traffic_;
  std::vector<std::vector<std::tuple<int64_t, int64_t, size_t>>> calls_;
};

/// Adds an instance of a collective if it is an exchange of one of the groups.
void AddExchange(const CollectiveInstance& instance, const CallIndex& index,
                 const std::vector<std::vector<size_t>>& group_rows, std::map<size_t, MoeSums>* groups) {
  if (instance.members.size() < 2) return;
  Loads sent;
  Loads received;
  size_t row = SIZE_MAX;
  for (const CollectiveMember& member : instance.members) {
    const TrafficCall* call = index.Of(member);
    if (call == nullptr || !call->in_bytes || !call->out_bytes) return;
    const size_t own_row = group_rows[member.rank_index][call->group];
    if (own_row == SIZE_MAX || (row != SIZE_MAX && row != own_row)) return;
    row = own_row;
    sent.push_back(*call->in_bytes);
    received.push_back(*call->out_bytes);
  }
  const auto group = groups->find(row);
  if (group == groups->end() || group->second.ranks.size() != instance.members.size()) return;
  Loads& loads = MaxOfMean(sent) > MaxOfMean(received) ? sent : received;
  if (Mean(loads) > 0) group->second.exchanges.push_back(std::move(loads));
}

LoadPattern PatternOf(double load_ratio, double exchange_load_ratio, double largest_share) {
  if (exchange_load_ratio < kUnevenLoadRatio) return LoadPattern::kEven;
  if (largest_share >= kOnceShare) return LoadPattern::kOnce;
  return load_ratio - 1 >= kChronicShare * (exchange_load_ratio - 1) ? LoadPattern::kChronic : LoadPattern::kVarying;
}

/// Loads of the group and its ranks, from the exchanges; a load's weight is the exchange's mean, so that a handful of
/// bytes (counts of tokens, sent ahead of them) weighs nothing.
void FinishLoads(MoeSums* group) {
  group->row.exchange_count = group->exchanges.size();
  if (group->exchanges.empty()) return;
  double weight = 0;
  double highest = 0;
  double largest_excess = 0;
  for (const Loads& loads : group->exchanges) {
    const auto largest = static_cast<double>(*std::max_element(loads.begin(), loads.end()));
    weight += Mean(loads);
    highest += largest;
    largest_excess = std::max(largest_excess, largest - Mean(loads));
  }
  MoeRow& row = group->row;
  row.exchange_load_ratio = highest / weight;
  row.load_ratio = 1;
  size_t place = 0;
  for (auto& [rank_index, rank] : group->ranks) {
    double sum = 0;
    for (const Loads& loads : group->exchanges) sum += static_cast<double>(loads[place]);
    rank.load_ratio = sum / weight;
    double squares = 0;
    for (const Loads& loads : group->exchanges) {
      const double off = static_cast<double>(loads[place]) / Mean(loads) - *rank.load_ratio;
      squares += Mean(loads) * off * off;
    }
    if (sum > 0) rank.load_variation = std::sqrt(squares / weight) / *rank.load_ratio;
    if (*rank.load_ratio > *row.load_ratio) {
      row.load_ratio = rank.load_ratio;
      row.hottest_rank_index = rank_index;
    }
    ++place;
  }
  const double excess = highest - weight;
  row.pattern = PatternOf(*row.load_ratio, *row.exchange_load_ratio, excess > 0 ? largest_excess / excess : 0);
}

}  // namespace

const char* LoadPatternName(LoadPattern pattern) {
  switch (pattern) {
    case LoadPattern::kEven: return "even";
    case LoadPattern::kChronic: return "chronic";
    case LoadPattern::kVarying: return "varying";
    case LoadPattern::kOnce: return "once";
    case LoadPattern::kUnknown: return "unknown";
  }
  return "unknown";
}

Moe FinishMoe(const model::Run& run, const std::vector<RankTraffic>& by_rank_index,
              const std::vector<ProcessGroupRow>& groups, const Collectives& collectives) {
  const auto group_rows = RowsOfTraffic(run, by_rank_index, groups);
  std::map<size_t, MoeSums> by_row;
  for (size_t i = 0; i < by_rank_index.size(); ++i) {
    for (const TrafficCall& call : by_rank_index[i].calls) {
      const size_t r = group_rows[i][call.group];
      if (r == SIZE_MAX || call.kind != CollectiveKind::kAllToAll) continue;
      MoeSums& sums = by_row[r];
      sums.row.group = groups[r].number;
      const auto [slot, is_new] = sums.ranks.try_emplace(i);
      MoeRankRow& rank = slot->second;
      if (is_new) {
        rank.rank_index = i;
        rank.group = groups[r].number;
        rank.sent_bytes = rank.received_bytes = 0;
      }
      ++rank.call_count;
      AddKnown(call.in_bytes, &rank.sent_bytes);
      AddKnown(call.out_bytes, &rank.received_bytes);
      rank.duration_ns += call.duration_ns;
      rank.exposed_ns += call.exposed_ns;
    }
  }
  const CallIndex index(by_rank_index);
  for (const CollectiveInstance& instance : collectives.instances) AddExchange(instance, index, group_rows, &by_row);
  Moe moe;
  for (auto& [row, group] : by_row) {
    FinishLoads(&group);
    group.row.rank_count = static_cast<uint32_t>(group.ranks.size());
    for (const auto& [rank_index, rank] : group.ranks) {
      group.row.call_count += rank.call_count;
      group.row.duration_ns += rank.duration_ns;
      group.row.exposed_ns += rank.exposed_ns;
      moe.ranks.push_back(rank);
    }
    moe.groups.push_back(group.row);
  }
  return moe;
}

namespace {

std::vector<RowColumn<MoeRow>> MoeColumns() {
  using Row = MoeRow;
  return {
      GroupColumn<Row>(),
      Field<&Row::rank_count>("rank_count", "count", "Ranks with a trace that call all_to_all in it."),
      Field<&Row::call_count>("call_count", "count", "Calls of all of them."),
      Field<&Row::exchange_count>("exchange_count", "count",
                                  "Exchanges (a call of each of two such ranks or more) whose bytes both ways are "
                                  "recorded on all: what the load is of."),
      Field<&Row::load_ratio>("load_ratio", "", "Largest load of a rank over all exchanges / mean of the ranks.",
                              "no exchanges"),
      Field<&Row::exchange_load_ratio>("exchange_load_ratio", "",
                                       "The same within single exchanges, weighted by their bytes.", "no exchanges"),
      RankField<&Row::hottest_rank_index>("hottest_rank", "The rank that `load_ratio` is of.",
                                          "no exchanges, or all loads are equal"),
      NamedField<&Row::pattern, LoadPatternName>(
          "pattern",
          "`even`: no exchange is much above the mean; `chronic`: it is the same ranks that are; `varying`: others "
          "each time; `once`: it is one exchange alone; `unknown`: no exchanges."),
      Field<&Row::duration_ns>("duration_ns", "ns", "Sum of the calls' durations; waiting is in it."),
      Field<&Row::exposed_ns>("exposed_ns", "ns", "Sum of their parts in which the rank computes nothing."),
  };
}

std::vector<RowColumn<MoeRankRow>> MoeRankColumns() {
  using Row = MoeRankRow;
  return {
      RankColumn<Row>(),
      WindowColumn<Row>(),
      GroupColumn<Row>(),
      Field<&Row::call_count>("call_count", "count", "all_to_alls."),
      Field<&Row::sent_bytes>("sent_bytes", "bytes", "What it put in, its own share included.",
                              "a call's is not recorded"),
      Field<&Row::received_bytes>("received_bytes", "bytes", "What it got, its own share included.",
                                  "a call's is not recorded"),
      Field<&Row::load_ratio>("load_ratio", "", "Its load over all exchanges / mean of the group's ranks.",
                              "no exchanges"),
      Field<&Row::load_variation>("load_variation", "",
                                  "Standard deviation / mean of that over the exchanges, weighted by their bytes.",
                                  "no exchanges, or no load"),
      Field<&Row::duration_ns>("duration_ns", "ns", "Sum of the calls' durations; waiting is in it."),
      Field<&Row::exposed_ns>("exposed_ns", "ns", "Sum of their parts in which the rank computes nothing."),
  };
}

}  // namespace

Pass MoePass() {
  return RunPass<Moe>(
      {.question = "Do all experts get as many tokens, by what all_to_alls carry?",
       .needs = {"traffic", "groups"},
       .tables = {DeclareTable("moe", "moe", "The all_to_alls of a process group, and how even they are", &Moe::groups,
                               MoeColumns()),
                  DeclareTable("moe_ranks", "moe_ranks", "A rank's all_to_alls in a process group", &Moe::ranks,
                               MoeRankColumns())}},
      [](PassContext& context) {
        return FinishMoe(context.run(), context.Get<Traffic>().ranks, context.Get<ProcessGroups>().rows,
                         context.Get<Collectives>());
      });
}

}  // namespace lockstep::analysis
