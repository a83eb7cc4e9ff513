#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/column.h"
#include "ingest/torch_trace/damage.h"
#include "model/event.h"

namespace lockstep::ingest::perfetto {

/// One track of a Perfetto trace: what its descriptor says, and its slices in the order in which they begin in the
/// file.
struct RawTrack {
  uint64_t uuid = 0;
  uint64_t parent_uuid = 0;
  bool is_process = false;
  bool is_thread = false;
  bool is_counter = false;
  int64_t process_id = 0;
  int64_t thread_id = 0;
  std::string name;

  Column<int64_t> start_ns;
  Column<int64_t> duration_ns;  ///< -1 while open.
  Column<NameId> event_name;
  Column<uint8_t> category;  ///< model::Category, or kNoCategory.
  Column<uint32_t> correlation;
  struct Collective {
    uint32_t row = 0;
    model::CollectiveRecord record;
  };
  std::vector<Collective> collectives;

  std::vector<uint32_t> open = {};  ///< Rows of open slices, innermost last.
  int64_t last_ns = INT64_MIN;
  bool out_of_order = false;             ///< Times ran backwards: slices are paired again at the end.
  std::vector<int64_t> loose_ends = {};  ///< Of such a track: ends that had no slice when they came.
};
inline constexpr uint8_t kNoCategory = 255;

/// Collects begins and ends of slices by track, and pairs them.
///
/// Two orders occur. Recorders write packets as things happen: on each track the begins and ends are in order of time
/// and form a stack. PyTorch's exporter writes groups: first the begins of n slices, on any tracks, then their n ends
/// in the same order. A run of begins followed by a run of ends is taken for such a group when both have the same
/// length and the same tracks in the same order, and reading them as a stack would make time run backwards.
class SliceTracks {
 public:
  explicit SliceTracks(Damage* damage) : damage_(damage) {}

  RawTrack& Track(uint64_t uuid);
  /// Row of the new slice in `track`.
  uint32_t Begin(RawTrack* track, int64_t time_ns, NameId name, uint8_t category, uint32_t correlation);
  void End(RawTrack* track, int64_t time_ns, uint64_t byte_offset);
  /// A slice whose end is known.
  uint32_t AddWhole(RawTrack* track, int64_t start_ns, int64_t duration_ns, NameId name, uint8_t category,
                    uint32_t correlation);
  /// Closes everything: no open slices are left.
  void Finish();

  /// In order of first appearance.
  std::vector<std::unique_ptr<RawTrack>>& tracks() { return tracks_; }

 private:
  struct Begun {
    RawTrack* track;
    uint32_t row;
  };
  struct Ended {
    RawTrack* track;
    int64_t time_ns;
    uint64_t byte_offset;
  };
  void ResolveRun();
  bool IsGroup() const;
  void CloseInnermost(const Ended& end);
  void PairAnew(RawTrack* track);

  Damage* damage_;
  std::vector<std::unique_ptr<RawTrack>> tracks_;
  std::unordered_map<uint64_t, RawTrack*> by_uuid_;
  std::vector<Begun> begun_;
  std::vector<Ended> ended_;
  bool run_runs_backwards_ = false;
};

}  // namespace lockstep::ingest::perfetto
