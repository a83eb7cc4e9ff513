#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "node/live/counter_track.h"
#include "node/live/job_view.h"
#include "node/live/node_poller.h"
#include "node/live/recent_growth.h"

namespace lockstep::live {

/// Counters of a rank that rates are made of.
enum RankCounter : size_t {
  kSteps,  // Leads.
  kStepSeconds,
  kProgress,
  kSamples,
  kTokens,
  kModelFlops,
  kCollectiveSeconds,
  kBusBytes,
  kDropped,
  kCpuSeconds,
  kReadBytes,
  kWrittenBytes,
  kLogErrors,
  kFirstPhase,
  kRankCounters = kFirstPhase + model::kStages.size()
};
using RankCounters = CounterTrack<kRankCounters>;

enum GpuCounter : size_t { kEnergy, kThrottle, kHardwareThrottle, kGpuCounters };
enum PortCounter : size_t { kReceived, kTransmitted, kTransmitWait, kPortErrors, kPortCounters };
enum ServingCounter : size_t { kRequests, kFailures, kGenerationTokens, kPreemptions, kServingCounters };

using RankKey = std::tuple<std::string, std::string>;                  // Job, rank.
using ServingKey = std::tuple<std::string, std::string, std::string>;  // Job, model, engine.

/// A number from outside as nanoseconds; nullopt where none can hold it.
std::optional<int64_t> Nanoseconds(std::optional<double> seconds);
/// The same as a count.
std::optional<uint64_t> Count(std::optional<double> value);

/// What the looks at one rank have shown.
struct RankTrack {
  RankReading reading;
  RankCounters counters;
  std::vector<int64_t> step_history;
  std::optional<int64_t> newest_step_ns;  ///< Of the last look, where steps ended in it.

  void Take(RankReading now, int64_t taken_ns, int64_t window_ns);
};

/// What the looks at one node have shown, and what it makes of them: rates over the last `window_ns`.
struct NodeTrack {
  NodeLook last;  ///< That had no error; reading's ranks are in `ranks`.
  std::optional<int64_t> answered_ns;
  std::optional<Error> error;
  std::map<RankKey, RankTrack> ranks;
  std::map<std::string, CounterTrack<kGpuCounters>> gpus;
  std::map<std::string, RecentGrowth> xid_events;
  std::map<PortKey, CounterTrack<kPortCounters>> ports;
  std::map<ServingKey, CounterTrack<kServingCounters>> serving;

  void Take(NodeLook look, int64_t window_ns);
  RankView ViewOf(const RankTrack& track, int64_t now_unix_ns) const;
  NodeView View(int64_t now_ns) const;
  std::vector<ServingView> Serving() const;

 private:
  void TakeAnswer(NodeLook look, int64_t window_ns);
  GpuView ViewOfGpu(const GpuReading& reading) const;
  PortView ViewOfPort(const PortKey& key, const PortReading& reading) const;
  void AddDevices(NodeView* view) const;
};

}  // namespace lockstep::live
