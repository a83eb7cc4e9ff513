#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "measure/report/collective_bench_report.h"
#include "present/report/format.h"
#include "present/report/utf8.h"

namespace lockstep::report {
namespace {

using collective_bench::Operation;
using collective_bench::Pair;
using collective_bench::Plan;
using collective_bench::RankFacts;
using collective_bench::Results;
using collective_bench::Row;
using collective_bench::Timing;

constexpr double kGiga = 1e9;

/// Digits fall away as the time grows, as in nccl-tests.
std::string Microseconds(double time_ns) {
  const double us = time_ns / 1e3;
  return us < 10000 ? fmt::format("{:.2f}", us) : us < 100000 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

std::string Bandwidth(const std::optional<double>& bytes_per_s) {
  return bytes_per_s ? fmt::format("{:.2f}", *bytes_per_s / kGiga) : "-";
}

std::string TimingColumns(const std::optional<Timing>& timing) {
  if (!timing) return fmt::format("{:>9} {:>7} {:>7} {:>6}", "-", "-", "-", "-");
  return fmt::format("{:>9} {:>7} {:>7} {:>6}", Microseconds(timing->mean_ns), Bandwidth(timing->algbw_bytes_per_s),
                     Bandwidth(timing->busbw_bytes_per_s),
                     timing->wrong_count ? fmt::format("{}", *timing->wrong_count) : "N/A");
}

const Timing* AnyTiming(const Row& row) {
  if (row.out_of_place) return &*row.out_of_place;
  return row.in_place ? &*row.in_place : nullptr;
}

std::string Place(const Results& results, int rank) {
  const RankFacts& facts = results.ranks[static_cast<size_t>(rank)];
  return fmt::format("rank {} ({})", rank, Printable(facts.host));
}

void WriteDevices(const Results& results, std::ostream& out) {
  bool first = true;
  for (size_t rank = 0; rank < results.ranks.size(); ++rank) {
    const RankFacts& facts = results.ranks[rank];
    if (facts.device.empty()) continue;
    out << fmt::format("{}#  Rank {:>2} Pid {:>6} on {} {}\n", first ? "#\n" : "", rank, facts.pid,
                       Printable(facts.host), Printable(facts.device));
    first = false;
  }
}

void WriteWrong(const Results& results, std::ostream& out) {
  std::map<std::string, std::set<int>> wrong;
  for (const Row& row : results.rows) {
    for (const auto* timing : {&row.out_of_place, &row.in_place}) {
      if (*timing && !(*timing)->wrong_ranks.empty()) {
        wrong[OperationName(row.operation)].insert((*timing)->wrong_ranks.begin(), (*timing)->wrong_ranks.end());
      }
    }
  }
  for (const auto& [name, ranks] : wrong) {
    std::string places;
    for (const int rank : ranks) places += (places.empty() ? "" : ", ") + Place(results, rank);
    out << fmt::format("# WRONG: {} gave wrong elements on {}\n", name, places);
  }
}

/// Of every operation the largest size: how far ranks lie apart.
void WriteSpread(const Results& results, std::ostream& out) {
  std::map<Operation, const Row*> largest;
  for (const Row& row : results.rows) {
    if (AnyTiming(row) == nullptr) continue;
    const Row*& best = largest[row.operation];
    if (best == nullptr || row.bytes > best->bytes) best = &row;
  }
  if (largest.empty() || results.ranks.size() < 2) return;
  out << "#\n# At the largest size: mean time by rank, fastest and slowest; iterations of all ranks\n";
  for (const auto& [operation, row] : largest) {
    const Timing& timing = *AnyTiming(*row);
    out << fmt::format("#   {:<14} {:>12}  {} us on {}, {} us on {}", OperationName(operation), row->bytes,
                       Microseconds(timing.fastest_ns), Place(results, timing.fastest_rank),
                       Microseconds(timing.slowest_ns), Place(results, timing.slowest_rank));
    if (timing.median_ns && timing.p99_ns) {
      out << fmt::format("; median {} us, P99 {} us", Microseconds(*timing.median_ns), Microseconds(*timing.p99_ns));
    }
    out << '\n';
  }
}

void WritePairs(const Results& results, std::ostream& out) {
  constexpr size_t kMostColumns = 32;
  if (results.pairs.empty()) return;
  const size_t size = results.ranks.size();
  if (size <= kMostColumns) {
    std::vector<double> rates(size * size, 0);
    for (const Pair& pair : results.pairs) {
      rates[static_cast<size_t>(pair.a) * size + static_cast<size_t>(pair.b)] = pair.bytes_per_s;
      rates[static_cast<size_t>(pair.b) * size + static_cast<size_t>(pair.a)] = pair.back_bytes_per_s;
    }
    out << fmt::format("#\n# GB/s from rank (row) to rank (column), {} each, one pair at a time\n#{:>6}",
                       collective_bench::BytesText(collective_bench::kPairBytes), "");
    for (size_t to = 0; to < size; ++to) out << fmt::format(" {:>7}", to);
    out << '\n';
    for (size_t from = 0; from < size; ++from) {
      out << fmt::format("#{:>6}", from);
      for (size_t to = 0; to < size; ++to) {
        out << fmt::format(" {:>7}", from == to ? "-" : fmt::format("{:.2f}", rates[from * size + to] / kGiga));
      }
      out << '\n';
    }
  }
  std::vector<double> latencies;
  for (const Pair& pair : results.pairs) latencies.push_back(pair.latency_ns);
  std::sort(latencies.begin(), latencies.end());
  out << fmt::format("# Latency of 8 B: {} us (median of pairs), {} us (largest)\n",
                     Microseconds(latencies[latencies.size() / 2]), Microseconds(latencies.back()));
  bool any = false;
  for (const Pair& pair : results.pairs) {
    if (!pair.is_slow) continue;
    any = true;
    out << fmt::format("# SLOW LINK: {} and {}: {:.2f} and {:.2f} GB/s, less than half of what such pairs have\n",
                       Place(results, pair.a), Place(results, pair.b), pair.bytes_per_s / kGiga,
                       pair.back_bytes_per_s / kGiga);
  }
  if (!any) out << "# No link has less than half of what such pairs have\n";
}

}  // namespace

void WriteBenchHead(const Plan& plan, std::ostream& out) {
  if (plan.operations.empty()) return;
  out << fmt::format("# warmup iters: {}  iters: {}  validation: {}\n", plan.warmup, plan.iterations,
                     plan.check ? 1 : 0);
  out << fmt::format("#\n#{:14} {:>12} {:>12} {:>8} {:>6} {:>5} {:^32}  {:^32}\n", "", "", "", "", "", "",
                     "out-of-place", "in-place");
  out << fmt::format("# {:<13} {:>12} {:>12} {:>8} {:>6} {:>5} {:>9} {:>7} {:>7} {:>6} {:>10} {:>7} {:>7} {:>6}\n",
                     "operation", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
                     "algbw", "busbw", "#wrong");
  out << fmt::format("# {:<13} {:>12} {:>12} {:>8} {:>6} {:>5} {:>9} {:>7} {:>7} {:>6} {:>10} {:>7} {:>7} {:>6}\n", "",
                     "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

void WriteBenchRow(const Plan& plan, const Row& row, std::ostream& out) {
  out << fmt::format("  {:<13} {:>12} {:>12} {:>8} {:>6} {:>5} ", OperationName(row.operation), row.bytes, row.count,
                     DataTypeName(plan.type), HasReduction(row.operation) ? ReductionName(plan.reduction) : "none",
                     HasRoot(row.operation) ? plan.root : -1);
  if (!row.skipped.empty()) {
    out << fmt::format("not measured: {}\n", row.skipped);
  } else {
    out << fmt::format("{}  {}\n", TimingColumns(row.out_of_place), TimingColumns(row.in_place));
  }
  out.flush();
}

void WriteBenchTail(const Results& results, std::ostream& out) {
  const std::set<std::string> hosts = [&] {
    std::set<std::string> names;
    for (const RankFacts& rank : results.ranks) names.insert(rank.host);
    return names;
  }();
  WriteSpread(results, out);
  WriteDevices(results, out);
  WritePairs(results, out);
  out << fmt::format("#\n# {}: {} rank{} on {} host{}\n", Printable(results.backend), results.ranks.size(),
                     results.ranks.size() == 1 ? "" : "s", hosts.size(), hosts.size() == 1 ? "" : "s");
  WriteWrong(results, out);
  if (!results.rows.empty() && results.plan.check) {
    const uint64_t wrong = WrongCount(results);
    out << fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  }
}

uint64_t WrongCount(const Results& results) {
  uint64_t wrong = 0;
  for (const Row& row : results.rows) {
    if (row.out_of_place) wrong += row.out_of_place->wrong_count.value_or(0);
    if (row.in_place) wrong += row.in_place->wrong_count.value_or(0);
  }
  return wrong;
}

}  // namespace lockstep::report
