// What others ask of the table: the processes, and texts for them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "node/agent/kineto/process_client.h"
#include "node/agent/kineto/process_table.h"

namespace lockstep::agent {

using control::Process;
using control::ProcessRole;
using control::ProcessState;

namespace {

/// Two of the tracer's turns.
constexpr int64_t kTracerComesNs = 2'500'000'000;
/// Kineto's socket buffers carry about 200 KiB; a text of ours has less than one.
constexpr size_t kMaxOfferTextBytes = size_t{32} << 10;

/// The table's order: by job, ranks first, then pid.
auto SortKey(const Process& process) {
  return std::make_tuple(std::string_view(process.job_id), !process.rank.has_value(), process.rank.value_or(0),
                         process.pid, std::string_view(process.id));
}

}  // namespace

ProcessTable::Client* ProcessTable::FindById(const std::string& process_id) const {
  const auto found = by_id_.find(process_id);
  return found == by_id_.end() ? nullptr : clients_.at(found->second).get();
}

std::vector<const ProcessTable::Client*> ProcessTable::Published() const {
  std::vector<const Client*> published;
  for (const auto& [serial, client] : clients_) {
    if (client->published()) published.push_back(client.get());
  }
  return published;
}

/// Of the two clients of one process, the one that requests go to.
std::vector<const ProcessTable::Client*> ProcessTable::Shown() const {
  // One whose pid cannot be seen is known by what it calls itself and its ancestors.
  const auto key = [](const Client& client) {
    return std::tuple(client.sender.pid, client.sender.uid,
                      client.sender.pid != 0 ? std::vector<int32_t>() : client.client_pids);
  };
  struct Owner {
    int kineto_count = 0;
    int tracer_count = 0;
    bool has_steps = false;
  };
  std::map<std::tuple<int32_t, uint32_t, std::vector<int32_t>>, Owner> owners;
  std::vector<const Client*> shown = Published();
  for (const Client* client : shown) {
    Owner& owner = owners[key(*client)];
    ++(client->is_tracer ? owner.tracer_count : owner.kineto_count);
    owner.has_steps = owner.has_steps || (client->is_tracer && client->has_steps && (client->busy || !client->silent));
  }
  const int64_t now_unix_ns = options_.wall_clock_ns();
  std::erase_if(shown, [&](const Client* client) {
    const Owner& owner = owners.at(key(*client));
    // After a start of this daemon its tracer asks within a second of Kineto: a capture is not to take Kineto
    // meanwhile.
    const bool is_expected = client->details != nullptr && client->details->has_step_tracer;
    if (is_expected && owner.tracer_count == 0 && now_unix_ns - client->first_poll_unix_ns < kTracerComesNs)
      return true;
    // Several containers may have processes of the same numbers: which two are one cannot be told.
    if (client->sender.pid == 0 && (owner.kineto_count != 1 || owner.tracer_count != 1)) return false;
    return client->is_tracer ? !owner.has_steps && owner.kineto_count > 0 : owner.has_steps;
  });
  return shown;
}

Process ProcessTable::Describe(const Client& client, ProcessRole role) const {
  Process process;
  process.id = client.id;
  process.pid = client.sender.pid;
  process.uid = client.sender.uid;
  process.client_pids = client.client_pids;
  process.host = options_.host;
  process.role = role;
  process.tracer = client.is_tracer ? control::Tracer::kSteps : control::Tracer::kKineto;
  if (client.silent) {
    process.state = ProcessState::kSilent;
  } else if (client.busy) {
    process.state = ProcessState::kTracing;
  } else if (client.offer ||
             (!client.delivered_token.empty() && options_.wall_clock_ns() < client.pending_until_unix_ns)) {
    process.state = ProcessState::kRequested;
  }
  if (client.details != nullptr) {
    const proc::ProcessDetails& details = *client.details;
    process.start_ticks = details.start_ticks;
    process.user = details.user;
    if (role != ProcessRole::kLauncher) {  // Its own is an outer launcher's, and would be taken for a trainer's.
      process.rank = details.rank;
      process.local_rank = details.local_rank;
      process.world_size = details.world_size;
    }
    process.job_kind = details.job_kind;
    process.job_id = details.job_id;
    process.job_step = details.job_step;
    process.command = details.command;
    process.device = details.device;
    process.torch_version = details.torch_version;
    process.python_version = details.python_version;
    process.settings = details.settings;
    process.counts_iterations = client.is_tracer || details.counts_iterations;
  }
  if (process.job_id.empty() && client.job_id != 0) {
    // The only number that clients send is SLURM's.
    process.job_kind = control::JobKind::kSlurm;
    process.job_id = fmt::format("{}", client.job_id);
  }
  if (client.sender.socket_idx < options_.sockets.size()) process.socket = options_.sockets[client.sender.socket_idx];
  process.first_poll_unix_ns = client.first_poll_unix_ns;
  process.last_poll_unix_ns = client.last_poll_unix_ns;
  process.poll_period_ns = client.PollPeriodNs();
  return process;
}

std::vector<Process> ProcessTable::Processes() const {
  const MutexLock lock(mutex_);
  const std::vector<const Client*> published = Shown();
  std::vector<proc::RoleInput> roles;
  roles.reserve(published.size());
  for (const Client* client : published) roles.push_back({.pid = client->sender.pid, .details = client->details.get()});
  proc::AssignRoles(&roles);
  std::vector<Process> processes;
  processes.reserve(published.size());
  for (size_t i = 0; i < published.size(); ++i) processes.push_back(Describe(*published[i], roles[i].role));
  std::sort(processes.begin(), processes.end(),
            [](const Process& a, const Process& b) { return SortKey(a) < SortKey(b); });
  return processes;
}

std::optional<Process> ProcessTable::Find(const std::string& process_id) const {
  const MutexLock lock(mutex_);
  const Client* wanted = FindById(process_id);
  if (wanted == nullptr) return std::nullopt;
  const std::vector<const Client*> published = Published();
  std::vector<proc::RoleInput> roles;
  for (const Client* client : published) roles.push_back({.pid = client->sender.pid, .details = client->details.get()});
  proc::AssignRoles(&roles);
  for (size_t i = 0; i < published.size(); ++i) {
    if (published[i] == wanted) return Describe(*wanted, roles[i].role);
  }
  return std::nullopt;
}

Status ProcessTable::Place(const std::string& process_id, Offer offer) {
  if (offer.token.empty() || offer.text.find_first_not_of(" \t\r\n") == std::string::npos)
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "an offer needs a token and a text: a blank one traces"};
  if (offer.text.size() > kMaxOfferTextBytes)
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("a text of {} bytes does not fit into a reply", offer.text.size())};
  const MutexLock lock(mutex_);
  Client* client = FindById(process_id);
  if (client == nullptr)
    return Error{.code = ErrorCode::kNotFound, .message = fmt::format("process {} is not registered", process_id)};
  if (client->offer)
    return Error{.code = ErrorCode::kFailedPrecondition,
                 .message = fmt::format("process {} has a request waiting already", process_id)};
  client->offer = std::move(offer);
  return {};
}

bool ProcessTable::Withdraw(const std::string& process_id, const std::string& token) {
  const MutexLock lock(mutex_);
  Client* client = FindById(process_id);
  if (client == nullptr) return false;
  if (client->delivered_token == token) client->delivered_token.clear();
  if (!client->offer || client->offer->token != token) return false;
  client->offer.reset();
  return true;
}

void ProcessTable::Stop(const std::string& process_id, const std::string& trace_id) {
  const MutexLock lock(mutex_);
  Client* client = FindById(process_id);
  if (client != nullptr && client->is_tracer) client->stop = trace_id;
}

std::string ProcessTable::Note(const std::string& process_id) const {
  const MutexLock lock(mutex_);
  const Client* client = FindById(process_id);
  return client == nullptr ? "" : client->note;
}

}  // namespace lockstep::agent
