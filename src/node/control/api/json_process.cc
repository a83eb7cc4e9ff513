#include "base/nanoseconds.h"
#include "node/control/api/json.h"
#include "node/control/api/json_fields.h"
#include "node/control/api/names.h"

namespace lockstep::control {
namespace {

constexpr size_t kAncestors = 1024;  // A registration holds no more pids.
constexpr size_t kSettings = 256;
constexpr int64_t kDayNs = 24 * kHourNs;

}  // namespace

template <typename Json>
void Fields(Json& json, Process& process) {
  json.RequiredWord("id", "-_.:", 128, &process.id);
  json.Int("pid", &process.pid);
  json.Uint("start_ticks", &process.start_ticks);
  json.Int("uid", &process.uid);
  json.Numbers("client_pids", kAncestors, INT32_MIN, &process.client_pids);
  json.TextOrNull("user", &process.user);
  json.TextOrNull("host", &process.host);
  json.Name("role", kProcessRoles, &process.role);
  json.Name("state", kProcessStates, &process.state);
  json.Int("rank", &process.rank);
  json.Int("local_rank", &process.local_rank);
  json.Int("world_size", &process.world_size);
  json.Name("job_kind", kJobKinds, &process.job_kind);
  json.TextOrNull("job_id", &process.job_id);
  json.TextOrNull("job_step", &process.job_step);
  json.TextOrNull("command", &process.command);
  json.TextOrNull("device", &process.device);
  json.TextOrNull("torch_version", &process.torch_version);
  json.TextOrNull("socket", &process.socket);
  json.TextOrNull("python_version", &process.python_version);
  json.Texts("settings", kSettings, &process.settings);
  json.Name("tracer", kTracers, &process.tracer);
  json.Bool("counts_iterations", &process.counts_iterations);
  json.Int("first_poll_unix_ns", &process.first_poll_unix_ns);
  json.Int("last_poll_unix_ns", &process.last_poll_unix_ns);
  json.Int("poll_period_ns", &process.poll_period_ns, 0, kDayNs);
}
template void Fields(FieldWriter& json, Process& process);
template void Fields(FieldReader& json, Process& process);

std::string ToJson(const Process& process) { return WriteDocument(process); }
std::string ToJson(const std::vector<Process>& processes) { return WriteList("processes", processes); }
Result<std::vector<Process>> ReadProcesses(std::string_view json) {
  return ReadList<Process>("processes", kProcessesOfNode, json);
}

}  // namespace lockstep::control
