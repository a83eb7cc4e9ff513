#include "ingest/nccl_trace/nccl_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ingest/nccl_trace/ring_quality.h"
#include "ingest/torch_trace/track_writer.h"

namespace lockstep::ingest {
namespace {

using model::Category;
using model::CollectiveRecord;
using model::Lane;

/// Beyond any thread's number: the plugin does not say which thread called, and tracks of annotations have none.
constexpr int64_t kCallThread = 1'000'000'000;

std::optional<int64_t> Times(uint64_t elements, std::optional<int32_t> members) {
  int64_t product = 0;
  if (!members || elements > INT64_MAX || __builtin_mul_overflow(static_cast<int64_t>(elements), *members, &product)) {
    return std::nullopt;
  }
  return product;
}

/// "In msg nelems" and "Out msg nelems" as Kineto has them: NCCL counts what a rank gives, or gets, of each member.
void SetElements(const NcclRingOperation& operation, const NcclRingCommunicator& communicator,
                 CollectiveRecord* record) {
  const std::optional<int64_t> own = Times(operation.element_count, 1);
  const std::optional<int64_t> all = Times(operation.element_count, communicator.rank_count);
  const std::string& function = operation.function;
  const bool gathers = function == "AllGather" || function == "Gather";
  const bool scatters = function == "ReduceScatter" || function == "Scatter";
  const bool exchanges = function == "AlltoAll";
  record->in_elements = scatters || exchanges ? all : own;
  record->out_elements = gathers || exchanges ? all : own;
}

/// Operations to columns.
class Builder {
 public:
  Builder(const NcclRing& ring, const std::string& source)
      : ring_(ring), source_(source), calls_(Lane::kRuntime, ring.pid, kCallThread) {
    model::RankTrace& trace = content_.trace;
    content_.is_nccl_ring = true;
    content_.has_rank = ring.rank.has_value();
    trace.rank = {ring.rank.value_or(0)};
    trace.world_size = ring.world_size;
    trace.host = ring.host;
    trace.backend = "nccl";
    trace.base_time_known = true;
  }

  TraceContent Build() {
    for (const NcclRingCommunicator& communicator : ring_.communicators) AddCommunicator(communicator);
    for (const NcclRingOperation& operation : ring_.operations) AddOperation(operation);
    FinishTracks();
    FinishWaits();
    model::RankTrace& trace = content_.trace;
    trace.event_count = trace.complete_event_count;
    std::stable_sort(trace.collectives.begin(), trace.collectives.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    ReportRingQuality(ring_, source_, &content_.ledger);
    return std::move(content_);
  }

 private:
  struct Communicator {
    NameId label;
    NameId description;
    std::array<std::unique_ptr<TrackWriter>, 2> writers;  ///< Collectives, point-to-point.
  };

  void AddCommunicator(const NcclRingCommunicator& raw) {
    Communicator& communicator = communicators_.emplace_back();
    model::ProcessGroup& group = content_.trace.groups.emplace_back();
    group.name = CommunicatorLabel(raw);
    group.description = raw.name;
    group.backend = "nccl";
    group.size = raw.rank_count;
    communicator.label = content_.names.Intern(group.name);
    communicator.description = content_.names.Intern(raw.name);
    content_.communicators.push_back({raw.id, raw.rank});
  }

  void AddOperation(const NcclRingOperation& operation) {
    Communicator& communicator = communicators_[operation.communicator];
    const auto correlation = static_cast<uint32_t>(operation.number);
    const int64_t enqueued_ns =
        std::max(operation.enqueued_unix_ns.value_or(operation.begin_unix_ns), operation.begin_unix_ns);
    const std::string name = "nccl:" + TorchOperation(operation.function);
    calls_.Add(operation.begin_unix_ns, enqueued_ns - operation.begin_unix_ns, content_.names.Intern(name),
               Category::kRuntime, correlation);
    Extend(operation.begin_unix_ns, enqueued_ns);
    AddWaits(operation);
    if (!operation.done_unix_ns) return;  // No end is made up.

    // The host hears of a kernel's begin and end some time after both. What the device says of the time between is
    // right, and its begin is not after the one heard of, nor its end after the other.
    const int64_t heard_ns = operation.running_unix_ns.value_or(enqueued_ns);
    const int64_t done_ns = std::max(*operation.done_unix_ns, heard_ns);
    const int64_t duration_ns = operation.device_ns.value_or(done_ns - heard_ns);
    const int64_t start_ns = std::min(heard_ns, done_ns - duration_ns);
    const int64_t stream = 2 * static_cast<int64_t>(operation.communicator) + (operation.is_p2p ? 2 : 1);
    auto& writer = communicator.writers[operation.is_p2p ? 1 : 0];
    if (writer == nullptr) {
      writer = std::make_unique<TrackWriter>(Lane::kDevice, ring_.local_rank.value_or(0), stream);
    }
    std::string kernel = name;
    for (const std::string& part : {operation.algorithm, operation.protocol}) {
      if (!part.empty()) kernel += " " + part;
    }
    if (operation.channel_count > 0) {
      kernel += fmt::format(" {} channel{}", operation.channel_count, operation.channel_count == 1 ? "" : "s");
    }
    CollectiveRecord& record = content_.trace.collectives.emplace_back();
    record.event_name = content_.names.Intern(kernel);
    writer->Add(start_ns, duration_ns, record.event_name, Category::kKernel, correlation);
    Extend(start_ns, start_ns + duration_ns);
    record.source = CollectiveRecord::Source::kKernel;
    record.start_ns = start_ns;
    record.duration_ns = duration_ns;
    record.process_id = writer->process_id();
    record.thread_id = stream;
    record.correlation = correlation;
    record.collective_name = content_.names.Intern(TorchOperation(operation.function));
    record.dtype = content_.names.Intern(TorchType(operation.datatype));
    record.group_name = communicator.label;
    record.group_description = communicator.description;
    const NcclRingCommunicator& raw = ring_.communicators[operation.communicator];
    record.group_size = raw.rank_count;
    record.communicator_id = raw.id;
    SetElements(operation, raw, &record);
    if (!operation.is_p2p) {
      // Each rank counts its own point-to-point calls, so that those numbers join nothing.
      record.sequence = static_cast<int64_t>(operation.order & INT64_MAX);
    } else {
      const bool sends = operation.function == "Send";
      (sends ? record.destination_rank : record.source_rank) = operation.root;
    }
  }

  void AddWaits(const NcclRingOperation& operation) {
    if (!operation.done_unix_ns) return;
    const std::array<int64_t, 3> waits = {operation.device_wait_ns, operation.peer_wait_ns, operation.network_wait_ns};
    if (std::all_of(waits.begin(), waits.end(), [](int64_t wait_ns) { return wait_ns == 0; })) return;
    waits_.emplace_back(*operation.done_unix_ns, waits);
  }

  void Extend(int64_t start_ns, int64_t end_ns) {
    model::RankTrace& trace = content_.trace;
    trace.first_ns = std::min(trace.first_ns.value_or(INT64_MAX), start_ns);
    trace.last_ns = std::max(trace.last_ns.value_or(INT64_MIN), end_ns);
  }

  void FinishTracks() {
    model::RankTrace& trace = content_.trace;
    const auto finish = [&](TrackWriter* writer, NameId name) {
      if (writer == nullptr || writer->size() == 0) return;
      model::Track track = writer->Finish(0);
      track.thread_name = name;
      trace.complete_event_count += track.events.size();
      trace.tracks.push_back(std::move(track));
    };
    finish(&calls_, content_.names.Intern("calls of NCCL"));
    for (size_t i = 0; i < communicators_.size(); ++i) {
      const model::ProcessGroup& group = trace.groups[i];
      const std::string label =
          group.description.empty() ? group.name : fmt::format("{} ({})", group.name, group.description);
      finish(communicators_[i].writers[0].get(), content_.names.Intern(label));
      finish(communicators_[i].writers[1].get(), content_.names.Intern(label + ", point-to-point"));
    }
  }

  void FinishWaits() {
    if (waits_.empty()) return;
    std::stable_sort(waits_.begin(), waits_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    constexpr std::array<const char*, 3> kNames = {"NCCL proxy waits for own device", "NCCL proxy waits for peer",
                                                   "NCCL proxy waits for network"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      model::CounterSeries& series = content_.trace.counters.emplace_back();
      series.name = kNames[i];
      series.unit = "ns";
      for (const auto& [time_ns, waits] : waits_) {
        series.time_ns.push_back(time_ns);
        series.value.push_back(static_cast<double>(waits[i]));
      }
    }
  }

  const NcclRing& ring_;
  const std::string& source_;
  TraceContent content_;
  TrackWriter calls_;
  std::vector<Communicator> communicators_;
  std::vector<std::pair<int64_t, std::array<int64_t, 3>>> waits_;  ///< When an operation was done: its steps' waits.
};

/// The whole file: its tables are read by place. One of the most operations that the plugin keeps has 1 GiB.
Result<std::string> ReadAll(ByteSource& source) {
  constexpr size_t kMostBytes = (size_t{1} << 30) + (size_t{1} << 20);
  std::string bytes;
  for (size_t got = 1; got > 0;) {
    const size_t before = bytes.size();
    if (before > kMostBytes) {
      return Error{.code = ErrorCode::kLimitExceeded, .message = "is larger than the NCCL plugin's record can be"};
    }
    bytes.resize(before + std::max(before, size_t{1} << 20));
    ASSIGN_OR_RETURN(got, source.Read(std::span(bytes).subspan(before)));
    bytes.resize(before + got);
  }
  return bytes;
}

}  // namespace

Result<TraceContent> ReadNcclTrace(ByteSource& source, const std::string& display_name,
                                   const TraceReaderOptions& options) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadAll(source));
  ASSIGN_OR_RETURN(const NcclRing ring, ReadNcclRing(bytes));
  TraceContent content = ToTraceContent(ring, display_name);
  content.trace.json_bytes = bytes.size();
  if (options.on_events) options.on_events(content.trace.event_count);
  return content;
}

TraceContent ToTraceContent(const NcclRing& ring, const std::string& display_name) {
  return Builder(ring, display_name).Build();
}

void TurnIntoAnnotations(model::RankTrace* ring) {
  int64_t process_id = 0;
  for (const model::Track& track : ring->tracks) {
    if (track.lane == Lane::kRuntime) process_id = track.process_id;
  }
  // The calls are in the profiler's trace, too, and its correlations are not the ring's.
  std::erase_if(ring->tracks, [](const model::Track& track) { return track.lane != Lane::kDevice; });
  for (model::Track& track : ring->tracks) {
    track.lane = Lane::kOther;
    track.process_id = process_id;
    track.thread_id += kCallThread;
    track.events.correlation = {};
    for (Category& category : track.events.category) category = Category::kOther;
  }
  ring->collectives.clear();
}

}  // namespace lockstep::ingest
