#include "ingest/job/team_ingest.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "base/on_threads.h"
#include "ingest/job/assemble_run.h"
#include "ingest/job/communicators.h"
#include "ingest/job/file_ingest.h"
#include "ingest/job/file_owners.h"
#include "ingest/job/ingest_operations.h"
#include "ingest/job/ingest_progress.h"
#include "ingest/job/job_files.h"
#include "ingest/job/name_merge.h"
#include "ingest/job/stages_beside.h"
#include "ingest/job/team_joins.h"

namespace lockstep::ingest {
namespace {

constexpr const char* kFindQuestion = "ingest.find";
constexpr const char* kReadQuestion = "ingest.read";
constexpr const char* kPlaceQuestion = "ingest.place";

struct FindRequest {
  std::vector<std::string> paths;
  ByteLimits limits;
  uint64_t root_digest = 0;
};

/// Only `same` if the process finds what the root found, as all do on one shared file system.
struct FindAnswer {
  bool same = false;
  std::vector<bool> has_path;  ///< Parallel to the paths.
  std::vector<TraceFile> files;
  std::vector<model::LedgerEntry> ledger;
};

struct ReadRequest {
  std::vector<std::vector<uint32_t>> files_by_process;  ///< Indices into the process's own list, in the job's order.
  ByteLimits limits;
  uint64_t window_bytes = 0;
  uint64_t max_event_bytes = 0;
  bool learned_templates = true;
  uint32_t thread_count = 0;
};

/// TraceContent without events and names.
struct ContentHead {
  model::RankTrace trace;
  bool has_rank = false;
  std::vector<model::LedgerEntry> ledger;
  int64_t merged_rank_count = 0;
  uint64_t recording = 0;
  bool is_span_trace = false;
  bool is_nccl_ring = false;
  std::vector<CommunicatorPlace> communicators;
  bool several_processes = false;
};

/// FileOutcome of such contents.
struct OutcomeHead {
  std::vector<ContentHead> contents;
  std::optional<Error> error;
  bool source_failed = false;
  uint32_t name_count = 0;
};

struct ReadAnswer {
  std::vector<OutcomeHead> outcomes;  ///< Parallel to the files asked for.
  std::vector<std::string> names;     ///< Of all of them, in order of first appearance.
  bool cancelled = false;
};

/// What the root decided of a trace.
struct PlacedTrace {
  uint32_t process = 0;
  uint32_t file = 0;  ///< Of those that the process read.
  uint32_t content = 0;
  Rank rank;
  model::RankSource rank_source = model::RankSource::kOrder;
  int32_t window = 0;
  std::optional<int32_t> world_size;
  std::string host;
  std::vector<model::ProcessGroup> communicators;  ///< Of a ring: their members, as far as known.
};

struct PlaceRequest {
  uint32_t run = 0;
  std::vector<std::string> names;   ///< The run's, by id.
  std::vector<PlacedTrace> traces;  ///< By rank index.
};

bool Exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

FindAnswer Find(const std::vector<std::string>& paths, const ByteLimits& limits,
                std::shared_ptr<const model::KernelProfiles>* profiles) {
  FindAnswer answer;
  std::vector<std::string> own;
  for (const std::string& path : paths) {
    answer.has_path.push_back(Exists(path));
    if (answer.has_path.back()) own.push_back(path);
  }
  model::Ledger ledger;
  if (!own.empty()) {
    auto found = FindJobFiles(own, limits, &ledger);
    if (found) {
      answer.files = std::move(found->traces);
      *profiles = std::move(found->kernel_profiles);
    }
  }
  answer.ledger = ledger.entries();
  return answer;
}

uint64_t DigestOf(const FindAnswer& answer) { return std::hash<std::string>{}(ToBytes(answer)); }

/// What travels of a trace; its events come back to it afterwards.
template <typename Use>
void WithoutEvents(model::RankTrace* trace, const Use& use) {
  model::HeldElsewhere elsewhere{trace->DeviceOrdinals()};
  model::RankTrace events;
  trace->SwapEvents(&events);
  trace->elsewhere = std::move(elsewhere);
  use();
  trace->elsewhere.reset();
  trace->SwapEvents(&events);
}

bool SameEntry(const model::LedgerEntry& a, const model::LedgerEntry& b) { return ToBytes(a) == ToBytes(b); }

}  // namespace

/// One process's part: what it found, what it read.
class TeamIngest::Share {
 public:
  Share(Team* team, model::HeldRuns* runs, uint32_t default_thread_count)
      : joins(team, {&outcomes_, &names_}),
        process_(team->process()),
        runs_(*runs),
        default_thread_count_(default_thread_count) {}

  const FindAnswer& FindOwn(const FindRequest& request) {
    found_ = Find(request.paths, request.limits, &kernel_profiles);
    return found_;
  }

  FindAnswer AnswerFind(const FindRequest& request) {
    // The root has looked, so that it could ask.
    if (process_ != 0) FindOwn(request);
    if (DigestOf(found_) == request.root_digest) return {.same = true, .has_path = {}, .files = {}, .ledger = {}};
    return found_;
  }

  /// Bytes: the heads are written while their events are set aside.
  ReadAnswer AnswerRead(const ReadRequest& request) {
    std::vector<TraceFile> files;
    uint64_t total_bytes = 0;
    for (const uint32_t index : request.files_by_process[process_]) {
      files.push_back(found_.files.at(index));
      total_bytes += files.back().size_bytes;
    }
    IngestOptions options;
    options.limits = request.limits;
    options.reader.window_bytes = request.window_bytes;
    options.reader.max_event_bytes = request.max_event_bytes;
    options.reader.learned_templates = request.learned_templates;
    thread_count_ = request.thread_count != 0 ? request.thread_count : default_thread_count_;
    ProgressMeter meter(on_progress, total_bytes, static_cast<uint32_t>(files.size()), cancelled);
    names_ = model::NameTable();
    joins.Forget();
    outcomes_ =
        files.empty() ? std::vector<FileOutcome>() : IngestFiles(files, options, thread_count_, &meter, &names_);
    meter.Finish();

    ReadAnswer answer;
    answer.cancelled = meter.cancelled();
    for (FileOutcome& outcome : outcomes_) {
      OutcomeHead head{{}, outcome.error, outcome.source_failed, outcome.name_count};
      for (TraceContent& content : outcome.contents) {
        ContentHead& own = head.contents.emplace_back();
        WithoutEvents(&content.trace, [&] {
          Result<model::RankTrace> copy = FromBytes<model::RankTrace>(ToBytes(content.trace));
          if (!copy) throw TeamError(copy.error().ToString());
          own.trace = std::move(*copy);
        });
        own.has_rank = content.has_rank;
        own.ledger = content.ledger.entries();
        own.merged_rank_count = content.merged_rank_count;
        own.recording = content.recording;
        own.is_span_trace = content.is_span_trace;
        own.is_nccl_ring = content.is_nccl_ring;
        own.communicators = content.communicators;
        own.several_processes = content.several_processes;
      }
      answer.outcomes.push_back(std::move(head));
    }
    for (uint32_t id = 0; id < names_.size(); ++id) answer.names.emplace_back(names_[NameId{id}]);
    return answer;
  }

  void AnswerPlace(const PlaceRequest& request) {
    model::HeldRun held;
    for (const std::string& name : request.names) held.run.names.Intern(name);
    std::vector<NameId> new_ids(names_.size());
    for (uint32_t id = 0; id < names_.size(); ++id) held.run.names.Find(names_[NameId{id}], &new_ids[id]);
    held.run.ranks.resize(request.traces.size());
    for (size_t i = 0; i < request.traces.size(); ++i) {
      const PlacedTrace& placed = request.traces[i];
      if (placed.process != process_) continue;
      model::RankTrace& trace = held.run.ranks[i];
      TraceContent& content = outcomes_.at(placed.file).contents.at(placed.content);
      trace = std::move(content.trace);
      if (content.is_nccl_ring) {
        trace.groups = placed.communicators;
        ResolvePeers(content.communicators, &trace);
      }
      trace.rank = placed.rank;
      trace.rank_source = placed.rank_source;
      trace.window = placed.window;
      trace.world_size = placed.world_size;
      trace.host = placed.host;
      held.rank_indices.push_back(i);
    }
    outcomes_.clear();
    names_ = model::NameTable();
    OnThreads(held.rank_indices.size(), thread_count_,
              [&](size_t i) { RenameIds(new_ids, &held.run.ranks[held.rank_indices[i]]); });
    runs_[request.run] = std::move(held);
  }

  /// What the process's own files hold besides; the root's are the run's. Shared as Run::kernel_profiles is.
  std::shared_ptr<const model::KernelProfiles> kernel_profiles;
  /// Root only, while it reads.
  std::function<void(const IngestProgress&)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;
  TeamJoins joins;

 private:
  const size_t process_;
  model::HeldRuns& runs_;
  const uint32_t default_thread_count_;
  FindAnswer found_;
  std::vector<FileOutcome> outcomes_;
  model::NameTable names_;
  uint32_t thread_count_ = 1;
};

TeamIngest::TeamIngest(Team* team, model::HeldRuns* runs, uint32_t default_thread_count)
    : team_(*team), share_(std::make_unique<Share>(team, runs, default_thread_count)) {
  Share* share = share_.get();
  team->Handle<FindAnswer, FindRequest>(kFindQuestion,
                                        [share](const FindRequest& request) { return share->AnswerFind(request); });
  team->Handle<ReadAnswer, ReadRequest>(kReadQuestion,
                                        [share](const ReadRequest& request) { return share->AnswerRead(request); });
  team->Handle<bool, PlaceRequest>(kPlaceQuestion, [share](const PlaceRequest& request) {
    share->AnswerPlace(request);
    return true;
  });
}

TeamIngest::~TeamIngest() = default;

Result<model::Run> TeamIngest::Run(const std::vector<std::string>& paths, const IngestOptions& options) {
  model::Run run;
  // What there is, and who sees it.
  FindRequest find{paths, options.limits, 0};
  const FindAnswer own = share_->FindOwn(find);
  run.kernel_profiles = share_->kernel_profiles;
  find.root_digest = DigestOf(own);
  std::vector<FindAnswer> found = team_.Ask<FindAnswer>(kFindQuestion, find);
  std::vector<bool> differs;
  std::vector<std::vector<TraceFile>> differing;
  std::vector<model::LedgerEntry> seen_entries = own.ledger;
  std::vector<bool> has_path = own.has_path;
  for (FindAnswer& answer : found) {
    differs.push_back(!answer.same);
    differing.push_back(std::move(answer.files));
    for (model::LedgerEntry& entry : answer.ledger) {
      const auto same = [&entry](const model::LedgerEntry& known) { return SameEntry(known, entry); };
      if (std::none_of(seen_entries.begin(), seen_entries.end(), same)) seen_entries.push_back(std::move(entry));
    }
    for (size_t i = 0; i < answer.has_path.size(); ++i) has_path[i] = has_path[i] || answer.has_path[i];
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (has_path[i]) continue;
    model::Ledger unused;
    Result<std::vector<TraceFile>> missing = FindTraceFiles({paths[i]}, options.limits, &unused);
    if (!missing) return std::move(missing).error();
  }
  for (model::LedgerEntry& entry : seen_entries) run.ledger.Add(std::move(entry));
  const std::vector<SeenFile> seen = UniteFiles(own.files, differing, differs);
  if (seen.empty()) return NoTraceFound(paths, run.ledger);
  // Operations are few beside events: where the root sees them all, it reads them itself.
  if (std::none_of(differs.begin(), differs.end(), [](bool is_other) { return is_other; })) {
    ASSIGN_OR_RETURN(const bool has_operations, IngestOperations(own.files, options, &run));
    if (has_operations) return run;
  }
  const auto readers = ChooseReaders(seen, team_.process_count());

  // Each is read once.
  ReadRequest read;
  read.files_by_process.resize(team_.process_count());
  std::vector<std::pair<uint32_t, uint32_t>> read_as;  // By file: the process, and which of its files.
  for (const auto& [process, index] : readers) {
    read_as.emplace_back(process, static_cast<uint32_t>(read.files_by_process[process].size()));
    read.files_by_process[process].push_back(index);
  }
  read.limits = options.limits;
  read.window_bytes = options.reader.window_bytes;
  read.max_event_bytes = options.reader.max_event_bytes;
  read.learned_templates = options.reader.learned_templates;
  read.thread_count = options.thread_count;
  share_->on_progress = options.on_progress;
  share_->cancelled = options.cancelled;
  std::vector<ReadAnswer> answers = team_.Ask<ReadAnswer>(kReadQuestion, read);
  share_->on_progress = {};
  share_->cancelled = nullptr;
  if (std::any_of(answers.begin(), answers.end(), [](const ReadAnswer& answer) { return answer.cancelled; }))
    return Error{.code = ErrorCode::kCancelled, .message = "reading was cancelled"};

  // Names get the ids that reading the files one after the other would have given them.
  std::vector<TraceFile> files;
  std::vector<FileOutcome> outcomes;
  std::vector<uint32_t> merged_names(answers.size(), 0);
  for (size_t i = 0; i < seen.size(); ++i) {
    files.push_back(seen[i].file);
    ReadAnswer& answer = answers[read_as[i].first];
    OutcomeHead& head = answer.outcomes.at(read_as[i].second);
    for (uint32_t& id = merged_names[read_as[i].first]; id < head.name_count; ++id) {
      run.names.Intern(answer.names.at(id));
    }
    FileOutcome& outcome = outcomes.emplace_back();
    outcome.error = std::move(head.error);
    outcome.source_failed = head.source_failed;
    for (ContentHead& content : head.contents) {
      TraceContent& own_content = outcome.contents.emplace_back();
      own_content.trace = std::move(content.trace);
      own_content.has_rank = content.has_rank;
      own_content.merged_rank_count = content.merged_rank_count;
      own_content.recording = content.recording;
      own_content.is_span_trace = content.is_span_trace;
      own_content.is_nccl_ring = content.is_nccl_ring;
      own_content.communicators = std::move(content.communicators);
      own_content.several_processes = content.several_processes;
      for (model::LedgerEntry& entry : content.ledger) own_content.ledger.Add(std::move(entry));
    }
  }
  EventsElsewhere elsewhere;
  elsewhere.join = [&](const std::vector<TraceJoin>& joins) { return share_->joins.Run(joins, read_as); };
  RETURN_IF_ERROR(AssembleRun(files, std::move(outcomes), &run, &elsewhere));
  const std::vector<TracePlace>& places = elsewhere.places;

  PlaceRequest place;
  place.run = next_run_++;
  for (uint32_t id = 0; id < run.names.size(); ++id) place.names.emplace_back(run.names[NameId{id}]);
  for (size_t i = 0; i < run.ranks.size(); ++i) {
    const model::RankTrace& trace = run.ranks[i];
    const auto [process, file] = read_as[places[i].file];
    place.traces.push_back({process, file, static_cast<uint32_t>(places[i].content), trace.rank, trace.rank_source,
                            trace.window, trace.world_size, trace.host,
                            places[i].is_nccl_ring ? trace.groups : std::vector<model::ProcessGroup>()});
  }
  run.holders = model::MakeTeamHolders(&team_, place.run);
  team_.Ask<bool>(kPlaceQuestion, place);
  ReadStagesBeside(own.files, &run);
  return run;
}

}  // namespace lockstep::ingest
