#include "node/agent/daemon/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/host_name.h"
#include "base/small_file.h"
#include "base/text_scan.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "node/agent/engines/engine_reading.h"

namespace lockstep::agent {
namespace {

constexpr size_t kFileBytes = size_t{1} << 20;
constexpr size_t kTokenLeast = 43;  // 256 bits in base64.
constexpr size_t kSocketPathBytes = 107;
constexpr size_t kMostEngines = 32;
constexpr size_t kKinetoDirectoryBytes = 54;  // Kineto's clients cut what is longer.

Error FileError(const std::string& file, std::string_view doing) {
  const int error = errno;
  const ErrorCode code = error == ENOENT                     ? ErrorCode::kNotFound
                         : error == EACCES || error == EPERM ? ErrorCode::kPermissionDenied
                                                             : ErrorCode::kIo;
  return Error{code, fmt::format("{}: {}", doing, std::strerror(error)), file};
}

// Reads a small file that `is_safe` has nothing against.
Result<std::string> ReadSmallFile(const std::string& file, size_t most, Status (*is_safe)(const struct stat&)) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FileError(file, "cannot be opened");
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return FileError(file, "cannot be examined");
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kInvalidArgument, "is not a regular file", file};
  if (Status safe = is_safe(info); !safe) {
    safe.error().file = file;
    return safe.error();
  }
  std::optional<std::string> text = ReadSome(fd.get(), most + 1);
  if (!text) return FileError(file, "cannot be read");
  if (text->size() > most) return Error{ErrorCode::kLimitExceeded, fmt::format("is longer than {} bytes", most), file};
  return std::move(*text);
}

bool IsOurs(const struct stat& info) { return info.st_uid == 0 || info.st_uid == ::geteuid(); }

Status OthersCannotWrite(const struct stat& info) {
  if (IsOurs(info) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return Error{ErrorCode::kPermissionDenied, "others can write it: give it to root, and chmod go-w"};
}

Status OthersCannotRead(const struct stat& info) {
  if (IsOurs(info) && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return Error{ErrorCode::kPermissionDenied, "others can read it: give it to root or the daemon's user, and chmod 600"};
}

/// A token's one line; empty where it is not printable.
Result<std::string> ReadToken(const std::string& file) {
  ASSIGN_OR_RETURN(std::string token, ReadSmallFile(file, kMostTokenBytes, OthersCannotRead));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool is_plain = std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  return is_plain ? token : std::string();
}

Result<std::string> ReadTokenDigest(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string token, ReadToken(file));
  if (token.size() < kTokenLeast) {
    return Error{ErrorCode::kInvalidArgument,
                 "holds no token of 256 bits (at least 43 printable characters in one line): openssl rand -hex 32",
                 file};
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  ::SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

Result<uint32_t> FindUser(const std::string& name) {
  std::vector<char> buffer(16 * 1024);
  struct passwd entry = {};
  struct passwd* found = nullptr;
  ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return found->pw_uid;
  if (const auto uid = WholeNumber<uint32_t>(name)) return *uid;
  return Error{ErrorCode::kNotFound, fmt::format("user '{}' is unknown on this host", name)};
}

Status ResolveCredential(std::string_view kind, Credential* credential) {
  const auto fail = [&](std::string what) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} '{}': {}", kind, credential->name, what)};
  };
  if (credential->role == Role::kNone) return fail("needs a role: read, capture or admin");
  if (credential->role == Role::kCapture && credential->user.empty()) {
    return fail("role capture needs the user whose processes it may trace; for those of all users the role is admin");
  }
  if (credential->role == Role::kAdmin && !credential->user.empty()) {
    return fail("role admin is for the processes of all users; with a user the role is capture");
  }
  if (!credential->user.empty()) {
    Result<uint32_t> uid = FindUser(credential->user);
    if (!uid) return fail(uid.error().message);
    credential->uid = *uid;
  }
  return {};
}

Status CheckPath(std::string_view what, const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} must be an absolute path, not '{}'", what, path)};
  }
  return {};
}

Status ResolveEngine(EngineEndpoint* engine) {
  ASSIGN_OR_RETURN(const EngineUrl url, ParseEngineUrl(engine->url));
  engine->url = url.url;
  if (engine->job.empty()) {
    engine->job = DefaultEngineJob(url, HostName());
  }
  for (const std::string* label : {&engine->job, &engine->model}) {
    if (label->size() > kMostModelBytes || Printable(*label) != *label) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("the engine at {}: job and model have at most {} printable bytes", engine->url, kMostModelBytes)};
    }
  }
  if (engine->token_file.empty()) return {};
  RETURN_IF_ERROR(CheckPath("an engine's token_file", engine->token_file));
  if (!url.is_encrypted && !url.is_loopback()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the token for {} would be sent unencrypted: use https", engine->url)};
  }
  ASSIGN_OR_RETURN(engine->token, ReadToken(engine->token_file));
  if (!engine->token.empty()) return {};
  return Error{ErrorCode::kInvalidArgument, "holds no token: one line of printable characters", engine->token_file};
}

Status ResolveEngines(std::vector<EngineEndpoint>* engines) {
  if (engines->size() > kMostEngines) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("there are more than {} [[engines]]", kMostEngines)};
  }
  for (auto it = engines->begin(); it != engines->end(); ++it) {
    RETURN_IF_ERROR(ResolveEngine(&*it));
    if (std::any_of(engines->begin(), it, [&](const EngineEndpoint& other) { return other.job == it->job; })) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("two [[engines]] have the job '{}', which would make their series one: name them apart",
                               it->job)};
    }
  }
  return {};
}

Status CheckListeners(const DaemonConfig& config) {
  const bool knows_callers =
      !config.tokens.empty() || (!config.certificates.empty() && config.tls && !config.tls->client_authority.empty());
  for (const ListenAddress& listen : config.listen) {
    if (listen.is_loopback() || config.insecure_no_auth) continue;
    if (!config.tls) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("listening on {} needs [tls], because traffic could be read and changed otherwise; "
                               "--insecure-no-auth allows it all the same",
                               listen.address)};
    }
    if (!knows_callers) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("listening on {} needs a [[token]], or [tls] client_authority and a [[certificate]]; "
                               "--insecure-no-auth lets anyone trace anything",
                               listen.address)};
    }
  }
  return {};
}

}  // namespace

const char* RoleName(Role role) {
  switch (role) {
    case Role::kNone: return "none";
    case Role::kRead: return "read";
    case Role::kCapture: return "capture";
    case Role::kAdmin: return "admin";
  }
  return "none";
}

bool ListenAddress::is_loopback() const { return address == "::1" || address.starts_with("127."); }

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const auto fail = [&] {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is not an IP address with a port, such as 127.0.0.1:9476 or [::1]:9476", text)};
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return fail();
  std::string_view address = text.substr(0, colon);
  const bool in_brackets = address.starts_with('[') && address.ends_with(']') && address.size() > 2;
  if (in_brackets) address = address.substr(1, address.size() - 2);
  ListenAddress listen{std::string(address), 0};
  unsigned char bytes[16];
  if (::inet_pton(in_brackets ? AF_INET6 : AF_INET, listen.address.c_str(), bytes) != 1) return fail();
  const auto port = WholeNumber<uint16_t>(text.substr(colon + 1));
  if (!port) return fail();
  listen.port = *port;
  return listen;
}

DaemonConfig DefaultConfig() {
  DaemonConfig config;
  config.listen = {{"127.0.0.1", 9476}};
  if (::geteuid() == 0) {
    config.unix_socket = "/run/lockstep/lockstepd.sock";
    config.state_folder = "/var/lib/lockstep";
    config.output_folder = "/tmp/lockstep";
    return config;
  }
  // Homes may be shared between nodes: the host's name keeps them apart.
  const std::string host = HostName();
  const std::string private_folder = fmt::format("/tmp/lockstep-{}", ::geteuid());
  const auto variable = [](const char* key) -> std::string {
    const char* value = std::getenv(key);
    return value != nullptr && value[0] == '/' ? value : "";
  };
  const std::string runtime = variable("XDG_RUNTIME_DIR");
  config.unix_socket = runtime.empty() ? fmt::format("{}/{}/lockstepd.sock", private_folder, host)
                                       : runtime + "/lockstep/lockstepd.sock";
  std::string state = variable("XDG_STATE_HOME");
  if (state.empty() && !variable("HOME").empty()) state = variable("HOME") + "/.local/state";
  config.state_folder =
      state.empty() ? fmt::format("{}/{}/state", private_folder, host) : fmt::format("{}/lockstep/{}", state, host);
  config.output_folder = private_folder;
  return config;
}

Status ApplyFile(const std::string& file, DaemonConfig* config) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file, kFileBytes, OthersCannotWrite));
  RETURN_IF_ERROR(ApplyToml(text, file, config));
  config->config_file = file;
  return {};
}

Status ResolveConfig(DaemonConfig* config) {
  RETURN_IF_ERROR(CheckPath("the socket", config->unix_socket));
  if (config->unix_socket.size() > kSocketPathBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a Unix socket's path has at most {} bytes: {}", kSocketPathBytes, config->unix_socket)};
  }
  RETURN_IF_ERROR(CheckPath("the state folder", config->state_folder));
  RETURN_IF_ERROR(CheckPath("the output folder", config->output_folder));
  RETURN_IF_ERROR(CheckPath("sensors.sysfs", config->sensors.sysfs));
  for (const std::string& directory : config->kineto_directories) {
    RETURN_IF_ERROR(CheckPath("a directory of Kineto's sockets", directory));
    if (directory.size() > kKinetoDirectoryBytes) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("PyTorch takes KINETO_IPC_SOCKET_DIR of at most {} bytes: {}", kKinetoDirectoryBytes, directory)};
    }
  }
  if (config->kineto_name.empty() && config->kineto_directories.empty()) {
    return Error{ErrorCode::kInvalidArgument, "without a Kineto socket no process can be traced: set one"};
  }
  RETURN_IF_ERROR(ResolveEngines(&config->engines));
  for (const std::string& path : config->log_paths) RETURN_IF_ERROR(CheckPath("a path of logs", path));
  for (Credential& token : config->tokens) {
    RETURN_IF_ERROR(CheckPath("a token's file", token.token_file));
    RETURN_IF_ERROR(ResolveCredential("token", &token));
    ASSIGN_OR_RETURN(token.token_digest, ReadTokenDigest(token.token_file));
  }
  for (Credential& certificate : config->certificates) RETURN_IF_ERROR(ResolveCredential("certificate", &certificate));
  for (auto it = config->tokens.begin(); it != config->tokens.end(); ++it) {
    if (std::any_of(config->tokens.begin(), it,
                    [&](const Credential& o) { return o.token_digest == it->token_digest; })) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("the token of '{}' is also another entry's", it->name)};
    }
  }
  if (config->tls) {
    for (const std::string* file : {&config->tls->certificate, &config->tls->key}) {
      RETURN_IF_ERROR(CheckPath("[tls] certificate and key", *file));
    }
  }
  return CheckListeners(*config);
}

}  // namespace lockstep::agent
