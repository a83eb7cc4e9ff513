#include "present/query/event_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analysis/kernel_kind.h"
#include "present/query/event_columns.h"

namespace lockstep::query {
namespace {

using model::EventColumns;

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// [low, high], what comparisons with a column leave of its values.
struct Range {
  int64_t low = kLowest;
  int64_t high = kHighest;
  bool open() const { return low == kLowest && high == kHighest; }
  bool empty() const { return low > high; }
  bool Holds(int64_t value) const { return low <= value && value <= high; }

  void Narrow(const BoundConstraint& bound) {
    if (bound.is_null()) {
      *this = {kHighest, kLowest};
      return;
    }
    const unsigned char op = bound.constraint.op;
    // The whole numbers around the value: a row too many does no harm.
    if (op != SQLITE_INDEX_CONSTRAINT_LT && op != SQLITE_INDEX_CONSTRAINT_LE) {
      if (const auto value = bound.floor()) low = std::max(low, *value);
    }
    if (op != SQLITE_INDEX_CONSTRAINT_GT && op != SQLITE_INDEX_CONSTRAINT_GE) {
      if (const auto value = bound.ceil()) high = std::min(high, *value);
    }
  }
};

// What the constraints of one scan ask of a row.
struct Wanted {
  Range id, rank, window, track, device, stream, process_id, thread_id;
  Range start_ns, trace_start_ns, end_ns, duration_ns, correlation;
  std::optional<NameId> name;
  std::optional<model::Category> category;
  std::optional<model::Lane> lane;
  bool nothing = false;  // no row can meet them
  bool row_by_row = false;

  void Add(EventColumn column, const BoundConstraint& bound, const Source& source);
  bool TrackMayHold(const TrackPlace& place, uint32_t track_id, const Source& source) const;
};

template <typename Enum, size_t kCount>
std::optional<Enum> Named(std::string_view text, const char* (*name_of)(Enum)) {
  for (size_t i = 0; i < kCount; ++i) {
    if (text == name_of(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

void Wanted::Add(EventColumn column, const BoundConstraint& bound, const Source& source) {
  if (bound.is_null()) nothing = true;
  const std::optional<std::string_view> text = bound.text();
  switch (column) {
    case EventColumn::kId: id.Narrow(bound); break;
    case EventColumn::kRank: rank.Narrow(bound); break;
    case EventColumn::kWindow: window.Narrow(bound); break;
    case EventColumn::kTrack: track.Narrow(bound); break;
    case EventColumn::kDevice: device.Narrow(bound); break;
    case EventColumn::kStream: stream.Narrow(bound); break;
    case EventColumn::kProcessId: process_id.Narrow(bound); break;
    case EventColumn::kThreadId: thread_id.Narrow(bound); break;
    case EventColumn::kStartNs: start_ns.Narrow(bound); break;
    case EventColumn::kTraceStartNs: trace_start_ns.Narrow(bound); break;
    case EventColumn::kEndNs: end_ns.Narrow(bound); break;
    case EventColumn::kDurationNs: duration_ns.Narrow(bound); break;
    case EventColumn::kCorrelation: correlation.Narrow(bound); break;
    case EventColumn::kName:
      if (text) {
        NameId found;
        if (!source.run().names.Find(*text, &found) || (name && *name != found)) nothing = true;
        name = found;
      }
      break;
    case EventColumn::kCategory:
      if (text) {
        category = Named<model::Category, model::kCategoryCount>(*text, model::CategoryName);
        if (!category) nothing = true;
      }
      break;
    case EventColumn::kLane:
      if (text) {
        lane = Named<model::Lane, kLaneCount>(*text, model::LaneName);
        if (!lane) nothing = true;
      }
      break;
    default: break;
  }
  row_by_row = name || category || !end_ns.open() || !duration_ns.open() || !correlation.open();
}

bool Wanted::TrackMayHold(const TrackPlace& place, uint32_t track_id, const Source& source) const {
  const model::RankTrace& trace = source.rank(place.rank_index);
  const model::Track& one = *place.track;
  if (!track.Holds(track_id) || !rank.Holds(trace.rank.value) || !window.Holds(trace.window)) return false;
  if (lane && one.lane != *lane) return false;
  if (!process_id.Holds(one.process_id) || !thread_id.Holds(one.thread_id)) return false;
  if (!device.open() || !stream.open()) {
    if (!IsDeviceLane(one.lane) || !device.Holds(one.device().value) || !stream.Holds(one.stream().value)) return false;
  }
  if (!correlation.open() && one.events.correlation.empty()) return false;
  const auto first = static_cast<int64_t>(place.first_event);
  return id.open() || (id.high >= first && id.low < first + static_cast<int64_t>(one.events.size()));
}

class EventScan : public Cursor {
 public:
  EventScan(const Source& source, std::span<const EventColumn> columns, bool device_only)
      : source_(source), columns_(columns), device_only_(device_only) {}

  void Filter(std::span<const BoundConstraint> constraints) override {
    wanted_ = Wanted();
    for (const BoundConstraint& bound : constraints)
      wanted_.Add(columns_[static_cast<size_t>(bound.constraint.column)], bound, source_);
    track_id_ = 0;
    last_track_ = wanted_.nothing ? 0 : static_cast<uint32_t>(source_.tracks().size());
    if (wanted_.track.low > 0) track_id_ = static_cast<uint32_t>(std::min<int64_t>(wanted_.track.low, last_track_));
    row_ = end_ = 0;
    BeginTrack();
  }

  bool done() const override { return track_id_ >= last_track_; }

  void Next() override {
    ++row_;
    if (wanted_.row_by_row) SkipUnwanted();
    if (row_ >= end_) NextTrack();
  }

  void Column(int column, CellOut& out) const override {
    WriteEventCell({source_, *place_, track_id_, row_}, columns_[static_cast<size_t>(column)], out);
  }

  int64_t row_id() const override { return static_cast<int64_t>(place_->first_event + row_); }

 private:
  void NextTrack() {
    ++track_id_;
    BeginTrack();
  }

  // From track_id_ on, the first track with a row that is wanted; done() when there is none.
  void BeginTrack() {
    for (; track_id_ < last_track_; ++track_id_) {
      if (source_.stop().is_set() || track_id_ > wanted_.track.high) {
        track_id_ = last_track_;
        return;
      }
      place_ = &source_.tracks()[track_id_];
      if (device_only_ && place_->track->lane != model::Lane::kDevice) continue;
      if (!wanted_.TrackMayHold(*place_, track_id_, source_)) continue;
      events_ = &place_->track->events;
      clock_ = &source_.rank(place_->rank_index).clock;
      ChooseRows();
      if (row_ < end_) SkipUnwanted();
      if (row_ < end_) return;
    }
  }

  void ChooseRows() {
    const int64_t* starts = events_->start_ns.data();
    row_ = 0;
    end_ = events_->size();
    // The clock map keeps the order of instants as long as the drift is not absurd.
    if (!wanted_.start_ns.open() && std::fabs(clock_->drift_ppm) < 1e5) {
      const auto below = [this](int64_t bound_ns) {
        return [this, bound_ns](int64_t trace_ns) { return clock_->ToRun(trace_ns) < bound_ns; };
      };
      if (wanted_.start_ns.low != kLowest)
        row_ = static_cast<size_t>(std::partition_point(starts, starts + end_, below(wanted_.start_ns.low)) - starts);
      if (wanted_.start_ns.high != kHighest)
        end_ =
            static_cast<size_t>(std::partition_point(starts, starts + end_, below(wanted_.start_ns.high + 1)) - starts);
    }
    if (!wanted_.trace_start_ns.open()) {
      const auto first = std::lower_bound(starts, starts + events_->size(), wanted_.trace_start_ns.low);
      const auto last = std::upper_bound(starts, starts + events_->size(), wanted_.trace_start_ns.high);
      row_ = std::max(row_, static_cast<size_t>(first - starts));
      end_ = std::min(end_, static_cast<size_t>(last - starts));
    }
    if (!wanted_.id.open()) {
      const auto first_id = static_cast<int64_t>(place_->first_event);
      if (wanted_.id.low > first_id) row_ = std::max(row_, static_cast<size_t>(wanted_.id.low - first_id));
      if (wanted_.id.high < first_id + static_cast<int64_t>(end_))
        end_ = std::min(end_, static_cast<size_t>(wanted_.id.high - first_id + 1));
    }
    if (wanted_.end_ns.low != kLowest) block_ends_ = source_.BlockEndsOf(track_id_);
  }

  // Only when row_by_row: from row_ on, the first row that meets what is asked of rows; end_ when there is none.
  void SkipUnwanted() {
    if (!wanted_.row_by_row) return;
    for (; row_ < end_; ++row_) {
      if (row_ % Source::kBlockSize == 0) {
        if (source_.stop().Check()) {
          row_ = end_;
          return;
        }
        SkipBlocks();
        if (row_ >= end_) return;
      }
      if (IsWanted()) return;
    }
  }

  // Blocks whose events all end too early.
  void SkipBlocks() {
    if (wanted_.end_ns.low == kLowest) return;
    while (row_ < end_ && clock_->ToRun(block_ends_[row_ / Source::kBlockSize]) < wanted_.end_ns.low)
      row_ += Source::kBlockSize;
    row_ = std::min(row_, end_);
  }

  bool IsWanted() const {
    if (wanted_.name && events_->name[row_] != *wanted_.name) return false;
    if (wanted_.category && events_->category[row_] != *wanted_.category) return false;
    if (!wanted_.correlation.open() && !wanted_.correlation.Holds(events_->correlation[row_])) return false;
    if (!wanted_.duration_ns.open() && !wanted_.duration_ns.Holds(events_->duration_ns[row_])) return false;
    return wanted_.end_ns.open() || wanted_.end_ns.Holds(clock_->ToRun(events_->end_ns(row_)));
  }

  const Source& source_;
  const std::span<const EventColumn> columns_;
  const bool device_only_;

  Wanted wanted_;
  uint32_t track_id_ = 0;
  uint32_t last_track_ = 0;
  size_t row_ = 0;
  size_t end_ = 0;
  const TrackPlace* place_ = nullptr;
  const EventColumns* events_ = nullptr;
  const model::ClockMap* clock_ = nullptr;
  std::span<const int64_t> block_ends_;
};

class EventTable : public Table {
 public:
  EventTable(TableSpec spec, std::vector<EventColumn> columns, bool device_only)
      : spec_(std::move(spec)), columns_(std::move(columns)), device_only_(device_only) {}

  const TableSpec& spec() const override { return spec_; }

  bool CanUse(const Constraint& constraint) const override {
    const bool equality = constraint.op == SQLITE_INDEX_CONSTRAINT_EQ;
    switch (ColumnOf(constraint)) {
      case EventColumn::kRank:
      case EventColumn::kWindow:
      case EventColumn::kTrack:
      case EventColumn::kDevice:
      case EventColumn::kStream:
      case EventColumn::kProcessId:
      case EventColumn::kThreadId:
      case EventColumn::kName:
      case EventColumn::kCategory:
      case EventColumn::kLane: return equality;
      case EventColumn::kId:
      case EventColumn::kStartNs:
      case EventColumn::kTraceStartNs:
      case EventColumn::kEndNs:
      case EventColumn::kDurationNs:
      case EventColumn::kCorrelation: return true;
      default: return false;
    }
  }

  // Rows visited; a row that is visited and left out is cheap beside one that SQLite gets to see.
  Estimate EstimateOf(const Source* source, std::span<const Constraint> constraints) const override {
    double visited = 1e6;
    double tracks = 64;
    double ranks = 8;
    if (source != nullptr) {
      visited = static_cast<double>(device_only_ ? source->device_event_count() : source->event_count());
      tracks = std::max<double>(1, static_cast<double>(source->tracks().size()));
      ranks = std::max<double>(1, static_cast<double>(source->run().ranks.size()));
    }
    double kept = 1;
    for (const Constraint& constraint : constraints) {
      switch (ColumnOf(constraint)) {
        case EventColumn::kId: visited = constraint.op == SQLITE_INDEX_CONSTRAINT_EQ ? 1 : visited / 4; break;
        case EventColumn::kTrack: visited /= tracks; break;
        case EventColumn::kRank: visited /= ranks; break;
        case EventColumn::kStartNs:
        case EventColumn::kTraceStartNs: visited /= constraint.op == SQLITE_INDEX_CONSTRAINT_EQ ? 1000 : 4; break;
        case EventColumn::kEndNs: kept /= 4; break;
        case EventColumn::kDurationNs: kept /= 4; break;
        case EventColumn::kName: kept /= 100; break;
        case EventColumn::kCorrelation: kept /= 10000; break;
        default: kept /= 4; break;
      }
    }
    return {visited * (0.05 + kept), visited * kept};
  }

  bool IsSorted(const Source* source, std::span<const Constraint> constraints, int column) const override {
    switch (columns_[static_cast<size_t>(column)]) {
      case EventColumn::kId:
      case EventColumn::kTrack:
      case EventColumn::kWindow: return true;
      case EventColumn::kRank: return source != nullptr && source->HasOneWindow();
      case EventColumn::kTraceStartNs:
        return std::any_of(constraints.begin(), constraints.end(), [this](const Constraint& c) {
          return ColumnOf(c) == EventColumn::kTrack && c.op == SQLITE_INDEX_CONSTRAINT_EQ;
        });
      default: return false;
    }
  }

  std::unique_ptr<Cursor> Open(const Source& source) const override {
    return std::make_unique<EventScan>(source, columns_, device_only_);
  }

 private:
  EventColumn ColumnOf(const Constraint& constraint) const { return columns_[static_cast<size_t>(constraint.column)]; }

  const TableSpec spec_;
  const std::vector<EventColumn> columns_;
  const bool device_only_;
};

std::unique_ptr<Table> Make(std::string_view name, std::string_view sentence, std::vector<EventColumn> columns,
                            bool device_only) {
  TableSpec spec{name, sentence, "", {}};
  for (const EventColumn column : columns) spec.columns.push_back(SpecOf(column));
  return std::make_unique<EventTable>(std::move(spec), std::move(columns), device_only);
}

}  // namespace

std::unique_ptr<Table> MakeEventTable() {
  using C = EventColumn;
  return Make("events", "Every event of every rank: operators, annotations, Python frames, runtime calls, device work",
              {C::kId, C::kRank, C::kWindow, C::kTrack, C::kLane, C::kCategory, C::kName, C::kStartNs, C::kEndNs,
               C::kDurationNs, C::kTraceStartNs, C::kCorrelation, C::kDevice, C::kStream, C::kProcessId, C::kThreadId,
               C::kDepth, C::kStep},
              false);
}

std::unique_ptr<Table> MakeKernelTable() {
  using C = EventColumn;
  return Make(
      "kernels", "Every device event of every rank: kernels, copies and sets, one row each",
      {C::kId, C::kRank, C::kWindow, C::kTrack, C::kDevice, C::kStream, C::kName, C::kKind, C::kStartNs, C::kEndNs,
       C::kDurationNs, C::kTraceStartNs, C::kCorrelation, C::kStep, C::kLaunchStartNs, C::kLaunchEndNs},
      true);
}

}  // namespace lockstep::query
