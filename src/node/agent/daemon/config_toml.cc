#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/nanoseconds.h"
#include "base/nearest.h"
#include "node/agent/daemon/config.h"

namespace lockstep::agent {
namespace {

constexpr int64_t kMaxHours = 24 * 366;
constexpr int64_t kMaxGibibytes = int64_t{1} << 30;
constexpr int64_t kMostGpus = 64;
constexpr int64_t kMostRetrySeconds = 24 * 3600;
constexpr int64_t kMostEnginePeriodSeconds = 300;
constexpr int64_t kMostSeries = 10'000'000;
constexpr double kMostObjectiveSeconds = 24 * 3600;
constexpr int64_t kMostFineHours = 24;
constexpr int64_t kMostCoarseHours = 24 * 31;
constexpr int64_t kMostHistoryMebibytes = 1024;
constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kGibibyte = int64_t{1} << 30;

/// A key's value, and where it stands.
struct Entry {
  const toml::node& node;
  const std::string& file;
  std::string name;  ///< "tls.certificate".

  Error Fail(const std::string& what) const { return At(node.source(), file, fmt::format("{} {}", name, what)); }
  static Error At(const toml::source_region& source, const std::string& file, const std::string& what) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}:{}:{}: {}", file, source.begin.line, source.begin.column, what)};
  }

  Result<std::string> Text() const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    return Fail("is not a string");
  }
  Result<bool> Bool() const {
    if (const auto value = node.value_exact<bool>()) return *value;
    return Fail("is neither true nor false");
  }
  Result<int64_t> Int(int64_t least, int64_t most) const {
    const auto value = node.value_exact<int64_t>();
    if (!value) return Fail("is not a whole number");
    if (*value < least || *value > most) return Fail(fmt::format("is {}, outside {} .. {}", *value, least, most));
    return *value;
  }
  /// A time, more than 0.
  Result<double> Seconds(double most) const {
    const auto value = node.is_integer() ? node.value<double>() : node.value_exact<double>();
    if (!value) return Fail("is not a number of seconds");
    if (!(*value > 0 && *value <= most)) return Fail(fmt::format("is {}, not above 0 and at most {}", *value, most));
    return *value;
  }
  Result<std::vector<std::string>> Texts() const {
    const toml::array* list = node.as_array();
    if (list == nullptr) return Fail("is not a list of strings");
    std::vector<std::string> texts;
    for (const toml::node& element : *list) {
      const auto value = element.value_exact<std::string>();
      if (!value) return Fail("is not a list of strings");
      texts.push_back(*value);
    }
    return texts;
  }
  Result<std::string> OneOf(const std::vector<std::string>& words) const {
    ASSIGN_OR_RETURN(std::string word, Text());
    if (std::find(words.begin(), words.end(), word) != words.end()) return word;
    return Fail(fmt::format("is '{}', not one of {}", word, fmt::join(words, ", ")));
  }
};

template <typename T>
Status Put(Result<T> value, T* out) {
  if (!value) return std::move(value).error();
  *out = std::move(*value);
  return {};
}

using Reader = std::function<Status(const Entry&)>;
using Keys = std::map<std::string, Reader>;

Reader Text(std::string* out) {
  return [out](const Entry& entry) { return Put(entry.Text(), out); };
}
Reader Texts(std::vector<std::string>* out) {
  return [out](const Entry& entry) { return Put(entry.Texts(), out); };
}
Reader Bool(bool* out) {
  return [out](const Entry& entry) { return Put(entry.Bool(), out); };
}

// "15m": a whole number and s, m, h or d; "0" is nothing.
Reader Duration(int64_t least_ns, int64_t most_ns, int64_t* out) {
  return [least_ns, most_ns, out](const Entry& entry) -> Status {
    ASSIGN_OR_RETURN(const std::string text, entry.Text());
    constexpr int64_t kMostCount = 1'000'000;
    int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    const std::string unit(end, static_cast<const char*>(text.data() + text.size()));
    const std::map<std::string, int64_t> units = {
        {"s", kHourNs / 3600}, {"m", kHourNs / 60}, {"h", kHourNs}, {"d", 24 * kHourNs}};
    const bool is_nothing = count == 0 && unit.empty();
    if (error != std::errc() || count < 0 || count > kMostCount || (!units.contains(unit) && !is_nothing)) {
      return entry.Fail(fmt::format("is '{}', and no time such as 90s, 15m, 6h or 0", text));
    }
    const int64_t value_ns = is_nothing ? 0 : count * units.at(unit);
    if (value_ns < least_ns || value_ns > most_ns) {
      return entry.Fail(
          fmt::format("is {}, outside {}s .. {}s", text, least_ns / (kHourNs / 3600), most_ns / (kHourNs / 3600)));
    }
    *out = value_ns;
    return {};
  };
}

/// `unit`: what one of them is in `out`.
template <typename T>
Reader Number(int64_t least, int64_t most, T* out, int64_t unit = 1) {
  return [=](const Entry& entry) -> Status {
    ASSIGN_OR_RETURN(const int64_t count, entry.Int(least, most));
    *out = static_cast<T>(count * unit);
    return {};
  };
}

Status ReadTable(const toml::table& table, const std::string& file, const std::string& prefix, const Keys& keys) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto reader = keys.find(name);
    if (reader == keys.end()) {
      std::vector<std::string> known;
      for (const auto& [other, unused] : keys) known.push_back(other);
      return Entry::At(key.source(), file, fmt::format("unknown key '{}{}'{}", prefix, name, DidYouMean(name, known)));
    }
    RETURN_IF_ERROR(reader->second(Entry{node, file, prefix + name}));
  }
  return {};
}

Reader Section(Keys keys) {
  return [keys = std::move(keys)](const Entry& entry) -> Status {
    const toml::table* table = entry.node.as_table();
    if (table == nullptr) return entry.Fail("is not a section");
    return ReadTable(*table, entry.file, entry.name + ".", keys);
  };
}

Reader Credentials(bool are_tokens, std::vector<Credential>* out) {
  return [are_tokens, out](const Entry& entry) -> Status {
    const toml::array* list = entry.node.as_array();
    if (list == nullptr) return entry.Fail(fmt::format("is not a list of sections: write [[{}]]", entry.name));
    out->clear();
    for (const toml::node& element : *list) {
      const toml::table* table = element.as_table();
      if (table == nullptr) return entry.Fail("is not a list of sections");
      Credential credential;
      credential.role = Role::kNone;
      Keys keys = {
          {"name", Text(&credential.name)},
          {"user", Text(&credential.user)},
          {"role", [&](const Entry& role) -> Status {
             ASSIGN_OR_RETURN(const std::string word, role.OneOf({"read", "capture", "admin"}));
             credential.role = word == "read" ? Role::kRead : word == "capture" ? Role::kCapture : Role::kAdmin;
             return {};
           }}};
      if (are_tokens) keys["file"] = Text(&credential.token_file);
      RETURN_IF_ERROR(ReadTable(*table, entry.file, entry.name + ".", keys));
      const auto require = [&](const char* name, bool is_there) -> Status {
        if (is_there) return {};
        return Entry::At(element.source(), entry.file, fmt::format("[[{}]] needs {}", entry.name, name));
      };
      RETURN_IF_ERROR(require("name", !credential.name.empty()));
      RETURN_IF_ERROR(require("role", credential.role != Role::kNone));
      if (are_tokens) RETURN_IF_ERROR(require("file", !credential.token_file.empty()));
      const bool is_taken =
          std::any_of(out->begin(), out->end(), [&](const Credential& other) { return other.name == credential.name; });
      if (is_taken) {
        return Entry::At(element.source(), entry.file,
                         fmt::format("there are two [[{}]] named '{}'", entry.name, credential.name));
      }
      out->push_back(std::move(credential));
    }
    return {};
  };
}

Reader Engines(std::vector<EngineEndpoint>* out) {
  return [out](const Entry& entry) -> Status {
    const toml::array* list = entry.node.as_array();
    if (list == nullptr) return entry.Fail(fmt::format("is not a list of sections: write [[{}]]", entry.name));
    out->clear();
    for (const toml::node& element : *list) {
      const toml::table* table = element.as_table();
      if (table == nullptr) return entry.Fail("is not a list of sections");
      EngineEndpoint engine;
      bool has_kind = false;
      const Keys keys = {{"url", Text(&engine.url)},
                         {"kind",
                          [&](const Entry& kind) -> Status {
                            ASSIGN_OR_RETURN(const std::string word, kind.OneOf({"vllm", "sglang", "triton"}));
                            engine.kind = *EngineKindOf(word);
                            has_kind = true;
                            return {};
                          }},
                         {"job", Text(&engine.job)},
                         {"model", Text(&engine.model)},
                         {"token_file", Text(&engine.token_file)}};
      RETURN_IF_ERROR(ReadTable(*table, entry.file, entry.name + ".", keys));
      if (engine.url.empty() || !has_kind) {
        return Entry::At(element.source(), entry.file, fmt::format("[[{}]] needs url and kind", entry.name));
      }
      out->push_back(std::move(engine));
    }
    return {};
  };
}

Reader Objective(std::optional<double>* out) {
  return [out](const Entry& entry) -> Status {
    ASSIGN_OR_RETURN(*out, entry.Seconds(kMostObjectiveSeconds));
    return {};
  };
}

Keys AllKeys(DaemonConfig* config) {
  const auto tls = [config](std::string http::TlsFiles::*member) -> Reader {
    return [config, member](const Entry& entry) { return Put(entry.Text(), &((*config->tls).*member)); };
  };
  const Keys tls_keys = {{"certificate", tls(&http::TlsFiles::certificate)},
                         {"key", tls(&http::TlsFiles::key)},
                         {"client_authority", tls(&http::TlsFiles::client_authority)},
                         {"requires_client_certificate", [config](const Entry& entry) {
                            return Put(entry.Bool(), &config->tls->requires_client_certificate);
                          }}};
  return {
      {"socket", Text(&config->unix_socket)},
      {"listen",
       [config](const Entry& entry) -> Status {
         ASSIGN_OR_RETURN(const std::vector<std::string> texts, entry.Texts());
         config->listen.clear();
         for (const std::string& text : texts) {
           Result<ListenAddress> address = ParseListenAddress(text);
           if (!address) return entry.Fail("has " + address.error().message);
           config->listen.push_back(*address);
         }
         return {};
       }},
      {"host_names", Texts(&config->host_names)},
      {"insecure_no_auth", Bool(&config->insecure_no_auth)},
      {"capture_group", Text(&config->capture_group)},
      {"state", Text(&config->state_folder)},
      {"tls",
       [config, tls_keys](const Entry& entry) -> Status {
         config->tls.emplace();
         RETURN_IF_ERROR(Section(tls_keys)(entry));
         if (config->tls->certificate.empty() || config->tls->key.empty()) {
           return entry.Fail("needs certificate and key");
         }
         if (config->tls->requires_client_certificate && config->tls->client_authority.empty()) {
           return entry.Fail("requires_client_certificate needs client_authority");
         }
         return {};
       }},
      {"token", Credentials(true, &config->tokens)},
      {"certificate", Credentials(false, &config->certificates)},
      {"kineto", Section({{"name", Text(&config->kineto_name)}, {"directories", Texts(&config->kineto_directories)}})},
      {"capture", Section({{"output", Text(&config->output_folder)},
                           {"allow_unsafe", Bool(&config->allow_unsafe_captures)},
                           {"quota_gibibytes", Number(1, kMaxGibibytes, &config->trace_quota_bytes, kGibibyte)},
                           {"keep_hours", Number(1, kMaxHours, &config->keep_ns, kHourNs)}})},
      {"dynolog_rpc", Section({{"enabled", Bool(&config->dynolog_rpc)},
                               {"addresses", Texts(&config->dynolog_addresses)},
                               {"port", Number(0, UINT16_MAX, &config->dynolog_port)},
                               {"output_folders", Texts(&config->dynolog_output_folders)}})},
      {"sensors",
       Section({{"gpu", Bool(&config->sensors.gpu)},
                {"nvml_library", Text(&config->sensors.nvml_library)},
                {"gpus_expected", Number(0, kMostGpus, &config->sensors.gpus_expected)},
                {"host", Bool(&config->sensors.host)},
                {"sysfs", Text(&config->sensors.sysfs)},
                {"logs", Bool(&config->sensors.logs)},
                {"rank_series", Number(1, kMostSeries, &config->sensors.series.of_rank)},
                {"job_series", Number(1, kMostSeries, &config->sensors.series.of_job)},
                {"node_series", Number(1, kMostSeries, &config->sensors.series.of_node)},
                {"find_engines", Bool(&config->sensors.find_engines)},
                {"engine_period_seconds", Number(1, kMostEnginePeriodSeconds, &config->sensors.engine_period_s)},
                {"gpu_retry_seconds", Number(1, kMostRetrySeconds, &config->sensors.gpu_retry_s)}})},
      {"engines", Engines(&config->engines)},
      {"serving", Section({{"slo_request_seconds", Objective(&config->serving.request_s)},
                           {"slo_first_token_seconds", Objective(&config->serving.first_token_s)},
                           {"slo_inter_token_seconds", Objective(&config->serving.inter_token_s)}})},
      {"history",
       Section({{"keep", Duration(0, kMostFineHours * kHourNs, &config->history.keep_ns)},
                {"coarse_keep", Duration(kHourNs / 3600, kMostCoarseHours * kHourNs, &config->history.coarse_keep_ns)},
                {"coarse_every", Duration(kHourNs / 3600, kHourNs, &config->history.coarse_every_ns)},
                {"limit_mebibytes", Number(1, kMostHistoryMebibytes, &config->history.limit_bytes, kMebibyte)}})},
      {"logs", Section({{"paths", Texts(&config->log_paths)}})},
      {"log", Section({{"level",
                        [config](const Entry& entry) {
                          return Put(entry.OneOf({"debug", "info", "warning", "error"}), &config->log_level);
                        }},
                       {"file", Text(&config->log_file)}})},
  };
}

}  // namespace

Status ApplyToml(std::string_view text, const std::string& file, DaemonConfig* config) {
  try {
    const toml::table table = toml::parse(text, file);
    return ReadTable(table, file, "", AllKeys(config));
  } catch (const toml::parse_error& error) {
    return Entry::At(error.source(), file, std::string(error.description()));
  }
}

}  // namespace lockstep::agent
