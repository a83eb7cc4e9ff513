#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/span_follow/span_follower.h"
#include "ingest/span_follow/stage_cutter.h"
#include "model/stages/stage.h"

namespace lockstep::agent {

/// A request that has ended, as its rank's marks tell.
struct EndedRequest {
  std::string name;
  int64_t end_ns = 0;  ///< Unix time.
  int64_t duration_ns = 0;
  std::optional<int64_t> first_output_ns = {};        ///< After its begin.
  std::optional<int64_t> per_output_ns = {};          ///< Between first and last output, by output.
  std::vector<std::pair<int64_t, uint64_t>> gaps_ns;  ///< Between outputs: how long by output, and how often.
  uint64_t output_count = 0;
  bool failed = false;
};

/// The phase that a rank is in.
struct OpenPhase {
  model::Stage stage = model::Stage::kOther;
  int64_t since_ns = 0;  ///< Unix time.
};

/// What a rank has done since its process was found, from what it records. Bounded: whatever names and requests it
/// makes up, 256 values and 65,536 requests are kept, the newest. Not thread-safe.
class RankMeter {
 public:
  RankMeter() = default;
  RankMeter(RankMeter&&) = default;  // No copies: requests point into a list.
  RankMeter& operator=(RankMeter&&) = default;

  /// `name_of` as SpanFollower::NameOf.
  void Take(const ingest::span_follow::Followed& followed, const std::function<const std::string&(uint32_t)>& name_of);

  uint64_t step_count() const { return step_count_; }
  int64_t step_ns() const { return step_ns_; }
  /// They add up to step_ns().
  const model::StageTimes& stage_ns() const { return stage_ns_; }
  std::optional<int64_t> last_step() const { return last_step_; }
  /// Unix time at which the newest step ended.
  std::optional<int64_t> last_step_end_ns() const { return last_step_end_ns_; }
  /// Where the rank is in the step that is under way; nullopt: in none, or it is not known.
  const std::optional<OpenPhase>& open_phase() const { return open_phase_; }
  /// Records were dropped since that step was seen: newer ones may have been among them.
  bool may_have_newer_step() const { return dropped_count_ > dropped_at_step_; }
  /// Durations of the last 100 steps.
  const std::deque<int64_t>& recent_steps_ns() const { return recent_steps_ns_; }
  /// Steps that ended in the last Take().
  const std::vector<model::StepStages>& new_steps() const { return new_steps_; }
  /// As model::RankStages::groups.
  const std::vector<std::string>& groups() const { return cutter_.groups(); }
  /// Amounts that were counted: "samples", "tokens", "model_flops".
  const std::map<std::string, double, std::less<>>& amounts() const { return amounts_; }
  bool has_device_times() const { return cutter_.has_device_times(); }
  /// Its waits for collectives lie in other stages and cannot be told from them.
  bool hides_communication() const;
  /// Newest value of every other counter.
  const std::map<std::string, double, std::less<>>& values() const { return values_; }
  uint64_t left_out_count() const { return left_out_count_; }  ///< Values of names beyond the bound.
  uint64_t record_count() const { return record_count_; }
  uint64_t missed_count() const { return missed_count_; }    ///< Could not be followed.
  uint64_t dropped_count() const { return dropped_count_; }  ///< Did not fit into the file.
  bool has_ended() const { return has_ended_; }

  size_t open_request_count() const { return requests_.size(); }
  /// Requests that ended in the last Take().
  const std::vector<EndedRequest>& ended_requests() const { return ended_requests_; }
  /// Those under way, by name.
  std::map<std::string, uint64_t> OpenRequests() const;

 private:
  struct Request {
    std::string name;
    int64_t begin_ns = 0;
    std::optional<int64_t> first_output_ns = {};
    int64_t last_output_ns = 0;
    uint64_t output_count = 0;
    uint64_t first_count = 0;  ///< Outputs that came at once with the first.
    std::vector<std::pair<int64_t, uint64_t>> gaps_ns = {};
    std::list<uint64_t>::iterator age = {};  ///< In requests_by_age_.
  };
  void TakeStep(const model::StepStages& step);
  void TakeOpen(const ingest::span_follow::Followed& followed,
                const std::function<const std::string&(uint32_t)>& name_of);
  void TakeCounter(const std::string& name, double value);
  void Forget(uint64_t request);
  void TakeRequest(const ingest::span_follow::FollowedRequest& event, const std::string& name);

  uint64_t step_count_ = 0;
  int64_t step_ns_ = 0;
  model::StageTimes stage_ns_ = {};
  std::optional<int64_t> last_step_;
  std::optional<int64_t> last_step_end_ns_;
  std::optional<OpenPhase> open_phase_;
  int64_t newest_end_ns_ = INT64_MIN;  ///< Of what has ended on the thread of the step under way.
  std::deque<int64_t> recent_steps_ns_;
  std::vector<model::StepStages> new_steps_;
  ingest::span_follow::StageCutter cutter_;
  std::map<std::string, double, std::less<>> amounts_;
  std::map<std::string, double, std::less<>> values_;
  uint64_t left_out_count_ = 0;
  uint64_t record_count_ = 0;
  uint64_t missed_count_ = 0;
  uint64_t dropped_count_ = 0;
  uint64_t dropped_at_step_ = 0;  ///< dropped_count_ when the newest step was seen.
  bool has_ended_ = false;
  std::unordered_map<uint64_t, Request> requests_;
  std::list<uint64_t> requests_by_age_;  ///< The oldest first.
  size_t gap_count_ = 0;                 ///< Request::gaps_ns of all.
  std::vector<EndedRequest> ended_requests_;
};

}  // namespace lockstep::agent
