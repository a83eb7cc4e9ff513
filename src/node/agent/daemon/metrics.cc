#include "node/agent/daemon/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>

#include "node/agent/daemon/own_process.h"

namespace lockstep::agent {
namespace {

using control::Capture;
using control::CaptureState;
using control::Process;
using control::ProcessRole;
using control::ProcessState;
using prometheus::MetricFamily;

constexpr CaptureState kEndings[] = {CaptureState::kDone, CaptureState::kPartial, CaptureState::kFailed,
                                     CaptureState::kCancelled};

const char* HelpOf(std::string_view name) {
  const auto& specs = DaemonMetricSpecs();
  return std::find_if(specs.begin(), specs.end(), [&](const MetricSpec& spec) { return name == spec.name; })->help;
}

uint64_t TraceBytes(const Capture& capture) {
  uint64_t bytes = 0;
  for (const control::CaptureTarget& target : capture.targets) bytes += target.trace_bytes;
  return bytes;
}

// Every state is there from the start: a series that first appears with 1 raises no alert.
void AddProcesses(const std::vector<Process>& processes, std::vector<MetricSample>* samples) {
  for (const ProcessRole role : {ProcessRole::kTrainer, ProcessRole::kLauncher, ProcessRole::kHelper}) {
    for (const ProcessState state :
         {ProcessState::kIdle, ProcessState::kRequested, ProcessState::kTracing, ProcessState::kSilent}) {
      const auto count = std::count_if(processes.begin(), processes.end(), [&](const Process& process) {
        return process.role == role && process.state == state;
      });
      samples->push_back({"lockstep_processes",
                          {{"role", ProcessRoleName(role)}, {"state", ProcessStateName(state)}},
                          static_cast<double>(count)});
    }
  }
}

void AddCaptures(const std::vector<Capture>& captures, std::vector<MetricSample>* samples) {
  for (const CaptureState state : {CaptureState::kWaiting, CaptureState::kRunning}) {
    const auto count =
        std::count_if(captures.begin(), captures.end(), [&](const Capture& capture) { return capture.state == state; });
    samples->push_back({"lockstep_captures_active", {{"state", CaptureStateName(state)}}, static_cast<double>(count)});
  }
}

void AddOwnProcess(std::vector<MetricSample>* samples) {
  const OwnProcess own = ReadOwnProcess();
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) samples->push_back({name, {}, *value});
  };
  add("process_cpu_seconds_total", own.cpu_seconds);
  add("process_resident_memory_bytes", own.resident_bytes);
  add("process_open_fds", own.open_fds);
  add("process_max_fds", own.most_fds);
  add("process_start_time_seconds", own.start_time_seconds);
}

}  // namespace

prometheus::Family<prometheus::Counter>& Metrics::Counters(const char* name) {
  return prometheus::BuildCounter().Name(name).Help(HelpOf(name)).Register(registry_);
}

Metrics::Metrics(const std::string& version, const SeriesLimits& limits)
    : requests_(Counters("lockstep_api_requests_total")),
      authentication_failures_(Counters("lockstep_api_auth_failures_total")),
      captures_(Counters("lockstep_captures_total")),
      capture_bytes_(Counters("lockstep_capture_bytes_total")),
      series_dropped_(Counters("lockstep_series_dropped_total")),
      version_(version),
      limits_(limits) {
  for (const char* reason : {"rank", "job", "node", "label"}) series_dropped_.Add({{"reason", reason}});
  for (const char* reason : {"unknown", "limited"}) authentication_failures_.Add({{"reason", reason}});
  for (const CaptureState ending : kEndings) {
    captures_.Add({{"outcome", CaptureStateName(ending)}});
    capture_bytes_.Add({{"outcome", CaptureStateName(ending)}});
  }
}

void Metrics::CountRequest(const char* handler, int code) {
  requests_.Add({{"handler", handler}, {"code", std::to_string(code)}}).Increment();
}

void Metrics::CountAuthenticationFailure(const char* reason) {
  authentication_failures_.Add({{"reason", reason}}).Increment();
}

void Metrics::CountEnded(const std::vector<Capture>& captures) {
  const MutexLock lock(mutex_);
  for (const Capture& capture : captures) {
    if (!IsFinal(capture.state) || !ended_.insert(capture.id).second) continue;
    const prometheus::Labels labels = {{"outcome", CaptureStateName(capture.state)}};
    captures_.Add(labels).Increment();
    capture_bytes_.Add(labels).Increment(static_cast<double>(TraceBytes(capture)));
  }
}

void Metrics::SkipEnded(const std::vector<Capture>& captures) {
  const MutexLock lock(mutex_);
  for (const Capture& capture : captures) {
    if (IsFinal(capture.state)) ended_.insert(capture.id);
  }
}

std::string Metrics::Text(const std::vector<Process>& processes, const std::vector<Capture>& captures,
                          const std::vector<MetricSample>& samples, std::vector<MetricFamily> measured) {
  return prometheus::TextSerializer().Serialize(Families(processes, captures, samples, std::move(measured)));
}

std::string Metrics::OpenText(const std::vector<Process>& processes, const std::vector<Capture>& captures,
                              const std::vector<MetricSample>& samples, std::vector<MetricFamily> measured,
                              const std::vector<Exemplar>& exemplars) {
  return OpenMetricsText(Families(processes, captures, samples, std::move(measured)), exemplars);
}

std::vector<MetricFamily> Metrics::Families(const std::vector<Process>& processes, const std::vector<Capture>& captures,
                                            const std::vector<MetricSample>& samples,
                                            std::vector<MetricFamily> measured) {
  CountEnded(captures);
  {
    // Captures that the manager has forgotten need not be remembered here.
    const MutexLock lock(mutex_);
    std::set<std::string> known;
    for (const Capture& capture : captures) known.insert(capture.id);
    std::erase_if(ended_, [&](const std::string& id) { return !known.contains(id); });
  }
  std::vector<MetricSample> all = samples;
  all.push_back({"lockstep_build_info", {{"version", version_}}, 1});
  AddProcesses(processes, &all);
  AddCaptures(captures, &all);
  AddOwnProcess(&all);

  const SeriesDrops drops = LimitSeries(limits_, &measured);
  for (const auto& [reason, count] :
       {std::pair("rank", drops.rank), {"job", drops.job}, {"node", drops.node}, {"label", drops.label}}) {
    series_dropped_.Add({{"reason", reason}}).Increment(static_cast<double>(count));
  }
  std::vector<MetricFamily> families = registry_.Collect();
  MetricFamilies own(DaemonMetricSpecs());
  for (const MetricSample& sample : all) own.Add(sample.name, sample.labels, sample.value);
  MergeFamilies(own.Take(), &families);
  MergeFamilies(std::move(measured), &families);
  return families;
}

}  // namespace lockstep::agent
