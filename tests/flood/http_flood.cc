// Sends random and mutated HTTP requests to a real server: its own (HttpServer, in a process of its own), or a running
// lockstepd. Meanwhile asks politely, over and over, and wants an answer each time. Ends with 1 when the server ended,
// a polite request was not answered, a connection hung, or the server's memory grew by more than 8 MiB.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/http/http_server.h"
#include "base/http/testing/test_client.h"
#include "http_requests.h"

namespace lockstep::flood {
namespace {

using std::chrono::steady_clock;

constexpr int64_t kMostGrowthBytes = int64_t{8} << 20;
constexpr int kPatienceMs = 20'000;  // Far beyond any answer; a machine may be busy.
constexpr size_t kFlooders = 4;
#if defined(LOCKSTEP_SANITIZED)
constexpr bool kIsMemoryMeasured = false;  // A sanitizer keeps what was freed.
#else
constexpr bool kIsMemoryMeasured = true;
#endif

struct Target {
  std::optional<uint16_t> port;
  std::string unix_path;
  pid_t pid = 0;  ///< Of the server; 0: not known.

  http::Client Connect(size_t turn) const {
    const bool is_unix = !unix_path.empty() && (!port || turn % 2 == 0);
    return is_unix ? http::Client(unix_path) : http::Client(*port);
  }
};

struct Counts {
  std::atomic<size_t> requests = 0;
  std::atomic<size_t> connections = 0;
  std::atomic<size_t> bytes = 0;
  std::atomic<size_t> hung = 0;
  std::mutex mutex;
  std::map<std::string, size_t> by_status;  // guarded by mutex
};

int64_t ResidentBytes(pid_t pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  int64_t size = 0;
  int64_t resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void CountAnswers(const std::string& heard, Counts* counts) {
  constexpr std::string_view kStart = "HTTP/1.1 ";
  const std::lock_guard<std::mutex> lock(counts->mutex);
  for (size_t at = heard.find(kStart); at != std::string::npos; at = heard.find(kStart, at + 1))
    ++counts->by_status[heard.substr(at + kStart.size(), 3)];
}

void Flood(const Target& target, uint64_t seed, size_t request_count, Counts* counts) {
  RequestMaker maker(seed);
  for (size_t turn = 0; request_count > 0; ++turn) {
    const size_t count = std::min(request_count, maker.Below(4) + 1);
    request_count -= count;
    http::Client client = target.Connect(turn);
    const std::string bytes = maker.Next(count);
    std::string_view rest = bytes;
    bool is_open = client.connected();
    while (is_open && !rest.empty()) {
      const size_t piece = maker.Below(8) == 0 ? maker.Below(rest.size()) + 1 : rest.size();
      is_open = client.Say(rest.substr(0, piece));
      rest.remove_prefix(piece);
    }
    if (maker.Below(16) != 0) {  // The others leave without a word.
      client.Finish();
      const std::string heard = client.Hear(kPatienceMs);
      if (!client.closed()) ++counts->hung;
      CountAnswers(heard, counts);
    }
    counts->requests += count;
    counts->bytes += bytes.size();
    ++counts->connections;
  }
}

/// Whether a polite request is answered.
bool Probe(const Target& target, size_t turn) {
  http::Client client = target.Connect(turn);
  client.Say("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return client.Hear(kPatienceMs).rfind("HTTP/1.1 200", 0) == 0;
}

http::Response Answer(const http::Request& request, const std::string& file) {
  if (request.path == "/-/healthy") return http::TextResponse(200, "well\n");
  if (request.method == http::Method::kPost) return http::TextResponse(200, std::to_string(request.body.size()));
  http::Response response = http::TextResponse(404, "Nothing is here.\n");
  if (request.path == "/metrics") {
    response.body = nullptr;
    response.file = file;
  }
  if (request.path.find("/events") != std::string::npos) {
    response.events = std::make_shared<http::EventStream>();
    response.events->Push("data: one\n\n");
    response.events->Close();
  }
  return response;
}

/// Runs a server until the process is killed; writes its port to `out`.
[[noreturn]] void Serve(const std::string& unix_path, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  http::ServerOptions options;
  options.takes_bodies = true;
  options.listeners.push_back({.unix_path = unix_path});
  const std::string file = unix_path + ".file";
  std::ofstream(file) << std::string(100'000, 'f');
  const auto server =
      http::HttpServer::Open(options, [&](const http::Request& request) { return Answer(request, file); });
  const uint16_t port = server ? (*server)->port() : uint16_t{0};
  if (!server) fmt::print(stderr, "{}\n", server.error().ToString());
  if (::write(out, &port, sizeof(port)) != static_cast<ssize_t>(sizeof(port)) || port == 0) ::_exit(1);
  (*server)->Run();
  ::_exit(0);
}

Result<Target> StartServer() {
  Target target;
  char folder[] = "/tmp/http_flood_XXXXXX";
  int pipe[2] = {};
  if (!::mkdtemp(folder) || ::pipe(pipe) != 0) return Error{.message = "no folder or pipe"};
  target.unix_path = std::string(folder) + "/s.sock";
  target.pid = ::fork();
  if (target.pid == 0) Serve(target.unix_path, pipe[1]);
  uint16_t port = 0;
  ::close(pipe[1]);
  const bool is_there = ::read(pipe[0], &port, sizeof(port)) == static_cast<ssize_t>(sizeof(port)) && port != 0;
  ::close(pipe[0]);
  if (!is_there) return Error{.message = "the server did not start"};
  target.port = port;
  return target;
}

/// The process behind a Unix socket.
pid_t PidBehind(const std::string& unix_path) {
  const http::Client client(unix_path);
  ucred credentials = {};
  socklen_t bytes = sizeof(credentials);
  ::getsockopt(client.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes);
  return credentials.pid;
}

int Run(const Target& target, uint64_t seed, size_t request_count) {
  if (!Probe(target, 0)) {
    fmt::print(stderr, "the server does not answer GET /-/healthy\n");
    return 1;
  }
  const int64_t before_bytes = ResidentBytes(target.pid);
  Counts counts;
  std::atomic<size_t> flooding = kFlooders;
  std::vector<std::jthread> flooders;
  const steady_clock::time_point begin = steady_clock::now();
  for (size_t i = 0; i < kFlooders; ++i) {
    const size_t share = request_count / kFlooders + (i < request_count % kFlooders ? 1 : 0);
    flooders.emplace_back([&, i, share] {
      Flood(target, seed * kFlooders + i, share, &counts);
      --flooding;
    });
  }
  size_t probes = 0;
  size_t unanswered = 0;
  steady_clock::duration slowest = {};
  do {
    const steady_clock::time_point asked = steady_clock::now();
    if (!Probe(target, ++probes)) ++unanswered;
    slowest = std::max(slowest, steady_clock::now() - asked);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (flooding > 0);
  flooders.clear();
  if (!Probe(target, ++probes)) ++unanswered;
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  const int64_t after_bytes = ResidentBytes(target.pid);
  const int64_t growth_bytes = after_bytes - before_bytes;

  fmt::print("{} requests, {} connections, {:.1f} MB in {:.1f} s ({:.0f} requests/s), seed {}\n", counts.requests,
             counts.connections, static_cast<double>(counts.bytes) / 1e6, seconds,
             static_cast<double>(counts.requests) / seconds, seed);
  fmt::print("answers:");
  for (const auto& [status, count] : counts.by_status) fmt::print(" {}: {}", status, count);
  fmt::print("\nprobes: {}, unanswered: {}, slowest: {:.1f} ms; connections that hung: {}\n", probes, unanswered,
             std::chrono::duration<double, std::milli>(slowest).count(), counts.hung);
  const bool is_alive = target.pid == 0 || ::kill(target.pid, 0) == 0;
  const bool is_grown = kIsMemoryMeasured && target.pid != 0 && growth_bytes > kMostGrowthBytes;
  fmt::print("server's memory: {} KiB before, {} KiB after, {:+} KiB{}\n", before_bytes / 1024, after_bytes / 1024,
             growth_bytes / 1024, kIsMemoryMeasured ? "" : " (not judged under a sanitizer)");
  if (!is_alive) fmt::print("the server has ended\n");
  return is_alive && !is_grown && unanswered == 0 && counts.hung == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Floods an HTTP server with random and mutated requests.");
  size_t request_count = 20'000;
  uint64_t seed = 1;
  Target target;
  app.add_option("--requests", request_count, "How many");
  app.add_option("--seed", seed, "The same seed sends the same requests");
  app.add_option("--unix", target.unix_path, "The socket of a running lockstepd, instead of a server of its own");
  app.add_option("--port", target.port, "Its port on 127.0.0.1; both: in turn");
  app.add_option("--pid", target.pid, "Its process, for its memory (known by itself with --unix)");
  CLI11_PARSE(app, argc, argv);
  ::signal(SIGPIPE, SIG_IGN);
  const bool is_own = target.unix_path.empty() && !target.port;
  if (is_own) {
    auto started = StartServer();
    if (!started) {
      fmt::print(stderr, "{}\n", started.error().message);
      return 1;
    }
    target = *started;
  } else if (target.pid == 0 && !target.unix_path.empty()) {
    target.pid = PidBehind(target.unix_path);
  }
  const int status = Run(target, seed, request_count);
  if (!is_own) return status;
  // It must still be there to be ended.
  int ended = 0;
  const bool was_alive = ::waitpid(target.pid, &ended, WNOHANG) == 0;
  ::kill(target.pid, SIGKILL);
  if (was_alive) ::waitpid(target.pid, &ended, 0);
  std::filesystem::remove_all(std::filesystem::path(target.unix_path).parent_path());
  if (!was_alive) fmt::print("the server ended by itself: {:#x}\n", ended);
  return was_alive ? status : 1;
}

}  // namespace
}  // namespace lockstep::flood

int main(int argc, char** argv) { return lockstep::flood::Main(argc, argv); }
