#include "ingest/job/rank_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ingest/job/trace_windows.h"

namespace lockstep::ingest {
namespace {

using model::RankSource;
using model::Severity;

void AddRow(model::Ledger* ledger, const char* code, Severity severity, std::string source, std::optional<int32_t> rank,
            std::string message, std::string advice) {
  model::LedgerEntry entry;
  entry.code = code;
  entry.severity = severity;
  entry.source = std::move(source);
  entry.rank = rank;
  entry.message = std::move(message);
  entry.advice = std::move(advice);
  ledger->Add(std::move(entry));
}

// Lowest rank that is not in use yet.
class FreeRanks {
 public:
  void Use(int32_t rank) { used_.insert(rank); }
  int32_t Take() {
    while (used_.contains(next_)) ++next_;
    used_.insert(next_);
    return next_;
  }

 private:
  std::set<int32_t> used_;
  int32_t next_ = 0;
};

void DecideRanks(std::vector<LoadedTrace>& traces, model::Ledger* ledger) {
  FreeRanks free_ranks;
  std::map<std::pair<std::string, int64_t>, int32_t> rank_by_process;
  const auto known = [&](LoadedTrace& loaded, int32_t rank, RankSource source) {
    loaded.trace.rank = {rank};
    loaded.trace.rank_source = source;
    free_ranks.Use(rank);
    if (loaded.facts.host && loaded.facts.process_id) {
      rank_by_process.try_emplace({*loaded.facts.host, *loaded.facts.process_id}, rank);
    }
  };
  for (LoadedTrace& loaded : traces) {
    loaded.has_rank = loaded.has_rank && loaded.trace.rank.value >= 0;
    if (loaded.has_rank) {
      known(loaded, loaded.trace.rank.value, RankSource::kDistributedInfo);
      if (loaded.facts.rank && *loaded.facts.rank != loaded.trace.rank.value) {
        AddRow(ledger, "rank_name_mismatch", Severity::kWarning, loaded.trace.source, loaded.trace.rank.value,
               fmt::format("the file's name says rank {}, its content (distributedInfo) says rank {}, which was used",
                           *loaded.facts.rank, loaded.trace.rank.value),
               "check that the files were not renamed");
      }
    } else if (loaded.facts.rank) {
      known(loaded, *loaded.facts.rank, RankSource::kFileName);
    }
  }
  // What the job wrote itself comes last: where one process was profiled, it is its.
  const auto without_rank = [](const LoadedTrace& loaded) { return !loaded.has_rank && !loaded.facts.rank; };
  const auto profiled = std::count_if(traces.begin(), traces.end(), [](const auto& t) { return t.IsProfile(); });
  std::vector<LoadedTrace*> undecided;
  for (const bool is_profile : {true, false}) {
    for (LoadedTrace& loaded : traces) {
      if (loaded.IsProfile() == is_profile && without_rank(loaded)) undecided.push_back(&loaded);
    }
  }
  for (LoadedTrace* next : undecided) {
    LoadedTrace& loaded = *next;
    std::optional<int32_t> same_process;
    if (loaded.facts.host && loaded.facts.process_id) {
      const auto found = rank_by_process.find({*loaded.facts.host, *loaded.facts.process_id});
      if (found != rank_by_process.end()) same_process = found->second;
    }
    if (!same_process && !loaded.IsProfile() && profiled == 1) {
      const auto only = std::find_if(traces.begin(), traces.end(), [](const auto& t) { return t.IsProfile(); });
      same_process = only->trace.rank.value;
    }
    known(loaded, same_process ? *same_process : free_ranks.Take(), RankSource::kOrder);
  }
}

// One row that names the ranks whose rank was not in the file itself.
void ReportSource(const std::vector<LoadedTrace>& traces, RankSource source, model::Ledger* ledger) {
  std::set<int32_t> ranks;
  const LoadedTrace* only = nullptr;
  uint64_t count = 0;
  for (const LoadedTrace& loaded : traces) {
    if (loaded.trace.rank_source != source) continue;
    ranks.insert(loaded.trace.rank.value);
    only = &loaded;
    ++count;
  }
  if (count == 0) return;
  const std::string listed = RangesText({ranks.begin(), ranks.end()});
  model::LedgerEntry entry;
  entry.severity = Severity::kInfo;
  entry.count = count;
  if (count == 1) {
    entry.source = only->trace.source;
    entry.rank = only->trace.rank.value;
  }
  if (source == RankSource::kFileName) {
    entry.code = "rank_from_name";
    entry.message = fmt::format("no distributedInfo: rank {} was read from the file's name", listed);
    entry.advice = "right unless files were renamed; start the profiler after torch.distributed to have it recorded";
  } else {
    entry.code = "rank_from_order";
    entry.message =
        fmt::format("neither the trace nor its name contains a rank: {} was assigned by the order of names", listed);
    entry.advice = "put rankN into the file names if the order is wrong";
  }
  ledger->Add(std::move(entry));
}

// Takes over what only the name knows, and says where the files disagree. Out: the largest world size.
std::optional<int32_t> DecideWorldSize(std::vector<LoadedTrace>& traces, model::Ledger* ledger) {
  std::map<int32_t, const LoadedTrace*> by_world;
  for (LoadedTrace& loaded : traces) {
    model::RankTrace& trace = loaded.trace;
    if (trace.host.empty() && loaded.facts.host) trace.host = *loaded.facts.host;
    if (trace.world_size && *trace.world_size <= 0) trace.world_size.reset();
    if (!trace.world_size) trace.world_size = loaded.facts.world_size;
    if (trace.world_size) by_world.try_emplace(*trace.world_size, &loaded);
    if (trace.world_size && trace.rank.value >= *trace.world_size) {
      AddRow(ledger, "rank_outside_world", Severity::kWarning, trace.source, trace.rank.value,
             fmt::format("is rank {} of a job of {} ranks", trace.rank.value, *trace.world_size),
             "the file may be of another job; analyse it alone");
    }
  }
  if (by_world.empty()) return std::nullopt;
  if (by_world.size() > 1) {
    std::string listed;
    for (const auto& [world, loaded] : by_world) {
      listed += fmt::format("{}{} ({})", listed.empty() ? "" : ", ", world, loaded->trace.source);
      if (listed.size() > 300) break;
    }
    AddRow(ledger, "mixed_world_sizes", Severity::kWarning, "", std::nullopt,
           "the traces state different world sizes: " + listed,
           "traces of several jobs cannot be compared with each other; analyse one job at a time");
  }
  return by_world.rbegin()->first;
}

// Ranks below `world_size`, or below the highest one seen, that no trace of a window has; at most `limit` + 1 of them,
// with the count of all.
struct Missing {
  std::vector<std::pair<int32_t, int32_t>> ranges;  // [first, last]
  int64_t count = 0;
};

Missing FindMissing(const std::set<int32_t>& present, int32_t rank_count) {
  Missing missing;
  int32_t next = 0;
  const auto gap_before = [&](int32_t rank) {
    if (rank > next) {
      missing.ranges.emplace_back(next, rank - 1);
      missing.count += int64_t{rank} - next;
    }
  };
  for (const int32_t rank : present) {
    if (rank >= rank_count) break;
    gap_before(rank);
    next = rank + 1;
  }
  gap_before(rank_count);
  return missing;
}

std::string RangesText(const std::vector<std::pair<int32_t, int32_t>>& ranges) {
  constexpr size_t kMostRanges = 16;
  std::string text;
  int64_t left_out = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto& [first, last] = ranges[i];
    if (i >= kMostRanges) {
      left_out += int64_t{last} - first + 1;
      continue;
    }
    if (i > 0) text += ", ";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  if (left_out > 0) text += fmt::format(" and {} more", left_out);
  return text;
}

void ReportMissing(const std::vector<LoadedTrace>& traces, std::optional<int32_t> world_size, model::Ledger* ledger) {
  std::map<int32_t, std::set<int32_t>> ranks_by_window;
  int32_t highest = 0;
  size_t kept = 0;
  for (const LoadedTrace& loaded : traces) {
    if (loaded.set_aside) continue;
    ranks_by_window[loaded.trace.window].insert(loaded.trace.rank.value);
    highest = std::max(highest, loaded.trace.rank.value);
    ++kept;
  }
  // Without a stated size only gaps below the highest rank are known to be missing, and one file alone shows no gap.
  if (!world_size && (kept < 2 || highest == INT32_MAX)) return;
  const int32_t rank_count = world_size ? *world_size : highest + 1;
  std::string message;
  uint64_t count = 0;
  for (const auto& [window, present] : ranks_by_window) {
    const Missing missing = FindMissing(present, rank_count);
    if (missing.count == 0) continue;
    count += static_cast<uint64_t>(missing.count);
    if (message.size() > 600) continue;
    if (!message.empty()) message += "; ";
    if (ranks_by_window.size() > 1) message += fmt::format("window {}: ", window);
    message += fmt::format("{} of {} ranks are missing: {}", missing.count, rank_count, RangesText(missing.ranges));
  }
  if (count == 0) return;
  model::LedgerEntry entry;
  entry.code = "missing_ranks";
  entry.severity = Severity::kWarning;
  entry.count = count;
  entry.message = std::move(message);
  entry.advice = "waits that they cause or suffer are not visible; add their traces if they exist";
  ledger->Add(std::move(entry));
}

}  // namespace

std::string RangesText(const std::vector<int32_t>& sorted) {
  std::vector<std::pair<int32_t, int32_t>> ranges;
  for (const int32_t number : sorted) {
    if (!ranges.empty() && int64_t{ranges.back().second} + 1 == number) {
      ranges.back().second = number;
    } else {
      ranges.emplace_back(number, number);
    }
  }
  return RangesText(ranges);
}

void AssignRanks(std::vector<LoadedTrace>* traces, model::Ledger* ledger) {
  DecideRanks(*traces, ledger);
  ReportSource(*traces, RankSource::kFileName, ledger);
  ReportSource(*traces, RankSource::kOrder, ledger);
  const std::optional<int32_t> world_size = DecideWorldSize(*traces, ledger);
  AssignWindows(traces, ledger);
  ReportMissing(*traces, world_size, ledger);
}

}  // namespace lockstep::ingest
