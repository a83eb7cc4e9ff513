#include "present/live_site/own_prometheus.h"

#include <crypt.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/base64.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/small_file.h"
#include "present/live_site/access.h"
#include "present/live_site/shipped_files.h"
#include "present/report/json_stream.h"

namespace lockstep::live_site {
namespace {

constexpr const char* kUser = "lockstep";
constexpr int64_t kStartTime = 60 * kSecondNs;
constexpr int64_t kEndTime = 5 * kSecondNs;
// Bounded: it is there to look at what is going on, not to keep it.
constexpr const char* kRetentionTime = "2d";
constexpr const char* kRetentionSize = "2GB";

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

Status WriteFile(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) return Error{ErrorCode::kIo, "cannot be written", path};
  return {};
}

std::string SaidIn(const std::string& log_file) { return ReadSmallFile(log_file, size_t{4} << 20).value_or(""); }

/// As Prometheus keeps passwords: by bcrypt. Cheap, since the password is random.
Result<std::string> HashOf(const std::string& password) {
  const auto data = std::make_unique<crypt_data>();
  std::string setting(CRYPT_GENSALT_OUTPUT_SIZE, '\0');
  if (::crypt_gensalt_rn("$2b$", 4, nullptr, 0, setting.data(), static_cast<int>(setting.size())) == nullptr) {
    return Error{ErrorCode::kUnsupported, "this system's libcrypt knows no bcrypt"};
  }
  const char* hash = ::crypt_r(password.c_str(), setting.c_str(), data.get());
  if (hash == nullptr || hash[0] == '*') return Error{ErrorCode::kIo, "no password could be made"};
  return std::string(hash);
}

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

Result<std::string> PrometheusConfig(const PrometheusSetup& setup, const std::vector<std::string>& rules) {
  for (const control::Endpoint& node : setup.nodes) {
    if (!node.address.empty()) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("Prometheus scrapes nodes at their address, and {} is reached {}: name it with --host{}",
                             node.host, node.tunnel.empty() ? "over a socket" : "through a command",
                             node.tunnel.empty() ? " localhost" : ", or leave --with-prometheus out")};
  }
  const std::string interval = fmt::format("{}ms", setup.interval_ns / kMillisecondNs);
  report::JsonRow row;
  row.Key("global").StartObject().Key("scrape_interval").Text(interval).Key("evaluation_interval").Text(interval);
  row.EndObject().Key("rule_files").List(rules).Key("scrape_configs").StartArray().StartObject();
  row.Key("job_name").Text("lockstep");
  if (!setup.nodes.empty()) {
    const control::Endpoint& any = setup.nodes.front();  // One set of flags is for all.
    row.Key("scheme").Text(any.tls ? "https" : "http");
    if (!any.token_file.empty()) {
      row.Key("authorization").StartObject().Key("credentials_file").Text(Absolute(any.token_file)).EndObject();
    }
    if (any.tls) {
      row.Key("tls_config").StartObject();
      if (!any.authority_file.empty()) row.Key("ca_file").Text(Absolute(any.authority_file));
      if (!any.certificate_file.empty()) {
        row.Key("cert_file").Text(Absolute(any.certificate_file));
        row.Key("key_file").Text(Absolute(any.key_file.empty() ? any.certificate_file : any.key_file));
      }
      row.EndObject();
    }
  }
  row.Key("static_configs").StartArray().StartObject().Key("targets").StartArray();
  for (const control::Endpoint& node : setup.nodes) {
    const bool is_v6 = node.address.find(':') != std::string::npos;
    row.Text(fmt::format("{}{}{}:{}", is_v6 ? "[" : "", node.address, is_v6 ? "]" : "", node.port));
  }
  row.EndArray().EndObject().EndArray().EndObject().EndArray();
  return std::string(row.Finish());
}

Status OwnPrometheus::WriteFiles(const PrometheusSetup& setup) {
  std::vector<std::string> rules;
  if (setup.rules_folder.empty()) {
    for (const char* name : {"lockstep.rules.yml", "lockstep.alerts.yml"}) {
      rules.push_back(folder_.File(name));
      RETURN_IF_ERROR(WriteFile(rules.back(), ShippedFile(name).value_or("")));
    }
  } else {
    std::error_code error;
    if (!std::filesystem::is_directory(setup.rules_folder, error)) {
      return Error{ErrorCode::kNotFound, "--prometheus-rules: is not a folder", setup.rules_folder};
    }
    rules.push_back(Absolute(setup.rules_folder) + "/*.yml");
  }
  ASSIGN_OR_RETURN(const std::string config, PrometheusConfig(setup, rules));
  RETURN_IF_ERROR(WriteFile(folder_.File("prometheus.yml"), config));
  password_ = RandomName();
  ASSIGN_OR_RETURN(const std::string hash, HashOf(password_));
  report::JsonRow web;
  web.Key("basic_auth_users").StartObject().Key(kUser).Text(hash).EndObject();
  return WriteFile(folder_.File("web.yml"), web.Finish());
}

Result<std::unique_ptr<OwnPrometheus>> OwnPrometheus::Start(const PrometheusSetup& setup,
                                                            const std::function<bool()>& pause) {
  std::unique_ptr<OwnPrometheus> own(new OwnPrometheus);
  if (!own->folder_.made()) {
    return Error{ErrorCode::kIo, fmt::format("no folder for Prometheus: {}", std::strerror(errno))};
  }
  RETURN_IF_ERROR(own->WriteFiles(setup));
  own->log_file_ = own->folder_.File("prometheus.log");
  const std::string data = setup.data_folder.empty() ? own->folder_.File("data") : Absolute(setup.data_folder);
  if (!setup.data_folder.empty()) own->log_file_ = data + "/prometheus.log";  // There it can still be read afterwards.
  std::error_code error;
  std::filesystem::create_directories(data, error);
  const UniqueFd log(::open(own->log_file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!log.valid()) {
    return Error{ErrorCode::kIo, fmt::format("cannot be written: {}", std::strerror(errno)), own->log_file_};
  }
  Result<ChildProcess> process = ChildProcess::StartTied(
      {setup.program, "--config.file=" + own->folder_.File("prometheus.yml"),
       "--web.config.file=" + own->folder_.File("web.yml"), "--web.listen-address=127.0.0.1:0",
       "--storage.tsdb.path=" + data, fmt::format("--storage.tsdb.retention.time={}", kRetentionTime),
       fmt::format("--storage.tsdb.retention.size={}", kRetentionSize), "--enable-feature=exemplar-storage"},
      {.output = log.get(), .error = log.get()});
  if (!process && process.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("--with-prometheus needs Prometheus, and there is no program '{}': install it (apt-get "
                             "install prometheus, or https://prometheus.io/download), or name one that runs with "
                             "--prometheus URL",
                             setup.program)};
  }
  if (!process) return std::move(process).error();
  own->process_ = std::move(*process);
  RETURN_IF_ERROR(own->WaitForPort(pause));
  return own;
}

std::optional<uint16_t> ListeningPort(std::string_view log) {
  constexpr std::string_view kSays = "msg=\"Listening on\"";
  constexpr std::string_view kAddress = " address=127.0.0.1:";
  const size_t said = log.find(kSays);
  const size_t end = said == std::string_view::npos ? said : log.find('\n', said);
  if (end == std::string_view::npos) return std::nullopt;  // Not yet, or not the whole line.
  const std::string_view line = log.substr(said, end - said);
  const size_t at = line.find(kAddress);
  if (at == std::string_view::npos) return std::nullopt;
  uint16_t port = 0;
  const auto [stopped, failed] = std::from_chars(line.data() + at + kAddress.size(), line.data() + line.size(), port);
  if (failed != std::errc() || port == 0) return std::nullopt;
  return port;
}

// It is asked for any free port, and says which one it was given.
Status OwnPrometheus::WaitForPort(const std::function<bool()>& pause) {
  const int64_t until_ns = SteadyNow() + kStartTime;
  while (SteadyNow() < until_ns) {
    const bool has_ended = process_.Poll().has_value();
    const std::string said = SaidIn(log_file_);
    if (has_ended) {
      return Error{ErrorCode::kIo, fmt::format("Prometheus ended at once: {}", LastLine(said)), log_file_};
    }
    if (const std::optional<uint16_t> port = ListeningPort(said)) {
      port_ = *port;
      return {};
    }
    if (pause()) return Error{ErrorCode::kCancelled, "Prometheus was not waited for"};
  }
  return Error{
      ErrorCode::kCancelled,
      fmt::format("Prometheus does not listen after {} s: {}", kStartTime / kSecondNs, LastLine(SaidIn(log_file_))),
      log_file_};
}

OwnPrometheus::~OwnPrometheus() {
  if (!process_.running()) return;
  ::kill(process_.pid(), SIGTERM);
  process_.End(kEndTime);
}

std::string OwnPrometheus::authorization() const {
  return "Basic " + EncodeBase64(fmt::format("{}:{}", kUser, password_));
}

std::string OwnPrometheus::url() const {
  return fmt::format("http://{}:{}@127.0.0.1:{}/alerts", kUser, password_, port_);
}

}  // namespace lockstep::live_site
