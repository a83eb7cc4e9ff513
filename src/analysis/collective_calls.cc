#include "analysis/collective_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/believable_time.h"
#include "analysis/kernel_kind.h"
#include "analysis/rank_map.h"
#include "analysis/rank_passes.h"
#include "base/median.h"
#include "model/step.h"

namespace lockstep::analysis {
namespace {

using model::CollectiveRecord;
using Source = CollectiveRecord::Source;

using Issue = CollectiveIssue;

/// CPU records of one thread, by start, for finding those around an instant.
class ThreadRecords {
 public:
  ThreadRecords(const model::RankTrace& trace, const model::NameTable& names)
      : records_(trace.collectives), names_(names) {
    for (size_t i = 0; i < records_.size(); ++i) {
      // Ranges of CPU backends do not nest, and c10d operators list all their arguments as input.
      const std::string_view name = names[records_[i].event_name];
      const bool is_range = records_[i].source == Source::kAnnotation && !IsIssue(name) && !IsCpuCollectiveName(name);
      const bool is_sized_issue = IsIssue(name) && records_[i].out_elements.has_value();
      if (is_range || is_sized_issue || records_[i].source == Source::kParamComms) {
        by_thread_[{records_[i].process_id, records_[i].thread_id}].push_back(i);
      }
    }
  }

  static bool IsIssue(std::string_view name) { return name.substr(0, 6) == "c10d::"; }

  /// The innermost record of a kind around an instant of a thread, or nullptr.
  const CollectiveRecord* Around(const Issue& issue, Source source) const {
    return Around(issue, [&](const CollectiveRecord& record) {
      return record.source == source && !IsIssue(names_[record.event_name]);
    });
  }
  /// The c10d call around it that says what it writes (all_to_all), or nullptr.
  const CollectiveRecord* IssueAround(const Issue& issue) const {
    return Around(issue, [&](const CollectiveRecord& record) { return IsIssue(names_[record.event_name]); });
  }

 private:
  /// Ranges of one thread nest, and few lie between an instant and the range around it, so a bounded walk backwards is
  /// enough.
  template <typename Wanted>
  const CollectiveRecord* Around(const Issue& issue, const Wanted& wanted) const {
    static constexpr int kMaxSteps = 64;
    const auto thread = by_thread_.find({issue.process_id, issue.thread_id});
    if (thread == by_thread_.end()) return nullptr;
    const std::vector<size_t>& list = thread->second;
    auto at = std::upper_bound(list.begin(), list.end(), issue.trace_ns,
                               [&](int64_t time_ns, size_t i) { return time_ns < records_[i].start_ns; });
    for (int steps = 0; at != list.begin() && steps < kMaxSteps; ++steps) {
      const CollectiveRecord& record = records_[*--at];
      if (issue.trace_ns - record.start_ns < std::max<int64_t>(record.duration_ns, 1) && wanted(record)) return &record;
    }
    return nullptr;
  }

  const std::vector<CollectiveRecord>& records_;
  const model::NameTable& names_;
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> by_thread_;
};

template <typename T>
void FillAbsent(const std::optional<T>& from, std::optional<T>* to) {
  if (!to->has_value()) *to = from;
}
void FillAbsent(NameId from, NameId* to) {
  if (to->value == 0) *to = from;
}

/// Takes from `record` what the call does not know yet.
void Fill(const CollectiveRecord& record, const model::NameTable& names, CollectiveCall* call) {
  if (call->kind == CollectiveKind::kOther || call->kind == CollectiveKind::kSendReceive) {
    CollectiveKind kind = ClassifyCollective(names[record.collective_name]);
    if (kind == CollectiveKind::kOther) kind = ClassifyCollective(names[record.event_name]);
    if (kind != CollectiveKind::kOther) call->kind = kind;
  }
  // Sizes and their type come from one record: input dims of an annotation may be of another tensor than its peer's.
  if (!call->in_elements && !call->out_elements) {
    call->in_elements = record.in_elements;
    call->out_elements = record.out_elements;
    if (record.dtype.value != 0) call->dtype = record.dtype;
  }
  FillAbsent(record.dtype, &call->dtype);
  FillAbsent(record.group_name, &call->group_name);
  FillAbsent(record.group_description, &call->group_description);
  FillAbsent(record.group_ranks, &call->group_ranks);
  FillAbsent(record.group_size, &call->group_size);
  FillAbsent(record.sequence, &call->sequence);
  FillAbsent(record.communicator_id, &call->communicator_id);
  if (call->kind == CollectiveKind::kSend) FillAbsent(record.destination_rank, &call->peer);
  if (call->kind == CollectiveKind::kReceive) FillAbsent(record.source_rank, &call->peer);
}

/// Kernels' own metadata. Records are sorted by start and so are the kernels of a stream, so one walk joins them.
class KernelRecords {
 public:
  explicit KernelRecords(const std::vector<CollectiveRecord>& records) {
    for (const CollectiveRecord& record : records) {
      if (record.source == Source::kKernel) records_.push_back(&record);
    }
  }

  /// Calls of one stream must come in order of start; Rewind() begins another.
  void Rewind() { at_ = 0; }
  const CollectiveRecord* Of(int64_t start_ns, int64_t stream) {
    while (at_ < records_.size() && records_[at_]->start_ns < start_ns) ++at_;
    for (size_t i = at_; i < records_.size() && records_[i]->start_ns == start_ns; ++i) {
      if (records_[i]->thread_id == stream) return records_[i];
    }
    return nullptr;
  }

 private:
  std::vector<const CollectiveRecord*> records_;
  size_t at_ = 0;
};

/// Issue of every correlation in `wanted`, from the runtime lanes.
std::unordered_map<uint32_t, Issue> FindIssues(const model::RankTrace& trace,
                                               std::unordered_map<uint32_t, Issue> wanted) {
  std::unordered_map<uint32_t, Issue> found;
  if (wanted.empty()) return found;
  found.reserve(wanted.size());
  for (const model::Track& track : trace.tracks) {
    if (track.lane != model::Lane::kRuntime) continue;
    for (size_t i = 0; i < track.events.correlation.size(); ++i) {
      const uint32_t correlation = track.events.correlation[i];
      if (correlation == 0 || wanted.find(correlation) == wanted.end()) continue;
      found.emplace(correlation, Issue{track.events.start_ns[i], track.process_id, track.thread_id});
    }
  }
  return found;
}

class CallFinder {
 public:
  CallFinder(const RunContext& shared, size_t rank_index)
      : shared_(shared),
        trace_(shared.run->ranks[rank_index]),
        names_(shared.run->names),
        records_(trace_, names_),
        steps_(model::FindSteps(trace_, names_, shared.options.step_name)) {}

  std::vector<CollectiveCall> Find() {
    FindOnDevice();
    NameWhatWasCutOff();
    FindOnCpu();
    DropAbsurdTimes();
    const auto in_order = [](const CollectiveCall& a, const CollectiveCall& b) {
      return std::pair(a.order_ns, a.stream) < std::pair(b.order_ns, b.stream);
    };
    if (!std::is_sorted(calls_.begin(), calls_.end(), in_order))
      std::stable_sort(calls_.begin(), calls_.end(), in_order);
    return std::move(calls_);
  }

 private:
  void DropAbsurdTimes() {
    if (calls_.empty()) return;
    std::vector<int64_t> starts;
    for (const CollectiveCall& call : calls_) starts.push_back(call.start_ns);
    std::erase_if(calls_, [median = UpperMedian(&starts)](const CollectiveCall& call) {
      const bool is_near = call.start_ns < median ? call.start_ns + kMaxBelievableNs >= median
                                                  : median + kMaxBelievableNs >= call.start_ns;
      return !is_near || call.duration_ns < 0 || call.duration_ns > kMaxBelievableNs;
    });
  }

  void FindOnDevice() {
    std::unordered_map<uint32_t, Issue> wanted;
    ForEachKernel([&](const model::Track& track, size_t i) {
      if (track.events.correlation[i] != 0) wanted.emplace(track.events.correlation[i], Issue{});
    });
    const std::unordered_map<uint32_t, Issue> issues = FindIssues(trace_, std::move(wanted));
    KernelRecords metadata(trace_.collectives);
    const model::Track* current = nullptr;
    ForEachKernel([&](const model::Track& track, size_t i) {
      CollectiveCall call;
      call.on_device = true;
      call.start_ns = call.order_ns = track.events.start_ns[i];
      call.duration_ns = track.events.duration_ns[i];
      call.stream = track.stream();
      if (&track != std::exchange(current, &track)) metadata.Rewind();
      if (const CollectiveRecord* own = metadata.Of(call.start_ns, track.thread_id)) Fill(*own, names_, &call);
      if (const auto issue = issues.find(track.events.correlation[i]); issue != issues.end()) {
        FillFromIssue(issue->second, &call);
      }
      if (call.kind == CollectiveKind::kOther) call.kind = ClassifyCollective(names_[track.events.name[i]]);
      calls_.push_back(call);
    });
  }

  static bool IsBare(const CollectiveCall& call) {
    return !call.issue && call.group_name.value == 0 && !call.communicator_id && !call.sequence;
  }
  /// What a kernel that sends and receives may be.
  static bool MaySendAndReceive(CollectiveKind kind) {
    return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter ||
           kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  }

  /// Of a kernel whose launch lies before the recording only the kernel's name is known. A communicator has a stream of
  /// its own: the kernel is of the group that all others of its stream are of, and if it sends and receives it is what
  /// all of them are that do. Not where calls are numbered: one without a number would spoil the join by numbers.
  void NameWhatWasCutOff() {
    if (std::none_of(calls_.begin(), calls_.end(), IsBare)) return;
    struct Stream {
      const CollectiveCall* of_group = nullptr;  // Any of them.
      bool groups_agree = true;
      std::set<CollectiveKind> kinds;  // Of those that send and receive.
    };
    std::map<StreamId, Stream> streams;
    for (const CollectiveCall& call : calls_) {
      if (!call.issue) continue;
      Stream& stream = streams[call.stream];
      if (MaySendAndReceive(call.kind)) stream.kinds.insert(call.kind);
      const CollectiveCall* other = std::exchange(stream.of_group, &call);
      stream.groups_agree =
          stream.groups_agree && !call.sequence &&
          (other == nullptr || (call.group_name == other->group_name && call.group_ranks == other->group_ranks &&
                                call.communicator_id == other->communicator_id));
    }
    for (CollectiveCall& call : calls_) {
      const auto found = streams.find(call.stream);
      if (!IsBare(call) || found == streams.end()) continue;
      const Stream& stream = found->second;
      if (stream.groups_agree) {
        call.group_name = stream.of_group->group_name;
        call.group_description = stream.of_group->group_description;
        call.group_ranks = stream.of_group->group_ranks;
        call.group_size = stream.of_group->group_size;
        call.communicator_id = stream.of_group->communicator_id;
      }
      if (call.kind != CollectiveKind::kSendReceive || stream.kinds.size() != 1) continue;
      // Of a message it is not known which side this is.
      const CollectiveKind kind = *stream.kinds.begin();
      if (kind != CollectiveKind::kSend && kind != CollectiveKind::kReceive) call.kind = kind;
    }
  }

  /// Ranges of CPU backends run on the backend's threads, which take up what c10d calls on other threads issued.
  void FindOnCpu() {
    std::map<CollectiveKind, std::vector<const CollectiveRecord*>> unclaimed;
    for (const CollectiveRecord& record : trace_.collectives) {
      if (record.source != Source::kAnnotation || !ThreadRecords::IsIssue(names_[record.event_name])) continue;
      unclaimed[ClassifyCollective(names_[record.event_name])].push_back(&record);
    }
    std::map<CollectiveKind, size_t> next;
    for (const CollectiveRecord& record : trace_.collectives) {
      if (record.source != Source::kAnnotation || !IsCpuCollectiveName(names_[record.event_name])) continue;
      CollectiveCall call;
      call.start_ns = call.order_ns = record.start_ns;
      call.duration_ns = record.duration_ns;
      Fill(record, names_, &call);
      if (const CollectiveRecord* issue = ClaimIssue(record, &unclaimed[call.kind], &next[call.kind])) {
        call.order_ns = issue->start_ns;
        FillFromIssue({issue->start_ns, issue->process_id, issue->thread_id}, &call);
      } else {
        FillFromIssue({record.start_ns, record.process_id, record.thread_id}, &call);
      }
      calls_.push_back(call);
    }
  }

  /// The c10d call of a range: the first that no range has claimed; of the next few, one of the same size goes first,
  /// since a backend's threads may start two calls in the other order. A range whose call came before the window has
  /// none.
  static const CollectiveRecord* ClaimIssue(const CollectiveRecord& range, std::vector<const CollectiveRecord*>* issues,
                                            size_t* next) {
    static constexpr size_t kLookAhead = 8;
    while (*next < issues->size() && (*issues)[*next] == nullptr) ++*next;
    size_t chosen = issues->size();
    for (size_t i = *next; i < issues->size() && i < *next + kLookAhead; ++i) {
      const CollectiveRecord* issue = (*issues)[i];
      if (issue == nullptr) continue;
      if (issue->start_ns > range.start_ns) break;
      if (chosen == issues->size()) chosen = i;
      if (range.in_elements && issue->in_elements == range.in_elements) {
        chosen = i;
        break;
      }
    }
    if (chosen == issues->size()) return nullptr;
    return std::exchange((*issues)[chosen], nullptr);
  }

  void FillFromIssue(const Issue& issue, CollectiveCall* call) const {
    call->issue = issue;
    if (const CollectiveRecord* record = records_.Around(issue, Source::kParamComms)) Fill(*record, names_, call);
    if (const CollectiveRecord* record = records_.Around(issue, Source::kAnnotation)) Fill(*record, names_, call);
    if (call->kind == CollectiveKind::kAllToAll && !call->out_elements) {
      const CollectiveRecord* record = records_.IssueAround(issue);
      if (record != nullptr && record->in_elements == call->in_elements) call->out_elements = record->out_elements;
    }
    const auto after =
        std::upper_bound(steps_.begin(), steps_.end(), issue.trace_ns,
                         [](int64_t time_ns, const model::Step& step) { return time_ns < step.start_ns; });
    if (after != steps_.begin() && issue.trace_ns < (after - 1)->end_ns) call->step = (after - 1)->number;
  }

  template <typename Visit>
  void ForEachKernel(const Visit& visit) const {
    const std::vector<bool>& is_communication = shared_.is_communication;
    for (const model::Track& track : trace_.tracks) {
      if (track.lane != model::Lane::kDevice) continue;
      for (size_t i = 0; i < track.events.size(); ++i) {
        const uint32_t name = track.events.name[i].value;
        if (name >= is_communication.size() || !is_communication[name]) continue;
        if (track.events.category[i] == model::Category::kKernel) visit(track, i);
      }
    }
  }

  const RunContext& shared_;
  const model::RankTrace& trace_;
  const model::NameTable& names_;
  ThreadRecords records_;
  std::vector<model::Step> steps_;
  std::vector<CollectiveCall> calls_;
};

struct CollectiveCallsPass {
  static constexpr std::string_view kName = "collective_calls";
  using Args = bool;  // Nothing to say.
  using Partial = std::vector<CollectiveCall>;
  static Partial Map(const RunContext& shared, size_t rank_index, const Args& /*args*/) {
    return FindCollectiveCalls(shared, rank_index);
  }
};

}  // namespace

void AddCollectiveCallPasses(RankPasses* passes) { passes->Add<CollectiveCallsPass>(); }

std::vector<CollectiveCall> FindCollectiveCalls(const RunContext& shared, size_t rank_index) {
  return CallFinder(shared, rank_index).Find();
}

std::vector<std::vector<CollectiveCall>> FindCollectiveCalls(const RunContext& shared,
                                                             const std::vector<size_t>& rank_indices) {
  return MapRanks<CollectiveCallsPass>(shared, false, rank_indices);
}

}  // namespace lockstep::analysis
