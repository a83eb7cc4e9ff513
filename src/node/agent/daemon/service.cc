#include "node/agent/daemon/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/host_name.h"
#include "base/now.h"
#include "node/agent/daemon/own_process.h"
#include "node/agent/daemon/serving_objectives.h"
#include "node/agent/engines/engine_sensor.h"
#include "node/agent/gpu/amd_sensor.h"
#include "node/agent/gpu/gpu_sensor.h"
#include "node/agent/host/host_sensor.h"
#include "node/agent/host/infiniband_sensor.h"
#include "node/agent/host/pressure_sensor.h"
#include "node/agent/host/process_sensor.h"
#include "node/agent/host/rank_list.h"
#include "node/agent/host/store_sensor.h"
#include "node/agent/job_metrics/span_sensor.h"
#include "node/agent/log_metrics/log_sensor.h"
#include "node/agent/nccl_metrics/nccl_sensor.h"
#include "node/inspect/job_look.h"
#include "node/proc/rank_finder.h"

namespace lockstep::agent {
namespace {

constexpr const char* kBaseConfig = "/etc/libkineto.conf";
// Less than the sensors' own period, so that each of them sees new ranks at every other look at the latest.
constexpr auto kRanksFreshFor = std::chrono::milliseconds(4500);
// A look at a hundred ranks takes some milliseconds; where it takes longer, steps are told as they were a second ago.
constexpr auto kNewStepsWait = std::chrono::milliseconds(300);

// One daemon for a state folder: two would answer for the same captures.
Result<UniqueFd> LockState(const std::string& folder) {
  const std::string path = folder + "/lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return Error{ErrorCode::kIo, fmt::format("cannot be opened: {}", std::strerror(errno)), path};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char pid[16] = {};
    const ssize_t length = ::pread(fd.get(), pid, sizeof(pid) - 1, 0);
    return Error{ErrorCode::kFailedPrecondition,
                 fmt::format("another lockstepd{} uses this folder; stop it, or give this one another --state",
                             length > 0 ? fmt::format(" (pid {})", pid) : ""),
                 folder};
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return Error{ErrorCode::kIo, fmt::format("cannot be written: {}", std::strerror(errno)), path};
  }
  return fd;
}

bool IsNotEmpty(const char* path) {
  struct stat info = {};
  return ::stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
}

std::string Shown(const ListenAddress& listen, uint16_t port) {
  const bool is_v6 = listen.address.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", listen.address, port) : fmt::format("{}:{}", listen.address, port);
}

bool operator==(const ListenAddress& a, const ListenAddress& b) { return a.address == b.address && a.port == b.port; }

bool IsSameTls(const std::optional<http::TlsFiles>& a, const std::optional<http::TlsFiles>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->certificate == b->certificate && a->key == b->key && a->client_authority == b->client_authority &&
         a->requires_client_certificate == b->requires_client_certificate;
}

}  // namespace

Service::Service(const DaemonConfig& config, Log* log)
    : config_(config),
      log_(log),
      host_(HostName()),
      started_unix_ns_(UnixNow()),
      metrics_(LOCKSTEP_VERSION, config.sensors.series) {}

Result<std::unique_ptr<Service>> Service::Open(const DaemonConfig& config, Log* log) {
  std::unique_ptr<Service> service(new Service(config, log));
  RETURN_IF_ERROR(service->Start());
  return service;
}

Status Service::Start() {
  RETURN_IF_ERROR(MakeOwnFolder(config_.state_folder, 0700));
  ASSIGN_OR_RETURN(state_lock_, LockState(config_.state_folder));
  // Clients of the socket are identified by their credentials; an ordinary user's daemon serves that user and root.
  RETURN_IF_ERROR(
      MakeOwnFolder(std::filesystem::path(config_.unix_socket).parent_path().string(), ::geteuid() == 0 ? 0755 : 0700));

  // A node's own folder may lie in /run, which is empty after a boot. As /tmp: clients bind their sockets there.
  for (const std::string& directory : config_.kineto_directories) {
    const mode_t mode = ::geteuid() == 0 ? 01777 : 0700;
    if (::mkdir(directory.c_str(), mode) == 0) ::chmod(directory.c_str(), mode);
  }
  KinetoOptions kineto;
  kineto.abstract_socket = !config_.kineto_name.empty();
  if (kineto.abstract_socket) kineto.name = config_.kineto_name;
  kineto.directories = config_.kineto_directories;
  kineto.host = host_;
  ASSIGN_OR_RETURN(kineto_, KinetoEndpoint::Create(kineto));

  CaptureManagerOptions captures;
  captures.state_folder = config_.state_folder + "/captures";
  captures.host = host_;
  captures.output_folder = config_.output_folder;
  captures.trace_quota_bytes = config_.trace_quota_bytes;
  captures.keep_ns = config_.keep_ns;
  captures.allow_unsafe = config_.allow_unsafe_captures;
  ASSIGN_OR_RETURN(captures_, CaptureManager::Create(captures, kineto_.get()));
  metrics_.SkipEnded(captures_->List(Caller{{}, true, {}}));

  inspections_ = std::make_unique<InspectionDesk>(
      [this](const control::InspectionSpec& spec, const std::function<bool(uint32_t)>& allowed) {
        return inspect::LookAtJob(spec, allowed, host_);
      },
      SteadyNow);

  StartSensors();
  StartHistory();

  ApiParts parts;
  parts.captures = captures_.get();
  parts.registry = kineto_.get();
  parts.inspections = inspections_.get();
  parts.metrics = &metrics_;
  parts.network = &network_;
  parts.status = [this] { return NodeState(); };
  parts.problems = [this] { return Problems(); };
  parts.samples = [this] { return Samples(); };
  parts.measured = [this] {
    std::vector<prometheus::MetricFamily> families = sensors_->Collect();
    AddServingObjectives(config_.serving, &families);
    return families;
  };
  parts.exemplars = [this](const std::vector<control::Capture>& of) { return exemplars_.Of(of, kept_steps_); };
  parts.history = [this](const control::HistoryQuery& query) {
    if (history_) return history_->Ask(query);
    control::History none;
    none.host = host_;
    none.now_unix_ns = UnixNow();
    return none;
  };
  parts.stages = [this](const control::StagesQuery& query) {
    sensors_->LookNow(SpanSensor::kName, kNewStepsWait);
    control::NodeStages stages = kept_steps_.Ask(query);
    stages.host = host_;
    stages.now_unix_ns = UnixNow();
    return stages;
  };
  parts.audit = [this](const std::string& line) { log_->Write(LogLevel::kInfo, line); };
  parts.now_ns = SteadyNow;
  api_ = std::make_unique<Api>(std::move(parts), std::make_shared<const Access>(config_, &users_, &limiter_));
  RETURN_IF_ERROR(OpenServer());
  if (config_.dynolog_rpc) RETURN_IF_ERROR(OpenDynolog());
  server_thread_ = std::jthread([this] { server_->Run(); });
  return {};
}

void Service::StartSensors() {
  // A user's daemon sees that user's ranks; root's sees all.
  const auto allowed = [own = ::geteuid()](uint32_t uid) { return own == 0 || uid == own; };
  std::vector<std::unique_ptr<Sensor>> sensors;
  auto finder = std::make_shared<proc::RankFinder>(allowed);
  auto ranks = std::make_shared<RankList>([finder] { return finder->Find(); }, kRanksFreshFor);
  sensors.push_back(std::make_unique<SpanSensor>(
      host_, [ranks] { return ranks->Get(); }, &kept_steps_));
  sensors.push_back(std::make_unique<ProcessSensor>(host_, [ranks] { return ranks->Get(); }));
  sensors.push_back(std::make_unique<PressureSensor>(host_));
  sensors.push_back(std::make_unique<StoreSensor>(host_, config_.output_folder));
  sensors.push_back(std::make_unique<InfinibandSensor>(host_, config_.sensors.sysfs));
  if (config_.sensors.host) sensors.push_back(std::make_unique<HostSensor>(host_));
  sensors.push_back(std::make_unique<NcclSensor>([this] {
    std::vector<int32_t> pids;
    for (const control::Process& process : kineto_->Processes()) pids.push_back(process.pid);
    return pids;
  }));
  if (config_.sensors.gpu) {
    GpuSensorOptions gpu;
    gpu.host = host_;
    gpu.library = config_.sensors.nvml_library;
    gpu.expected_count = config_.sensors.gpus_expected;
    gpu.retry = std::chrono::seconds(config_.sensors.gpu_retry_s);
    sensors.push_back(std::make_unique<GpuSensor>(std::move(gpu)));
    sensors.push_back(std::make_unique<AmdSensor>(host_, config_.sensors.sysfs));
  }
  if (config_.sensors.logs) {
    sensors.push_back(std::make_unique<LogSensor>(
        host_, [ranks] { return ranks->Get(); }, config_.log_paths));
  }
  if (!config_.engines.empty() || config_.sensors.find_engines) {
    EngineSensorOptions engines;
    engines.host = host_;
    engines.endpoints = config_.engines;
    if (config_.sensors.find_engines) engines.find = [allowed] { return FindEngines(allowed); };
    engines.period = std::chrono::seconds(config_.sensors.engine_period_s);
    engines.log = [this](const std::string& line) { log_->Write(LogLevel::kWarning, line); };
    sensors.push_back(std::make_unique<EngineSensor>(std::move(engines)));
  }
  sensors_ = std::make_unique<SensorBoard>(std::move(sensors),
                                           [this](const std::string& line) { log_->Write(LogLevel::kWarning, line); });
}

void Service::StartHistory() {
  if (config_.history.keep_ns == 0) return;
  HistoryRecorder::Options options;
  options.settings = config_.history;
  options.path = config_.state_folder + "/history";
  options.host = host_;
  options.visit = [this](const auto& take) { sensors_->Visit(take); };
  options.log = [this](const std::string& line) { log_->Write(LogLevel::kWarning, line); };
  Result<std::unique_ptr<HistoryRecorder>> opened = HistoryRecorder::Open(std::move(options));
  if (opened) {
    history_ = std::move(*opened);
  } else {
    log_->Write(LogLevel::kWarning, "runs without a history: " + opened.error().ToString());
  }
}

Status Service::OpenServer() {
  http::ServerOptions options;
  options.port.reset();
  options.listeners.push_back({.unix_path = config_.unix_socket});
  for (const ListenAddress& listen : config_.listen) {
    options.listeners.push_back({.address = listen.address, .port = listen.port, .tls = config_.tls});
  }
  options.host_names = config_.host_names;
  options.host_names.push_back(host_);
  options.takes_bodies = true;
  options.refuse = Api::Refuse;
  ASSIGN_OR_RETURN(
      server_, http::HttpServer::Open(options, [this](const http::Request& request) { return api_->Handle(request); }));
  return {};
}

Status Service::OpenDynolog() {
  DynologOptions options;
  options.addresses = config_.dynolog_addresses;
  options.port = config_.dynolog_port;
  options.output_folders = config_.dynolog_output_folders;
  options.version = LOCKSTEP_VERSION;
  options.caller_of = [this](std::optional<uint32_t> uid, const std::string& address) {
    const std::string how = "Dynolog's RPC from " + address;
    return api_->access()->IdentifyUser(uid, how).caller;
  };
  ASSIGN_OR_RETURN(dynolog_, DynologServer::Open(options, captures_.get(), kineto_.get()));
  return {};
}

Service::~Service() {
  dynolog_.reset();
  if (api_) api_->CloseStreams();
  if (server_thread_.joinable()) {
    server_->Stop();
    server_thread_.join();
  }
  server_.reset();
}

Status Service::Reload(const DaemonConfig& config) {
  if (server_) RETURN_IF_ERROR(server_->ReloadCertificates());
  const std::pair<const char*, bool> fixed[] = {
      {"socket", config.unix_socket == config_.unix_socket},
      {"listen", config.listen.size() == config_.listen.size() &&
                     std::equal(config.listen.begin(), config.listen.end(), config_.listen.begin(),
                                [](const ListenAddress& a, const ListenAddress& b) { return a == b; })},
      {"tls", IsSameTls(config.tls, config_.tls)},
      {"host_names", config.host_names == config_.host_names},
      {"state", config.state_folder == config_.state_folder},
      {"kineto", config.kineto_name == config_.kineto_name && config.kineto_directories == config_.kineto_directories},
      {"capture", config.output_folder == config_.output_folder &&
                      config.trace_quota_bytes == config_.trace_quota_bytes && config.keep_ns == config_.keep_ns &&
                      config.allow_unsafe_captures == config_.allow_unsafe_captures},
      {"dynolog_rpc", config.dynolog_rpc == config_.dynolog_rpc && config.dynolog_port == config_.dynolog_port &&
                          config.dynolog_addresses == config_.dynolog_addresses &&
                          config.dynolog_output_folders == config_.dynolog_output_folders},
      {"sensors", config.sensors == config_.sensors},
      {"engines", config.engines == config_.engines},
      {"serving", config.serving == config_.serving},
      {"history", config.history == config_.history},
      {"logs", config.log_paths == config_.log_paths},
      {"log.file", config.log_file == config_.log_file}};
  for (const auto& [name, is_same] : fixed) {
    if (!is_same) log_->Write(LogLevel::kWarning, fmt::format("{} has changed: it takes effect with a restart", name));
  }
  api_->SetAccess(std::make_shared<const Access>(config, &users_, &limiter_));
  return {};
}

std::vector<std::string> Service::Listeners() const {
  std::vector<std::string> listeners = {"unix:" + config_.unix_socket};
  const std::vector<uint16_t> ports = server_->listener_ports();
  for (size_t i = 0; i < config_.listen.size(); ++i) {
    listeners.push_back((config_.tls ? "https://" : "http://") + Shown(config_.listen[i], ports.at(i + 1)));
  }
  if (dynolog_) listeners.push_back(fmt::format("dynolog-rpc:{}", dynolog_->port()));
  for (const std::string& socket : kineto_->Sockets()) listeners.push_back(socket);
  return listeners;
}

control::NodeStatus Service::NodeState() const {
  control::NodeStatus status;
  status.host = host_;
  status.version = LOCKSTEP_VERSION;
  status.daemon_pid = ::getpid();
  status.daemon_uid = ::geteuid();
  status.started_unix_ns = started_unix_ns_;
  status.now_unix_ns = UnixNow();
  status.kineto_sockets = kineto_->Sockets();
  if (IsNotEmpty(kBaseConfig)) status.base_config = kBaseConfig;
  status.ptrace_scope = PtraceScope();
  status.may_trace_all = HasPtraceCapability();
  status.allows_unsafe_captures = config_.allow_unsafe_captures;
  return status;
}

std::vector<std::string> Service::Problems() const { return kineto_->Problems(); }

std::vector<MetricSample> Service::Samples() const {
  const KinetoCounters kineto = kineto_->Counters();
  const http::ConnectionCounts connections = server_->connection_counts();
  std::vector<MetricSample> samples;
  const auto add = [&](const char* name, uint64_t value, const char* reason = nullptr) {
    MetricSample sample{name, {}, static_cast<double>(value)};
    if (reason != nullptr) sample.labels.emplace_back("reason", reason);
    samples.push_back(std::move(sample));
  };
  if (history_) {
    add("lockstep_history_bytes", history_->bytes());
    add("lockstep_history_limit_bytes", history_->limit_bytes());
  }
  const CaptureCounts captures = captures_->Counts();
  for (const auto& [when, count] : {std::pair("within", captures.deaths_within), {"after", captures.deaths_after}})
    samples.push_back({"lockstep_capture_deaths_total", {{"when", when}}, static_cast<double>(count)});
  add("lockstep_capture_disk_full_total", captures.disk_full_count);
  add("lockstep_store_bytes", captures.stored_bytes);
  add("lockstep_store_limit_bytes", config_.trace_quota_bytes);
  add("lockstep_store_evicted_bytes_total", captures.evicted_bytes);
  add("lockstep_http_connections", connections.open);
  add("lockstep_http_connections_accepted_total", connections.accepted);
  add("lockstep_http_connections_rejected_total", connections.refused, "refused");
  add("lockstep_http_connections_rejected_total", connections.displaced, "displaced");
  add("lockstep_kineto_datagrams_total", kineto.datagrams);
  add("lockstep_kineto_replies_total", kineto.replies);
  add("lockstep_kineto_deliveries_total", kineto.deliveries);
  add("lockstep_kineto_registrations_total", kineto.registrations);
  add("lockstep_kineto_ended_total", kineto.ended);
  add("lockstep_kineto_dropped_total", kineto.malformed, "malformed");
  add("lockstep_kineto_dropped_total", kineto.unknown_tags, "unknown_tag");
  add("lockstep_kineto_dropped_total", kineto.forged, "forged");
  add("lockstep_kineto_dropped_total", kineto.unanswerable, "unanswerable");
  add("lockstep_kineto_dropped_total", kineto.limited, "limited");
  add("lockstep_kineto_dropped_total", kineto.late, "late");
  add("lockstep_kineto_dropped_total", kineto.withheld, "withheld");
  add("lockstep_kineto_dropped_total", kineto.failed_replies, "failed");
  return samples;
}

}  // namespace lockstep::agent
