#include "analysis/wait_states/culprits.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::analysis {
namespace {

constexpr double kMaxChance = 0.0075;                // of naming anybody in a job whose ranks are alike
constexpr double kMaxChanceBeside = kMaxChance / 4;  // of naming another beside who is named
constexpr double kLeastShare = 0.05;                 // of what ranks began; who is behind less is not worth a name
constexpr double kLeastOfAll = 0.01;    // of all waiting, part of which is the schedule's (pipeline bubbles)
constexpr double kLeastOfFirst = 0.2;   // of what the first that is named is behind
constexpr size_t kLeastToLeaveOut = 4;  // rounds of which one may be left out
constexpr double kTail = 0.4;  // xi of the noise's Pareto tail: its variance is finite, its third moment is not

using Values = std::vector<double>;

/// One-sided t-test of a rank's lead over the worst of the others, round by round. If the ranks are alike, a given
/// rank's lead is below 0 on average, so testing the worst of three or more needs no correction for having been chosen.
double ChanceOfMean(const Values& leads) {
  const auto count = static_cast<double>(leads.size());
  const double mean = std::accumulate(leads.begin(), leads.end(), 0.0) / count;
  if (leads.size() < 2 || mean <= 0) return 1;
  double squares = 0;
  for (const double lead : leads) squares += (lead - mean) * (lead - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  if (error <= mean * 1e-9) return 0;
  return boost::math::cdf(boost::math::complement(boost::math::students_t(count - 1), mean / error));
}

/// The same, also without the round that contradicts it most: another rank may have stalled once. Corrected for the
/// choice of the round, and for being a second try.
double ChanceOfLead(Values leads) {
  const double of_all = ChanceOfMean(leads);
  if (leads.size() < kLeastToLeaveOut) return of_all;
  const auto tries = 2 * static_cast<double>(leads.size());
  leads.erase(std::min_element(leads.begin(), leads.end()));
  return std::min(of_all, tries * ChanceOfMean(leads));
}

double ChanceOfBoth(double a, double b) {  // Of a product of two chances that know nothing of each other (Fisher).
  const double product = std::max(a * b, std::numeric_limits<double>::min());
  return std::min(1.0, product * (1 - std::log(product)));
}

/// The chance that of values that are alike, evenly dense towards 0, all except the `k` largest (`rest` of them) are
/// below 1 / `times` of these.
double ChanceOfSmallRest(double rest, double k, double times) {
  if (rest <= 0) return 1;
  double ways = 1;
  for (double i = 0; i < k; ++i) ways *= (rest + k - i) / (k - i);
  return std::min(1.0, ways * std::pow(times, -rest));
}

/// What the test of size is made of.
struct Rounds {
  Values own;                             // Largest first.
  double largest_other = 0;               // Of any other rank.
  double value_count = 0;                 // Values in all that know nothing of each other.
  double rest_count = 0;                  // Of these at least beside any number of the rank's own, but for one.
  std::function<double(size_t)> all_own;  // Chance that the k largest are one rank's.
};

/// Of `k` rounds being so much larger than the next of any rank.
double ChanceOfSize(const Rounds& rounds, double floor_ns) {
  double least = 1;
  for (size_t k = 1; k <= rounds.own.size(); ++k) {
    const double next_own = k < rounds.own.size() ? rounds.own[k] : 0;
    const double times = rounds.own[k - 1] / std::max({next_own, rounds.largest_other, floor_ns});
    if (times <= 1) continue;
    const auto count = static_cast<double>(k);
    const double rest = std::max(rounds.value_count - count, k == 1 ? 0 : rounds.rest_count);
    const double by_tail = std::pow(times, -count / kTail);
    const double by_size = std::min(1.0, by_tail + ChanceOfSmallRest(rest, count, times));
    least = std::min(least, k == 1 ? by_size : ChanceOfBoth(by_size, rounds.all_own(k)));
  }
  return least;
}

/// "All its causes together" where a cause is asked for.
using Kind = std::optional<RootCause>;

class CulpritFinder {
 public:
  CulpritFinder(const WaitTable& table, const std::vector<RootCauseRow>& causes, int64_t wait_ns)
      : table_(table), causes_(causes), wait_ns_(static_cast<double>(wait_ns)) {
    most_named_ns_ = table.unrecorded_ns;
    for (const auto& [key, rounds] : table.wait_ns) began_ns_ += Sum(rounds);
    for (const RootCauseRow& cause : causes) began_ns_ += cause.cause == RootCause::kSlowLink ? WaitOf(cause) : 0;
  }

  std::vector<WaitCulprit> Find() {
    for (size_t c = 0; c < causes_.size(); ++c) {
      if (causes_[c].cause == RootCause::kSlowLink) NameLink(c);
    }
    for (const size_t rank_index : MostWaitingFirst()) NameRank(rank_index);
    std::stable_sort(culprits_.begin(), culprits_.end(),
                     [](const WaitCulprit& a, const WaitCulprit& b) { return a.wait_ns > b.wait_ns; });
    return std::move(culprits_);
  }

 private:
  using Sparse = std::map<size_t, double>;
  static double Sum(const Sparse& rounds) {
    return std::accumulate(rounds.begin(), rounds.end(), 0.0,
                           [](double sum, const auto& round) { return sum + round.second; });
  }

  std::vector<size_t> MostWaitingFirst() const {
    std::map<size_t, double> sums;
    for (const auto& [key, rounds] : table_.wait_ns) sums[key.first] += Sum(rounds);
    std::vector<size_t> order;
    for (const auto& [rank_index, sum] : sums) order.push_back(rank_index);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sums[a] > sums[b]; });
    return order;
  }

  /// Calls `visit(rank index, rounds)` for every rank with waiting of the kind that it is not named for already. The
  /// rounds are valid in the call only.
  template <typename Visit>
  void ForEachRank(Kind kind, const Visit& visit) const {
    for (auto at = table_.wait_ns.begin(); at != table_.wait_ns.end();) {
      const size_t rank_index = at->first.first;
      Sparse sum;
      for (; at != table_.wait_ns.end() && at->first.first == rank_index; ++at) {
        if ((kind && at->first.second != *kind) || named_.count(at->first) > 0) continue;
        for (const auto& [round, wait_ns] : at->second) sum[round] += wait_ns;
      }
      visit(rank_index, sum);
    }
  }

  /// How often a job whose ranks are alike would show a rank that causes as much waiting as this one, in round after
  /// round or by size. It is computed from the other ranks of its window, without the waiting that these are already
  /// named for.
  double ChanceOf(size_t rank_index, Kind kind) const {
    const int32_t window = table_.windows[rank_index];
    const auto rank_count = std::count(table_.windows.begin(), table_.windows.end(), window);
    const bool of_two = rank_count <= 2;
    Values own(table_.round_count, 0);
    Values most(own.size(), 0);
    ForEachRank(kind, [&](size_t rank, const Sparse& rounds) {
      if (table_.windows[rank] != window) return;
      for (const auto& [round, wait_ns] : rounds) {
        double& known_ns = rank == rank_index ? own[round] : most[round];
        known_ns = std::max(known_ns, wait_ns);
      }
    });
    Rounds rounds;
    const auto round_count = static_cast<double>(own.size());
    Values leads;
    double by_lead = 1;
    if (of_two) {
      // Only one of two can be late: a round has one value, which is either's.
      for (size_t s = 0; s < own.size(); ++s) {
        leads.push_back(own[s] - most[s]);
        if (leads[s] >= 0) rounds.own.push_back(leads[s]);
        rounds.largest_other = std::max(rounds.largest_other, -leads[s]);
      }
      by_lead = std::min(1.0, 2 * ChanceOfLead(leads));
      rounds.value_count = round_count;
      rounds.all_own = [](size_t k) { return std::pow(0.5, static_cast<double>(k) - 1); };
    } else {
      // Waits vary with their size; their roots vary alike.
      for (size_t s = 0; s < own.size(); ++s) leads.push_back(std::sqrt(own[s]) - std::sqrt(most[s]));
      by_lead = ChanceOfLead(leads);
      rounds.own = own;
      rounds.largest_other = *std::max_element(most.begin(), most.end());
      const auto other_count = static_cast<double>(rank_count - 1);
      // A quarter, because a rank that is early in a round begins no waiting, and collectives of one round share
      // lateness.
      rounds.value_count = round_count * std::max(1.0, other_count / 4);
      rounds.rest_count = round_count * (other_count - 1) / 2;
      const double all = round_count * (other_count + 1);
      rounds.all_own = [=](size_t k) {
        double chance = 1;
        for (size_t i = 1; i < k; ++i)
          chance *= (round_count - static_cast<double>(i)) / (all - static_cast<double>(i));
        return chance;
      };
    }
    std::sort(rounds.own.begin(), rounds.own.end(), std::greater<>());
    return std::min(1.0, 2 * std::min(by_lead, ChanceOfSize(rounds, table_.floor_ns)));
  }

  /// If one rank makes all others wait, little other waiting is left, and that little easily falls to one rank by
  /// chance.
  bool IsEnough(double of_ns) const {
    return of_ns >= std::max({kLeastShare * began_ns_, kLeastOfAll * wait_ns_, kLeastOfFirst * most_named_ns_});
  }
  static double WaitOf(const RootCauseRow& cause) {
    return static_cast<double>(cause.direct_wait_ns + cause.propagated_wait_ns);
  }

  /// Named for everything that it did, or else only for the causes that are beyond chance: varying work hides a cause
  /// that never varies, such as a checkpoint that one rank writes.
  void NameRank(size_t rank_index) {
    std::vector<size_t> own;
    double sum_ns = 0;
    for (size_t c = 0; c < causes_.size(); ++c) {
      if (causes_[c].cause == RootCause::kSlowLink || causes_[c].rank_index != rank_index) continue;
      own.push_back(c);
      sum_ns += WaitOf(causes_[c]);
    }
    if (!IsEnough(sum_ns)) return;
    double chance = ChanceOf(rank_index, std::nullopt);
    const bool by_all = IsBeyond(chance);
    std::vector<size_t> by_themselves;
    for (const size_t c : own) {
      const double of_cause = IsEnough(WaitOf(causes_[c])) ? ChanceOf(rank_index, causes_[c].cause) : 1;
      chance = std::min(chance, of_cause);
      if (IsBeyond(of_cause)) by_themselves.push_back(c);
    }
    if (by_themselves.empty() && !by_all) return;
    for (const size_t c : by_themselves.empty() ? own : by_themselves) named_.insert({rank_index, causes_[c].cause});
    Add(by_all ? own : by_themselves, chance);
  }

  bool IsBeyond(double chance) const { return chance <= (most_named_ns_ > 0 ? kMaxChanceBeside : kMaxChance); }

  void NameLink(size_t c) {
    const bool recurs = causes_[c].pattern == WaitPattern::kChronic || causes_[c].pattern == WaitPattern::kPeriodic;
    if (recurs && causes_[c].wait_ratio >= kLeastShare) Add({c}, 0);
  }

  void Add(std::vector<size_t> own, double chance) {
    WaitCulprit culprit;
    culprit.rank_index = causes_[own.front()].rank_index;
    culprit.rank_indices = causes_[own.front()].rank_indices;
    for (const size_t c : own) {
      culprit.wait_ns += causes_[c].direct_wait_ns + causes_[c].propagated_wait_ns;
      culprit.delay_ns += causes_[c].delay_ns;
    }
    most_named_ns_ = std::max(most_named_ns_, static_cast<double>(culprit.wait_ns));
    culprit.wait_ratio = wait_ns_ > 0 ? std::min(1.0, static_cast<double>(culprit.wait_ns) / wait_ns_) : 0;
    culprit.chance = chance;
    culprit.causes = std::move(own);
    culprits_.push_back(std::move(culprit));
  }

  const WaitTable& table_;
  const std::vector<RootCauseRow>& causes_;
  const double wait_ns_;
  double began_ns_ = 0;
  double most_named_ns_ = 0;
  std::set<std::pair<size_t, RootCause>> named_;
  std::vector<WaitCulprit> culprits_;
};

}  // namespace

std::vector<WaitCulprit> FindCulprits(const WaitTable& table, const std::vector<RootCauseRow>& causes,
                                      int64_t wait_ns) {
  return CulpritFinder(table, causes, wait_ns).Find();
}

const char* WaitRoleName(WaitRole role) {
  switch (role) {
    case WaitRole::kNone: break;
    case WaitRole::kNamed: return "straggler";
    case WaitRole::kPassesOn: return "passes_on";
  }
  return "none";
}

WaitRole WaitStates::RoleOf(size_t rank_index) const {
  bool passes_on = false;
  for (const WaitCulprit& culprit : culprits) {
    for (const size_t c : culprit.causes) {
      if (causes[c].cause != RootCause::kSlowLink && culprit.rank_index == rank_index) return WaitRole::kNamed;
      const std::vector<size_t>& passing = causes[c].passed_on_by;
      passes_on = passes_on || std::binary_search(passing.begin(), passing.end(), rank_index);
    }
  }
  return passes_on ? WaitRole::kPassesOn : WaitRole::kNone;
}

}  // namespace lockstep::analysis
