#include "ingest/stage_files/stage_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "base/small_file.h"
#include "base/system_error.h"
#include "base/unique_fd.h"
#include "ingest/bytes/input_files.h"
#include "ingest/span_follow/span_follower.h"
#include "ingest/span_follow/stage_cutter.h"
#include "ingest/span_trace/wire_format.h"
#include "ingest/stage_files/stage_summary.h"

namespace lockstep::ingest {

using model::RankStages;
using model::Severity;
using model::StepStages;

namespace {

constexpr std::string_view kSuffix = ".spans";
constexpr size_t kMostWorkloadFileBytes = size_t{1} << 20;

std::string TextOf(const char* bytes, size_t most) { return {bytes, ::strnlen(bytes, most)}; }

RankStages Identify(const span_trace::Header& header, const std::string& path) {
  RankStages rank;
  rank.rank = header.rank;
  if (header.world_size > 0) rank.world_size = header.world_size;
  rank.host = TextOf(header.host, sizeof(header.host));
  rank.program = TextOf(header.program, sizeof(header.program));
  rank.process_id = static_cast<int64_t>(header.process_id);
  rank.source = path;
  return rank;
}

constexpr int64_t kMostNs = int64_t{1} << 60;  // Some more than 36 years.

/// A program may number its steps from the beginning again: what is compared between ranks is then their order.
void NumberInOrder(std::vector<StepStages>* steps) {
  const bool grow = std::adjacent_find(steps->begin(), steps->end(), [](const StepStages& a, const StepStages& b) {
                      return a.number >= b.number;
                    }) == steps->end();
  if (grow) return;
  for (size_t i = 0; i < steps->size(); ++i) (*steps)[i].number = static_cast<int64_t>(i);
}

/// One file to its end.
Result<RankStages> ReadStageFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return SystemError(path, "open", errno);
  ASSIGN_OR_RETURN(auto follower, span_follow::SpanFollower::Open(span_follow::ReadOpenFile(file.get())));
  RankStages rank = Identify(follower.header(), path);
  span_follow::StageCutter cutter;
  bool has_more = true;
  while (has_more) {
    ASSIGN_OR_RETURN(const span_follow::Followed followed, follower.ReadOn());
    const auto name_of = [&](uint32_t name) -> const std::string& { return follower.NameOf(name); };
    for (StepStages& step : cutter.Take(followed, name_of)) rank.steps.push_back(std::move(step));
    for (const auto& counter : followed.counters) {
      rank.memory.Take(follower.NameOf(counter.name), counter.time_ns, counter.value);
      if (follower.NameOf(counter.name) == model::kHidesCommunicationCounter && counter.value > 0) {
        rank.hides_communication = true;
      }
    }
    rank.dropped_record_count = followed.dropped_count + followed.missed_count;
    rank.ended_in_order = followed.has_ended;
    has_more = followed.has_more;
  }
  rank.groups = cutter.groups();
  rank.has_device_times = cutter.has_device_times();
  rank.impossible_step_count = DropImpossibleSteps(&rank.steps);
  NumberInOrder(&rank.steps);
  return rank;
}

int64_t LastStepNs(const RankStages& rank) { return rank.steps.back().start_ns + rank.steps.back().duration_ns; }

/// Of two processes of one rank the later one stays.
void Keep(RankStages rank, std::map<int32_t, RankStages>* by_rank, model::Ledger* ledger) {
  RankStages& kept = (*by_rank)[rank.rank];
  if (kept.steps.empty()) {
    kept = std::move(rank);
    return;
  }
  if (LastStepNs(rank) >= LastStepNs(kept)) std::swap(kept, rank);
  ledger->Add({.code = "rank_started_again",
               .severity = Severity::kInfo,
               .source = rank.source,
               .rank = rank.rank,
               .message = fmt::format("process {} recorded {} steps before another one took its place", rank.process_id,
                                      rank.steps.size()),
               .advice = "only the last process of a rank is counted"});
}

void TellLosses(const RankStages& rank, model::Ledger* ledger) {
  if (rank.impossible_step_count > 0) {
    ledger->Add(
        {.code = "impossible_steps",
         .source = rank.source,
         .rank = rank.rank,
         .count = rank.impossible_step_count,
         .message = "steps that overlap the one before, or are longer than any, were left out: the file is damaged",
         .advice = "copy it again from the node that wrote it"});
  }
  if (rank.dropped_record_count == 0) return;
  ledger->Add({.code = "stage_records_lost",
               .source = rank.source,
               .rank = rank.rank,
               .count = rank.dropped_record_count,
               .message = "records did not fit into the file: steps may be missing, or parts of them count as other",
               .advice = "give it more room with LOCKSTEP_TRACE_LIMIT_MIB"});
}

/// Ranks that the others know of and that left nothing.
void TellMissingRanks(const std::map<int32_t, RankStages>& by_rank, Severity severity, model::Ledger* ledger) {
  int32_t world_size = 0;
  for (const auto& [number, rank] : by_rank) world_size = std::max(world_size, rank.world_size.value_or(0));
  const int64_t missing_count = world_size - static_cast<int64_t>(by_rank.size());
  if (missing_count <= 0) return;
  int32_t first = 0;
  while (by_rank.contains(first)) ++first;
  ledger->Add({.code = "rank_without_stages",
               .severity = severity,
               .rank = first,
               .count = static_cast<uint64_t>(missing_count),
               .message = fmt::format("{} of {} ranks left no steps, the first of them rank {}", missing_count,
                                      world_size, first),
               .advice = "the one that costs most may be among them: give their files, or ask their nodes, too"});
}

/// What `lockstep run --workload` left in the folders.
model::Workload DeclaredWorkload(const std::vector<std::string>& paths, model::Ledger* ledger) {
  model::Workload declared;
  for (const std::string& path : paths) {
    const std::string file = path + "/" + kWorkloadFile;
    const std::optional<std::string> json = ReadSmallFile(file, kMostWorkloadFileBytes);
    if (!json) continue;
    Result<model::Workload> workload = ParseWorkload(*json, file);
    if (workload) {
      declared.merge(*workload);
      continue;
    }
    ledger->Add({.code = "unreadable_file",
                 .source = file,
                 .message = workload.error().ToString(),
                 .advice = "say what the job ran by lockstep stages --workload"});
  }
  return declared;
}

}  // namespace

uint64_t DropImpossibleSteps(std::vector<StepStages>* steps) {
  int64_t end_ns = INT64_MIN;
  int64_t sum_ns = 0;
  return std::erase_if(*steps, [&](const StepStages& step) {
    const bool fits = step.duration_ns >= 0 && step.duration_ns <= kMostNs - sum_ns && step.start_ns >= end_ns &&
                      step.start_ns <= INT64_MAX - step.duration_ns;
    if (!fits) return true;
    sum_ns += step.duration_ns;
    end_ns = step.start_ns + step.duration_ns;
    return false;
  });
}

Result<StageFiles> ReadStageFiles(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const std::vector<InputFile> files, FindInputFiles(paths, [](const std::filesystem::path& path) {
                     return path.extension() == kSuffix;
                   }));
  model::Ledger ledger;
  std::vector<RankStages> ranks;
  for (const InputFile& file : files) {
    Result<RankStages> rank = ReadStageFile(file.path);
    if (!rank) {
      ledger.Add({.code = "unreadable_file",
                  .severity = Severity::kError,
                  .source = file.path,
                  .message = rank.error().ToString(),
                  .advice = "the other files are read all the same"});
    } else if (!rank->steps.empty()) {
      ranks.push_back(std::move(*rank));
    }
  }
  if (ranks.empty()) {
    if (!ledger.entries().empty()) {
      return Error{.code = ErrorCode::kCorruptData, .message = ledger.entries().front().message};
    }
    return Error{.code = ErrorCode::kNotFound,
                 .message = files.empty()
                                ? "no span trace (*.spans) is there; record the job by `lockstep run --stages -- CMD`"
                                : "no span trace has steps in it; record the job by `lockstep run --stages -- CMD`",
                 .file = paths.empty() ? "" : paths.front()};
  }
  model::Workload workload = DeclaredWorkload(paths, &ledger);
  StageFiles joined = JoinRanks(std::move(ranks), std::move(ledger), Severity::kWarning);
  joined.facts.workload = std::move(workload);
  return joined;
}

StageFiles JoinRanks(std::vector<RankStages> ranks, model::Ledger ledger, Severity missing) {
  StageFiles joined{.ledger = std::move(ledger)};
  std::map<int32_t, RankStages> by_rank;
  for (RankStages& rank : ranks) Keep(std::move(rank), &by_rank, &joined.ledger);
  TellMissingRanks(by_rank, missing, &joined.ledger);
  for (auto& [number, rank] : by_rank) {
    TellLosses(rank, &joined.ledger);
    joined.ranks.push_back(std::move(rank));
  }
  return joined;
}

}  // namespace lockstep::ingest
