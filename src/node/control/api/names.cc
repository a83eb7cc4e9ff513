#include "node/control/api/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/json_object.h"
#include "base/signal_name.h"

namespace lockstep::control {

const char* ProcessRoleName(ProcessRole role) { return kProcessRoles.Name(role); }
const char* ProcessStateName(ProcessState state) { return kProcessStates.Name(state); }
const char* TracerName(Tracer tracer) { return kTracers.Name(tracer); }
const char* JobKindName(JobKind kind) { return kJobKinds.Name(kind); }
const char* TargetStateName(TargetState state) { return kTargetStates.Name(state); }
const char* CaptureStateName(CaptureState state) { return kCaptureStates.Name(state); }

std::string EndWords(const ProcessEnd& end) {
  if (end.signal) return "was ended by " + SignalName(*end.signal);
  return end.exit_status ? fmt::format("ended with exit status {}", *end.exit_status) : "ended";
}

bool IsSameJob(const Process& a, const Process& b) {
  if (a.job_kind != b.job_kind || a.job_id != b.job_id || a.job_step != b.job_step || a.uid != b.uid) return false;
  if (!a.job_id.empty()) return true;
  // A shell may have started several: only ranks have a launcher in common.
  return a.rank && b.rank && a.world_size == b.world_size && a.client_pids.size() > 1 && b.client_pids.size() > 1 &&
         a.client_pids[1] == b.client_pids[1];
}

bool MatchesJob(std::string_view job_id, std::string_view asked) {
  if (asked.empty()) return true;
  return job_id.starts_with(asked) && (job_id.size() == asked.size() || job_id[asked.size()] == '.');
}

bool IsCaptureId(std::string_view id) {
  return id.size() == 16 &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c); });
}

bool IsTraceName(std::string_view name) {
  return name.size() <= 255 && name.ends_with(".json") && name.front() != '.' && IsWord(name, "._-");
}

bool IsFinal(TargetState state) { return state >= TargetState::kDone; }
bool IsFinal(CaptureState state) { return state >= CaptureState::kDone; }

}  // namespace lockstep::control
