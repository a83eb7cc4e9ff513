#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/nanoseconds.h"
#include "ingest/bytes/file_names.h"
#include "ingest/evidence/evidence_names.h"
#include "ingest/evidence/evidence_part.h"
#include "ingest/evidence/ranks_of_names.h"
#include "ingest/flight_recorder/name_numbers.h"
#include "ingest/nccl/nccl_log.h"
#include "ingest/nccl/ras_problems.h"

namespace lockstep::ingest {
namespace {

using evidence::FlightRecord;
using evidence::JobEvidence;
using evidence::kNotRecorded;
using evidence::RankEvidence;

int64_t NewestTime(const FlightRecord& record) {
  int64_t newest = kNotRecorded;
  for (const evidence::FlightEntry& entry : record.entries) {
    newest = std::max({newest, entry.created_unix_ns, entry.completed_unix_ns});
  }
  return newest;
}

/// When a record was made: as who asked for it says, else its file's time. A time before what the record tells of is
/// another clock's, or of another file; a file system's clock may be a little behind. A file's time of a day later is
/// that of a copy: no time-out of a collective is as long.
std::optional<int64_t> RecordTime(std::optional<int64_t> told_ns, std::optional<int64_t> modified_ns,
                                  int64_t newest_ns) {
  constexpr int64_t kSlackNs = kSecondNs;
  constexpr int64_t kMostNs = 86'400 * kSlackNs;
  if (modified_ns && newest_ns != kNotRecorded && *modified_ns - newest_ns > kMostNs) modified_ns.reset();
  for (const std::optional<int64_t>& time : {told_ns, modified_ns}) {
    if (time && (newest_ns == kNotRecorded || *time >= newest_ns - kSlackNs)) {
      return std::max(*time, newest_ns);
    }
  }
  return std::nullopt;
}

class Merger {
 public:
  explicit Merger(std::vector<EvidencePart> parts) : parts_(std::move(parts)) {}

  Result<JobEvidence> Merge() {
    ReadHeaders();
    CompareNames();
    ReadProcesses();
    RETURN_IF_ERROR(ReadRecords());
    for (EvidencePart& part : parts_) {
      TakeStacks(part);
      TakeLog(part);
      TakeRas(part);
      for (evidence::EvidenceProblem& problem : part.problems) job_.problems.push_back(std::move(problem));
    }
    TakeNccl();
    FindRas();
    TellWorldSize();
    DropStrayRanks();
    NoteDeaths();
    NoteMissing();
    for (auto& [number, rank] : ranks_) job_.ranks.push_back(std::move(rank));
    return std::move(job_);
  }

 private:
  RankEvidence& Rank(int32_t number) {
    RankEvidence& rank = ranks_[number];
    rank.rank = number;
    return rank;
  }

  void Note(const EvidencePart& part, std::string message, bool is_note) {
    job_.problems.push_back(
        {.file = part.file, .rank = part.rank, .message = std::move(message), .skipped = true, .is_note = is_note});
  }

  void ReadHeaders() {
    for (EvidencePart& part : parts_) {
      if (!part.header) continue;
      job_.live = true;
      if (job_.job_id.empty()) job_.job_id = part.header->job_id;
      if (part.header->world_size) StateWorldSize(*part.header->world_size);
      if (part.header->collected_unix_ns) {
        job_.collected_unix_ns = std::max(job_.collected_unix_ns.value_or(0), *part.header->collected_unix_ns);
      }
      for (auto& missing : part.header->missing) job_.missing.push_back(std::move(missing));
    }
  }

  void StateWorldSize(int32_t size) { stated_world_size_ = std::max(stated_world_size_.value_or(0), size); }

  /// Where files of one folder and kind seem to be of one rank, since their names hold more numbers than that (a
  /// host's), all names together tell which number is the rank.
  void CompareNames() {
    std::map<std::tuple<std::string_view, bool, std::string_view>, std::vector<EvidencePart*>> kinds;
    for (EvidencePart& part : parts_) {
      if (part.rank_is_stated || (!part.record && !part.log && part.stacks.empty())) continue;
      const std::string_view name = BaseName(part.path);
      const std::string_view ending = name.substr(StemOfName(name).size());
      // Dumps may be there in two forms.
      kinds[{FolderOf(part.path), part.record.has_value(), part.record ? "" : ending}].push_back(&part);
    }
    for (const auto& [kind, parts] : kinds) {
      std::map<int32_t, std::string_view> stem_of_rank;
      std::vector<std::string> names;
      bool collide = false;
      for (const EvidencePart* part : parts) {
        names.emplace_back(BaseName(part->path));
        if (!part->rank) continue;
        const std::string_view stem = StemOfName(part->path);
        collide = collide || stem_of_rank.emplace(*part->rank, stem).first->second != stem;
      }
      const auto ranks = collide ? RanksOfNames(names) : std::nullopt;
      for (size_t i = 0; ranks && i < parts.size(); ++i) parts[i]->rank = (*ranks)[i];
    }
  }

  /// A process's own folder names the rank of all files in it; files of several processes may lie in another one.
  void ReadProcesses() {
    std::map<std::string_view, int32_t> ranks_of_folders;
    for (EvidencePart& part : parts_) {
      if (!part.process) continue;
      if (part.process->rank) part.rank = part.process->rank;
      if (part.rank && *part.rank >= 0 && part.path.ends_with("/process.json")) {
        ranks_of_folders[FolderOf(part.path)] = *part.rank;
      }
    }
    for (EvidencePart& part : parts_) {
      if (const auto found = ranks_of_folders.find(FolderOf(part.path)); found != ranks_of_folders.end()) {
        part.rank = found->second;
      }
    }
    for (EvidencePart& part : parts_) {
      if (!part.process) continue;
      if (!part.rank || *part.rank < 0) {
        Note(part, fmt::format("process {} has no rank; it is left out", part.process->pid), true);
        continue;
      }
      TakeProcess(*part.rank, std::move(*part.process), part.file);
    }
  }

  void TakeProcess(int32_t number, evidence::InspectedProcess process, const std::string& file) {
    RankEvidence& rank = Rank(number);
    if (rank.collected_unix_ns && *rank.collected_unix_ns >= process.collected_unix_ns) return;
    if (process.world_size && *process.world_size > 0) StateWorldSize(*process.world_size);
    if (job_.job_id.empty()) job_.job_id = process.job_id;
    rank.host = process.host;
    rank.pid = process.pid;
    rank.liveness = process.liveness;
    rank.collected_unix_ns = process.collected_unix_ns;
    rank.process = std::move(process.state);
    if (process.record_unix_ns > 0) rank.record_unix_ns = process.record_unix_ns;
    if (!process.stacks.empty()) {
      rank.stacks = std::move(process.stacks);
      rank.stacks_file = file;
    }
    rank.missing = std::move(process.missing);
    for (evidence::MissingEvidence& missing : rank.missing) missing.rank = number;
    if (!process.log_path.empty()) rank.log_file = process.log_path;
  }

  /// PyTorch's dumps and the NCCL plugin's rings have groups and numbers of their own, so that only records of one kind
  /// can be compared: of that which more ranks have; dumps, which have stacks, where both have as many.
  void ChooseKindOfRecord() {
    std::set<int32_t> ranks[2];
    for (const EvidencePart& part : parts_) {
      if (part.record && part.rank && !part.record->entries.empty()) ranks[part.is_written_in_place].insert(*part.rank);
    }
    if (ranks[0].empty() || ranks[1].empty()) return;
    const bool takes_rings = ranks[1].size() > ranks[0].size();
    for (EvidencePart& part : parts_) {
      if (!part.record || part.is_written_in_place == takes_rings) continue;
      if (part.rank && !ranks[takes_rings].contains(*part.rank)) {
        Note(part,
             takes_rings
                 ? "a dump of PyTorch's cannot be compared with the NCCL plugin's records, which more ranks have"
                 : "a record of the NCCL plugin cannot be compared with PyTorch's dumps, which more ranks have",
             true);
      }
      part.record.reset();
    }
  }

  /// Of several dumps of a rank the newest counts; of one dump in two forms the one with stacks.
  Status ReadRecords() {
    ChooseKindOfRecord();
    struct Place {
      EvidencePart* part;
      int64_t newest_ns;
    };
    std::map<int32_t, Place> best;
    for (EvidencePart& part : parts_) {
      if (!part.record) continue;
      if (!part.rank || *part.rank < 0) {
        Note(part, "its name does not end in a rank; name it like trace_3", false);
        continue;
      }
      const int64_t newest_ns = NewestTime(*part.record);
      const auto [found, is_new] = best.try_emplace(*part.rank, Place{&part, newest_ns});
      if (is_new) continue;
      Place& other = found->second;
      RETURN_IF_ERROR(CheckOneJob(*other.part, part, other.newest_ns, newest_ns));
      const auto order = [](const EvidencePart& p, int64_t ns) {
        return std::tuple(ns, p.record->stacks.size() > 1, p.record->entries.size());
      };
      const bool newer = order(part, newest_ns) > order(*other.part, other.newest_ns);
      EvidencePart& loser = newer ? *other.part : part;
      if (newest_ns != other.newest_ns) {
        Note(loser, fmt::format("an older dump of rank {} than {}", *part.rank, newer ? part.file : other.part->file),
             true);
      }
      loser.record.reset();
      if (newer) other = {&part, newest_ns};
    }
    for (auto& [number, place] : best) {
      RankEvidence& rank = Rank(number);
      rank.record = std::move(place.part->record);
      rank.record_file = place.part->file;
      rank.record_unix_ns = RecordTime(rank.record_unix_ns, place.part->modified_unix_ns, place.newest_ns);
    }
    return {};
  }

  /// The same rank in two folders that were found below one path: two jobs, or two moments of one.
  static Status CheckOneJob(const EvidencePart& a, const EvidencePart& b, int64_t a_ns, int64_t b_ns) {
    const std::string_view folder_a = FolderOf(a.path);
    const std::string_view folder_b = FolderOf(b.path);
    if (folder_a == folder_b || a.root != b.root || a_ns == b_ns) return {};
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = fmt::format(
            "rank {} has dumps in {} and in {}: these are two jobs, or two times of one job; give one of the folders",
            *a.rank, folder_a, folder_b)};
  }

  void TakeStacks(EvidencePart& part) {
    if (part.stacks.empty()) return;
    if (!part.rank || *part.rank < 0) {
      Note(part,
           "the process of these stacks is not known: there is no rank in the file's name; name it like stacks_3.txt",
           false);
      return;
    }
    RankEvidence& rank = Rank(*part.rank);
    // What was asked of the live process is newer than what its log holds.
    if (!rank.stacks.empty() && (rank.process || part.log)) return;
    rank.stacks = std::move(part.stacks);
    rank.stacks_file = part.file;
  }

  void TakeLog(EvidencePart& part) {
    if (!part.log) return;
    if (part.log->world_size) logged_world_size_ = std::max(logged_world_size_.value_or(0), *part.log->world_size);
    const std::vector<int32_t>& prefixed = part.log->prefixed_ranks;
    std::optional<int32_t> whose = part.rank;
    if (prefixed.size() == 1) whose = prefixed.front();
    if (prefixed.size() > 1) whose.reset();
    for (const int32_t number : prefixed) Rank(number).log_file = part.file;
    if (whose && *whose >= 0) Rank(*whose).log_file = part.file;
    for (evidence::LogEvent& event : part.log->events) {
      // A rank in the text may be that of a group; whose log it is is sure. Launchers tell of other ranks' ends.
      if (!event.rank || (whose && event.kind != evidence::LogEventKind::kSignal && !event.exit_status)) {
        event.rank = whose;
      }
      if (event.rank && *event.rank >= 0) {
        RankEvidence& rank = Rank(*event.rank);
        if (rank.log_file.empty()) rank.log_file = part.file;
        rank.log.push_back(std::move(event));
      } else {
        job_.log.push_back(std::move(event));
      }
    }
    part.log.reset();
  }

  /// The time of asking is stored beside it; RAS's own time is in whole seconds of an unknown time zone.
  void TakeRas(EvidencePart& part) {
    if (!part.ras) return;
    const std::string folder(FolderOf(part.path));
    for (const EvidencePart& other : parts_) {
      if (!other.header || FolderOf(other.path) != folder) continue;
      const auto asked = other.header->ras_asked_unix_ns.find(std::string(BaseName(part.path)));
      if (asked != other.header->ras_asked_unix_ns.end()) part.ras->collected_unix_ns = asked->second;
    }
    job_.ras.push_back(std::move(*part.ras));
  }

  void FindRas() {
    for (const evidence::RasReport& report : job_.ras) {
      if (report.rank_count) logged_world_size_ = std::max(logged_world_size_.value_or(0), *report.rank_count);
    }
    for (evidence::NcclLogFinding& finding : FindRasProblems(job_.ras)) job_.nccl.push_back(std::move(finding));
  }

  void TakeNccl() {
    std::vector<evidence::NcclJob> logs;
    for (EvidencePart& part : parts_) {
      for (evidence::NcclJob& log : part.nccl) logs.push_back(std::move(log));
    }
    if (logs.empty()) return;
    const evidence::NcclJob merged = MergeNcclLogs(std::move(logs));
    job_.nccl = FindNcclProblems(merged);
    for (const evidence::NcclCommunicator& communicator : merged.communicators) {
      if (communicator.rank_count > 0) {
        logged_world_size_ = std::max(logged_world_size_.value_or(0), communicator.rank_count);
      }
    }
  }

  /// The launcher's value counts first; then that of a group of all ranks; then that of logs.
  void TellWorldSize() {
    std::optional<int32_t> grouped;
    for (const auto& [number, rank] : ranks_) {
      if (!rank.record) continue;
      for (const evidence::FlightGroup& group : rank.record->groups) {
        if (group.name.empty() || group.ranks.empty()) continue;
        const int32_t size = static_cast<int32_t>(group.ranks.size());
        const int32_t last = *std::max_element(group.ranks.begin(), group.ranks.end());
        if (last == size - 1) grouped = std::max(grouped.value_or(0), size);
      }
    }
    job_.world_size = stated_world_size_ ? stated_world_size_ : grouped ? grouped : logged_world_size_;
  }

  /// A number in a log's name that is not a rank of this job's.
  void DropStrayRanks() {
    if (!job_.world_size) return;
    for (auto at = ranks_.lower_bound(*job_.world_size); at != ranks_.end();) {
      RankEvidence& rank = at->second;
      if (rank.record || rank.process) {  // The world is larger than was said.
        ++at;
        continue;
      }
      for (evidence::LogEvent& event : rank.log) {
        event.rank.reset();
        job_.log.push_back(std::move(event));
      }
      at = ranks_.erase(at);
    }
  }

  void NoteDeaths() {
    for (auto& [number, rank] : ranks_) {
      for (const evidence::LogEvent& event : rank.log) {
        if (event.signal == 0 && !event.exit_status) continue;
        if (rank.exit_signal == 0) rank.exit_signal = event.signal;
        if (!rank.exit_status) rank.exit_status = event.exit_status;
        if (rank.liveness == evidence::Liveness::kUnknown) rank.liveness = evidence::Liveness::kGone;
      }
    }
  }

  void NoteMissing() {
    const bool any_record = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r.second.record; });
    const bool any_stacks =
        std::any_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return !r.second.stacks.empty(); });
    if (!any_record) {
      job_.missing.push_back(
          {.rank = {},
           .host = {},
           .what = "flight_recorder",
           .reason = "no file is a rank's dump",
           .remedy = "set TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, or collect from the running job "
                     "with lockstep hang --job ID"});
    }
    if (!any_stacks) {
      job_.missing.push_back(
          {.rank = {},
           .host = {},
           .what = "python_stacks",
           .reason = "no file has stacks",
           .remedy = "py-spy dump --pid PID > stacks_RANK.txt on each rank, or lockstep hang --job ID"});
    }
    if (!job_.world_size) return;
    for (int32_t number = 0; number < *job_.world_size && number < (1 << 20); ++number) {
      RankEvidence& rank = Rank(number);
      if (!any_record || rank.record || HasMissing(rank, "flight_recorder")) continue;
      rank.missing.push_back({.rank = number,
                              .host = rank.host,
                              .what = "flight_recorder",
                              .reason = "no file is its dump",
                              .remedy = "look for it on the rank's node; a process that was killed writes none"});
    }
  }

  static bool HasMissing(const RankEvidence& rank, std::string_view what) {
    return std::any_of(rank.missing.begin(), rank.missing.end(), [&](const auto& m) { return m.what == what; });
  }

  std::vector<EvidencePart> parts_;
  JobEvidence job_;
  std::map<int32_t, RankEvidence> ranks_;
  std::optional<int32_t> stated_world_size_;
  std::optional<int32_t> logged_world_size_;
};

}  // namespace

Result<JobEvidence> MergeEvidence(std::vector<EvidencePart> parts) { return Merger(std::move(parts)).Merge(); }

}  // namespace lockstep::ingest
