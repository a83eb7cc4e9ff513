#include "programs/cli/live/follow_otlp.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/now.h"
#include "node/control/client/credentials.h"
#include "present/export/live/otlp_metrics.h"
#include "present/export/live/otlp_sender.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/version.h"

namespace lockstep::cli {
namespace {

constexpr const char* kCollectorGroup = "Collector";
constexpr const char* kPath = "/v1/metrics";
constexpr int64_t kLastWordsNs = 5'000'000'000;
constexpr size_t kMostHeaderBytes = size_t{64} << 10;

/// The host of a URL: what is between "://" or '@' and ':' or '/', without brackets.
std::string_view HostOf(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  const size_t user = url.rfind('@');
  if (user != std::string_view::npos) url.remove_prefix(user + 1);
  if (url.starts_with("[")) return url.substr(1, url.find(']') - 1);
  return url.substr(0, url.find(':'));
}

/// "Name: value" of visible characters.
bool IsHeader(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  return std::all_of(line.begin(), line.end(), [](char c) { return (c >= ' ' && c < 0x7f) || c == '\t'; }) &&
         line.substr(0, colon).find(' ') == std::string_view::npos;
}

}  // namespace

void FollowOtlp::Declare(CLI::App& app) {
  app_ = &app;
  follow_.Declare(app);
  app.option_defaults()->group(kCollectorGroup);
  app.add_option("--endpoint", endpoint_,
                 "With --follow: the collector, such as http://localhost:4318 (OTEL_EXPORTER_OTLP_ENDPOINT)")
      ->type_name("URL");
  app.add_option("--header-file", header_file_,
                 "File with headers to send, one \"Name: value\" per line, mode 0600, such as Authorization")
      ->type_name("FILE");
  app.add_option("--endpoint-ca", authority_file_, "CAs that verify the collector's certificate (the system's)")
      ->type_name("FILE");
  app.add_option("--endpoint-cert", certificate_file_, "Certificate to show to the collector")->type_name("FILE");
  app.add_option("--endpoint-key", key_file_, "The certificate's key, if it is in a separate file")->type_name("FILE");
  app.add_option("--queue", queue_,
                 "Maximum number of requests that wait for the collector; beyond it the oldest is dropped (1000)")
      ->type_name("N")
      ->check(Checked(CLI::Range(uint64_t{1}, uint64_t{100'000})));
}

Status FollowOtlp::Read() {
  RETURN_IF_ERROR(follow_.Read());
  if (!follow_.is_asked_for()) {
    for (const CLI::Option* option : app_->get_options()) {
      if (option->get_group() == kCollectorGroup && option->count() > 0) {
        return Misuse(fmt::format("--{} is for --follow", option->get_lnames().front()));
      }
    }
    return {};
  }
  url_ = endpoint_;
  if (const char* value = std::getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); url_.empty() && value != nullptr) url_ = value;
  if (url_.empty()) return Misuse("export otlp --follow needs --endpoint URL: where the collector is");
  if (!url_.starts_with("http://") && !url_.starts_with("https://")) {
    return Misuse(fmt::format("--endpoint {}: begins with http:// or https://", url_));
  }
  if (HostOf(url_).empty()) return Misuse(fmt::format("--endpoint {}: names no host", url_));
  while (url_.ends_with('/')) url_.pop_back();
  if (!url_.ends_with(kPath)) url_ += kPath;
  if (!header_file_.empty() && url_.starts_with("http://") && !control::IsLoopback(std::string(HostOf(url_)))) {
    return Misuse("--header-file: its headers would be sent unencrypted; use https://");
  }
  return {};
}

Result<std::vector<std::string>> FollowOtlp::ReadHeaders() const {
  std::vector<std::string> headers;
  if (header_file_.empty()) return headers;
  struct stat info = {};
  if (::stat(header_file_.c_str(), &info) != 0) {
    return Error{.code = ErrorCode::kNotFound, .message = "cannot be read", .file = header_file_};
  }
  if ((info.st_mode & 077) != 0) {
    return Error{
        .code = ErrorCode::kPermissionDenied, .message = "others can read it: chmod 600", .file = header_file_};
  }
  if (static_cast<uint64_t>(info.st_size) > kMostHeaderBytes) {
    return Error{.code = ErrorCode::kLimitExceeded, .message = "is longer than 64 KiB", .file = header_file_};
  }
  std::ifstream in(header_file_);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    if (!IsHeader(line)) {  // Which is not shown: it is a secret.
      return Error{.code = ErrorCode::kCorruptData, .message = "a line is no \"Name: value\"", .file = header_file_};
    }
    headers.push_back(line);
  }
  return headers;
}

Result<int> FollowOtlp::Run(bool is_quiet, Console& console) const {
  export_live::OtlpSender::Options options;
  options.url = url_;
  ASSIGN_OR_RETURN(options.headers, ReadHeaders());
  options.authority_file = authority_file_;
  options.certificate_file = certificate_file_;
  options.key_file = key_file_;
  options.most_waiting = queue_;
  Mutex told;
  options.tell = [&](const std::string& line) {
    const MutexLock lock(told);
    console.err << "lockstep: " + line + "\n" << std::flush;
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<export_live::OtlpSender> sender,
                   export_live::OtlpSender::Start(std::move(options)));
  const std::string whole = VersionText();  // "lockstep 1.2.3"
  const std::string version = whole.substr(whole.find(' ') + 1);
  std::optional<int64_t> start_ns;
  FollowJob::Sink sink;
  sink.where = "to " + url_;
  sink.take = [&](const live::JobView& job, int64_t unix_ns) -> Status {
    if (!start_ns) start_ns = unix_ns;
    for (export_live::OtlpPayload& payload : export_live::MakeOtlpMetrics(job, unix_ns, *start_ns, version)) {
      sender->Push(std::move(payload));
    }
    return {};
  };
  const Result<int> status = follow_.Run(sink, is_quiet, console);
  const export_live::OtlpSender::Counts counts = sender->Finish(kLastWordsNs);
  if (!status) return status;
  const uint64_t lost = counts.dropped + counts.rejected;
  if (!is_quiet || lost > 0) {
    console.err << fmt::format(
        "{}: {} points delivered{}\n", url_, counts.delivered,
        lost == 0 ? "" : fmt::format(", {} dropped, {} rejected", counts.dropped, counts.rejected));
  }
  return *status == kDone && lost > 0 ? kPartial : *status;
}

}  // namespace lockstep::cli
