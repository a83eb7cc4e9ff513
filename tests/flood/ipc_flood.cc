// Floods a Kineto socket with random and mutated datagrams, from processes that come, go and change their addresses,
// while a client that behaves well polls. Prints what was sent, how the client fared, and the memory of the process
// that was flooded before and after. Fails when that process died, grew over the limit, or left the client without
// answers. What a busy machine alone does to a client is seen by another one, of an endpoint that nobody floods.
//
//   ipc_flood --datagrams 10000000 --seed 7                  against an endpoint in a process of its own
//   ipc_flood --datagrams 10000000 --name dynolog --pid PID  against a running lockstepd
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "node/agent/kineto/endpoint.h"
#include "node/agent/kineto/testing/kineto_client.h"

namespace {

using namespace lockstep::agent;
using namespace std::chrono_literals;
using lockstep::agent::testing::KinetoClient;

struct Options {
  uint64_t datagrams = 100'000;
  uint32_t seed = 1;
  uint32_t processes = 2;
  std::string name;
  pid_t pid = 0;
  int64_t growth_limit_kib = 8192;
};

/// How a client that behaves well fares.
struct Fare {
  std::atomic<uint64_t> polls;
  std::atomic<uint64_t> answered;
  std::atomic<uint64_t> wrong;
  std::atomic<uint64_t> missed_in_a_row;

  uint64_t missed() const { return polls - answered; }
};

/// In memory that all of the processes share.
struct Shared {
  std::atomic<uint64_t> sent;
  std::atomic<uint64_t> refused;
  std::atomic<uint64_t> addresses;
  Fare client;
  Fare bystander;  ///< The client of the endpoint that nobody floods.
  std::atomic<bool> stop;
  std::atomic<int> ready;        ///< Endpoints.
  std::atomic<int64_t> held_ms;  ///< For so long in sum the machine kept the flooded endpoint's process from running.
  KinetoCounters counters;
};

int64_t ResidentKib(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  return -1;
}

/// The endpoint, alone in its process. `counters`: where its go at the end, if anywhere.
[[noreturn]] void Serve(const std::string& name, Shared* shared, KinetoCounters* counters) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto endpoint = KinetoEndpoint::Create({.name = name, .host = "flood"});
  if (!endpoint) {
    fmt::print(stderr, "{}\n", endpoint.error().message);
    ::_exit(1);
  }
  ++shared->ready;
  while (!shared->stop) {
    const auto slept = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(20ms);
    const auto held = std::chrono::steady_clock::now() - slept - 40ms;
    if (counters != nullptr && held > 0ms)
      shared->held_ms += std::chrono::ceil<std::chrono::milliseconds>(held).count();
  }
  if (counters != nullptr) *counters = (*endpoint)->Counters();
  endpoint->reset();
  ::_exit(0);
}

/// Polls as Kineto does, several times a second, and says when an answer fails to come or is none of its own.
[[noreturn]] void Behave(const std::string& name, const std::atomic<bool>& stop, Fare* fare) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const KinetoClient client(name, "");
  uint64_t missed = 0;
  while (!stop) {
    ++fare->polls;
    const auto reply = client.Poll(3, 9);
    if (reply == std::string()) ++fare->answered;
    if (reply && !reply->empty()) ++fare->wrong;
    missed = reply ? 0 : missed + 1;
    fare->missed_in_a_row = std::max<uint64_t>(fare->missed_in_a_row, missed);
    std::this_thread::sleep_for(150ms);
    if (client.Read()) ++fare->wrong;  // It would be taken for the answer to the next poll.
  }
  ::_exit(0);
}

/// std::mt19937 gives 32 bits in a wider type.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

class Flooder {
 public:
  Flooder(std::string name, uint32_t seed, Shared* shared) : name_(std::move(name)), random_(seed), shared_(shared) {}

  void Send(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      if (clients_.size() < 6 || random_() % 64 == 0) Renew();
      const KinetoClient& client = *clients_[random_() % clients_.size()];
      Make();
      if (client.Send(bytes_)) {
        ++shared_->sent;
      } else {
        ++shared_->refused;
      }
      if (random_() % 8 == 0) client.Read();
    }
  }

 private:
  void Renew() {
    if (clients_.size() >= 6)
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(random_() % clients_.size()));
    clients_.push_back(std::make_unique<KinetoClient>(name_, ""));
    // Waiting in the kernel for room in the server's queue keeps that full.
    ::fcntl(clients_.back()->fd(), F_SETFL, 0);
    ++shared_->addresses;
  }

  void Make() {
    switch (random_() % 8) {
      case 0:  // Noise.
        bytes_.resize(random_() % 600);
        for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random_());
        return;
      case 1:  // A well-formed poll of anybody.
        MakePoll();
        return;
      case 2:
        bytes_ = WriteContext({.device_ordinal = static_cast<int32_t>(random_()),
                               .pid = static_cast<int32_t>(random_()),
                               .job_id = static_cast<int64_t>(random_())});
        break;
      case 3: bytes_ = WriteMessage(random_() % 2 == 0 ? "model_status" : "req", {}); break;
      case 4:  // As long as goes, and longer.
        MakePoll();
        bytes_.resize(bytes_.size() + random_() % 9000);
        break;
      default: MakePoll();
    }
    for (uint32_t change = random_() % 6; change > 0 && !bytes_.empty(); --change)
      bytes_[random_() % std::min<size_t>(bytes_.size(), 64)] = static_cast<std::byte>(random_());
    if (random_() % 4 == 0) bytes_.resize(random_() % (bytes_.size() + 1));
  }

  void MakePoll() {
    PollRequest request{.mask = static_cast<int32_t>(random_() % 4), .job_id = random_() % 3, .pids = {}};
    const uint32_t count = random_() % 50 == 0 ? 1024 : 1 + random_() % 11;
    for (uint32_t i = 0; i < count; ++i) request.pids.push_back(static_cast<int32_t>(random_() % 100'000));
    bytes_ = WritePoll(request);
  }

  std::string name_;
  Random random_;
  Shared* shared_;
  std::vector<std::unique_ptr<KinetoClient>> clients_;
  std::vector<std::byte> bytes_;
};

template <typename F>
pid_t Start(F run) {
  const pid_t pid = ::fork();
  if (pid == 0) run();
  return pid;
}

int Wait(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return status;
}

int Run(const Options& options) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* shared = new (memory) Shared{};
  const bool own = options.name.empty();
  const std::string name = own ? lockstep::agent::testing::UniqueName() : options.name;
  const pid_t server = own ? Start([&] { Serve(name, shared, &shared->counters); }) : options.pid;
  const std::string quiet_name = lockstep::agent::testing::UniqueName();
  const pid_t quiet_server = Start([&] { Serve(quiet_name, shared, nullptr); });
  for (int i = 0; shared->ready < (own ? 2 : 1) && i < 1000; ++i) std::this_thread::sleep_for(10ms);
  const pid_t client = Start([&] { Behave(name, shared->stop, &shared->client); });
  const pid_t bystander = Start([&] { Behave(quiet_name, shared->stop, &shared->bystander); });
  for (int i = 0; shared->client.answered < 3 && i < 1000; ++i) std::this_thread::sleep_for(10ms);

  // A first hundredth warms up what is allocated once.
  const int64_t begin_kib = ResidentKib(server);
  const auto flood = [&](uint64_t count, uint32_t seed) {
    // Processes end and new ones come, so that registrations come and go.
    const uint64_t per_process = std::clamp<uint64_t>(count / options.processes / 20, 500, 20'000);
    uint64_t left = count;
    std::vector<pid_t> running;
    while (left > 0 || !running.empty()) {
      while (left > 0 && running.size() < options.processes) {
        const uint64_t part = std::min(left, per_process);
        left -= part;
        running.push_back(Start([&, part, number = ++seed] {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
          Flooder(name, number, shared).Send(part);
          ::_exit(0);
        }));
      }
      Wait(running.front());
      running.erase(running.begin());
    }
  };
  flood(options.datagrams / 100 + 1, options.seed * 1'000'003);
  const int64_t warm_kib = ResidentKib(server);
  const auto start = std::chrono::steady_clock::now();
  flood(options.datagrams, options.seed * 7'000'003);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Fare& fare = shared->client;
  const uint64_t answered_under_flood = fare.answered;
  for (int i = 0; fare.answered < answered_under_flood + 3 && i < 1000; ++i) std::this_thread::sleep_for(10ms);
  const bool answered_after = fare.answered >= answered_under_flood + 3;
  const int64_t end_kib = ResidentKib(server);
  shared->stop = true;
  for (const pid_t pid : {client, bystander, quiet_server}) Wait(pid);
  const bool alive = own ? Wait(server) == 0 : ::kill(server, 0) == 0;

  fmt::print("sent {} datagrams from {} addresses in {:.1f} s ({:.0f}/s), {} refused by the kernel\n",
             shared->sent.load(), shared->addresses.load(), seconds, static_cast<double>(options.datagrams) / seconds,
             shared->refused.load());
  for (const auto& [who, of] :
       {std::pair("well-behaved client", &fare), {"one that is not flooded", &shared->bystander}}) {
    fmt::print("{}: {} polls, {} answered, {} wrong, at most {} missed in a row\n", who, of->polls.load(),
               of->answered.load(), of->wrong.load(), of->missed_in_a_row.load());
  }
  fmt::print("flooded process: {}, resident {} KiB at first, {} KiB warm, {} KiB after\n", alive ? "alive" : "DEAD",
             begin_kib, warm_kib, end_kib);
  if (own) {
    const KinetoCounters& counters = shared->counters;
    fmt::print(
        "it counted: {} datagrams, {} malformed, {} unknown tags, {} over limits, {} late, {} replies, {} failed "
        "replies, {} registrations, {} ended\n",
        counters.datagrams, counters.malformed, counters.unknown_tags, counters.limited, counters.late,
        counters.replies, counters.failed_replies, counters.registrations, counters.ended);
  }
  const bool grew = options.growth_limit_kib > 0 && end_kib - begin_kib > options.growth_limit_kib;
  // One of ten may be held up by the flood; and whatever the machine does to a client without one, and to the server.
  const bool served =
      answered_after && fare.wrong == 0 &&
      fare.missed() <= fare.polls / 10 + shared->bystander.missed() + static_cast<uint64_t>(shared->held_ms) / 100;
  if (!alive) fmt::print("FAILED: the process ended\n");
  if (grew) fmt::print("FAILED: it grew by {} KiB\n", end_kib - begin_kib);
  if (!served) fmt::print("FAILED: the well-behaved client was not answered as it should be\n");
  return alive && !grew && served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Floods a Kineto socket with random and mutated datagrams.");
  app.add_option("--datagrams", options.datagrams, "How many");
  app.add_option("--seed", options.seed, "Of the random numbers");
  app.add_option("--processes", options.processes, "That send at a time")->check(CLI::Range(1, 64));
  CLI::Option* name = app.add_option("--name", options.name, "Abstract socket name of a running daemon");
  app.add_option("--pid", options.pid, "Its process")->needs(name);
  app.add_option("--growth-limit-kib", options.growth_limit_kib, "Resident memory it may gain; 0: any");
  CLI11_PARSE(app, argc, argv);
  if (!options.name.empty() && options.pid <= 0) {
    fmt::print(stderr, "--name needs the daemon's --pid\n");
    return 2;
  }
  return Run(options);
}
