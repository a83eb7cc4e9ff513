#include "node/live/node_poller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/api/json.h"
#include "node/control/client/fan_out.h"
#include "node/control/client/place.h"
#include "node/control/client/start_plan.h"

namespace lockstep::live {
namespace {

using control::HttpConnection;
using control::HttpReply;

// The first exchange makes the connection; the quicker of the others says how far the clocks are apart.
constexpr int kExchanges = 3;
// Clocks drift: they are compared again after so many looks.
constexpr int kLooksBetweenClocks = 60;
constexpr int64_t kTunnelTimeNs = 30'000'000'000;
// Between two times that a node is asked which does not answer.
constexpr int64_t kShortestPauseNs = kSecondNs;
constexpr int64_t kLongestPauseNs = 10'000'000'000;
constexpr int64_t kReturnTimeNs = 100'000'000;
// What it takes to end a tunnel that did not come up, whose words are the error.
constexpr int64_t kFarewellNs = 3'000'000'000;

Error Refusal(const HttpReply& reply) {
  if (reply.status == 404) {
    return Error{ErrorCode::kUnsupported, "the lockstepd there is too old for this: upgrade it to this version"};
  }
  Error error = control::ReadError(reply.body);
  if (error.code == ErrorCode::kCorruptData) {
    error = {ErrorCode::kIo, fmt::format("the daemon answered {}", reply.status)};
  }
  if (reply.status == 401 || reply.status == 403) error.code = ErrorCode::kPermissionDenied;
  return error;
}

}  // namespace

struct NodePoller::Node {
  control::Endpoint endpoint;
  std::string host;
  std::unique_ptr<HttpConnection> connection;
  std::optional<int64_t> clock_offset_ns;
  int looks_until_clock = 0;

  // Guarded by the poller's lock. The members above belong to the asking thread while `is_asked`, otherwise to the
  // poller's caller.
  bool is_asked = false;           ///< Or waits for it.
  bool has_answered = false;       ///< The last time that it was asked.
  std::optional<Error> error;      ///< What it was then.
  std::optional<NodeLook> newest;  ///< That was not handed out.
  std::string known_host;          ///< `host` as of then.
  int64_t pause_ns = 0;
  int64_t ask_again_ns = 0;

  Result<HttpReply> Get(const char* path, int64_t end_ns) {
    Result<HttpReply> reply = connection->Ask(HttpConnection::Method::kGet, path, "",
                                              std::max<int64_t>(end_ns - SteadyNow(), kMillisecondNs));
    if (reply && reply->status != 200) return Refusal(*reply);
    return reply;
  }

  Status CompareClocks(int64_t end_ns) {
    std::vector<control::ClockExchange> exchanges;
    for (int i = 0; i < kExchanges; ++i) {
      control::ClockExchange exchange;
      exchange.sent_unix_ns = UnixNow();
      ASSIGN_OR_RETURN(const HttpReply reply, Get("/api/v1/status", end_ns));
      exchange.received_unix_ns = UnixNow();
      ASSIGN_OR_RETURN(const control::NodeStatus status, control::ReadNodeStatus(reply.body));
      exchange.node_unix_ns = status.now_unix_ns;
      if (!status.host.empty()) host = status.host;
      if (i > 0) exchanges.push_back(exchange);
    }
    if (const auto clock = control::MeasureClock(exchanges)) clock_offset_ns = clock->Correction();
    looks_until_clock = kLooksBetweenClocks;
    return {};
  }

  Result<HttpReply> Metrics(int64_t end_ns) {
    if (looks_until_clock-- <= 0) RETURN_IF_ERROR(CompareClocks(end_ns));
    return Get("/metrics", end_ns);
  }
};

NodePoller::NodePoller(std::vector<control::Endpoint> endpoints, std::string job_id, size_t parallel)
    : job_id_(std::move(job_id)), parallel_(parallel), heard_threads_(parallel), silent_threads_(parallel) {
  for (control::Endpoint& endpoint : endpoints) {
    auto node = std::make_unique<Node>();
    node->host = node->known_host = endpoint.host;
    node->endpoint = std::move(endpoint);
    nodes_.push_back(std::move(node));
  }
}

NodePoller::~NodePoller() {
  const MutexLock lock(mutex_);
  ends_ = true;
  for (const auto& node : nodes_) {
    if (node->connection != nullptr) node->connection->Stop();
  }
}

NodeLook NodePoller::Ask(Node& node, int64_t deadline_ns) {
  NodeLook look;
  look.place = control::PlaceOf(node.endpoint);
  Status connected;
  if (node.connection == nullptr) {
    Result<std::unique_ptr<HttpConnection>> made = HttpConnection::Open(node.endpoint);
    if (made) {
      const MutexLock lock(mutex_);
      node.connection = std::move(*made);
      if (ends_) node.connection->Stop();
    } else {
      connected = made.error();
    }
  }
  Result<HttpReply> reply =
      connected ? node.Metrics(SteadyNow() + deadline_ns) : Result<HttpReply>(std::move(connected).error());
  look.taken_ns = SteadyNow();
  look.host = node.host;
  look.clock_offset_ns = node.clock_offset_ns;
  if (reply) {
    look.reading = ReadNodeMetrics(reply->body, job_id_);
    return look;
  }
  look.error = reply.error();
  node.looks_until_clock = 0;  // The next answer may come from another machine's daemon, or from a restarted one.
  if (look.error->code == ErrorCode::kIo || look.error->code == ErrorCode::kCancelled) {
    std::unique_ptr<HttpConnection> broken;  // Closed after the lock is released.
    const MutexLock lock(mutex_);
    broken = std::move(node.connection);
  }
  return look;
}

void NodePoller::Begin(Node& node, Standing standing, int64_t deadline_ns) {
  const bool is_heard = standing == Standing::kHeard;
  // The caller waits for a node's first answer, so only later tries give a tunnel more time.
  if (standing == Standing::kSilent && !node.endpoint.tunnel.empty())
    deadline_ns = std::max(deadline_ns, kTunnelTimeNs);
  const int64_t end_ns = SteadyNow() + deadline_ns;
  (is_heard ? heard_threads_ : silent_threads_).Put([this, &node, is_heard, deadline_ns, end_ns] {
    // If many nodes fall silent at once, one look finds all of them: nodes that queue behind them have used up their
    // time as well.
    const int64_t left_ns = is_heard ? end_ns - SteadyNow() : deadline_ns;
    NodeLook look = left_ns > 0 ? Ask(node, left_ns) : NotAsked(node);
    const MutexLock lock(mutex_);
    node.has_answered = !look.error;
    node.error = look.error;
    node.known_host = look.host;
    node.pause_ns = look.error ? std::clamp(2 * node.pause_ns, kShortestPauseNs, kLongestPauseNs) : 0;
    node.ask_again_ns = look.taken_ns + node.pause_ns;
    node.newest = std::move(look);
    node.is_asked = false;
    changed_.notify_all();
  });
}

NodeLook NodePoller::NotAsked(const Node& node) const {
  NodeLook look;
  look.place = control::PlaceOf(node.endpoint);
  look.host = node.host;
  look.taken_ns = SteadyNow();
  look.error = Error{ErrorCode::kCancelled, "was not asked: the time limit was reached first"};
  return look;
}

NodeLook NodePoller::Newest(Node& node) const {
  if (node.newest) {
    NodeLook look = std::move(*node.newest);
    node.newest.reset();
    return look;
  }
  NodeLook look;
  look.host = node.known_host;
  look.place = control::PlaceOf(node.endpoint);
  look.taken_ns = SteadyNow();
  look.is_news = !node.has_answered;
  if (look.is_news) {
    if (!node.error) node.error = Error{ErrorCode::kCancelled, fmt::format("{} has not answered yet", look.place)};
    look.error = node.error;
  }
  return look;
}

std::vector<NodeLook> NodePoller::Look(int64_t deadline_ns) {
  const int64_t begin_ns = SteadyNow();
  std::vector<std::pair<Node*, Standing>> due;
  MutexLock lock(mutex_);
  for (const auto& node : nodes_) {
    if (node->is_asked || (!node->has_answered && begin_ns < node->ask_again_ns)) continue;
    node->is_asked = true;
    due.emplace_back(node.get(), node->has_answered ? Standing::kHeard
                                 : node->error      ? Standing::kSilent
                                                    : Standing::kNew);
  }
  lock.unlock();
  for (const auto& [node, standing] : due) Begin(*node, standing, deadline_ns);
  lock.lock();
  const auto wait_until = [&](int64_t end_ns, const auto& holds) {
    while (!holds() && SteadyNow() < end_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(end_ns - SteadyNow()));
    }
  };
  wait_until(begin_ns + deadline_ns, [&] {
    return std::none_of(nodes_.begin(), nodes_.end(),
                        [](const auto& node) { return node->is_asked && (node->has_answered || !node->error); });
  });
  wait_until(begin_ns + deadline_ns + kFarewellNs, [&] {
    return std::none_of(nodes_.begin(), nodes_.end(),
                        [](const auto& node) { return node->is_asked && !node->has_answered && !node->error; });
  });
  // One that has come back mostly says so at once.
  wait_until(begin_ns + std::min(deadline_ns, kReturnTimeNs), [&] {
    return std::none_of(due.begin(), due.end(), [](const auto& asked) { return asked.first->is_asked; });
  });
  std::vector<NodeLook> looks;
  for (const auto& node : nodes_) looks.push_back(Newest(*node));
  return looks;
}

NodePast NodePoller::AskBack(Node& node, int64_t length_ns, uint64_t points, int64_t deadline_ns) {
  NodePast past;
  past.place = control::PlaceOf(node.endpoint);
  bool is_idle = false;
  {
    const MutexLock lock(mutex_);
    is_idle = node.has_answered && !node.is_asked;
    past.host = node.known_host;
  }
  if (is_idle) past.clock_offset_ns = node.clock_offset_ns;
  if (!is_idle || node.connection == nullptr) {
    past.error = Error{ErrorCode::kFailedPrecondition, "was not asked: it did not answer earlier"};
    return past;
  }
  control::HistoryQuery query;
  query.job_id = job_id_;
  query.since_unix_ns = UnixNow() + node.clock_offset_ns.value_or(0) - length_ns;
  query.points = points;
  const Result<HttpReply> reply = node.Get(control::HistoryPath(query).c_str(), SteadyNow() + deadline_ns);
  past.answered_ns = SteadyNow();
  if (!reply) {
    past.error = reply.error();
    // An answer that is still to come would be taken for the next look's.
    if (past.error->code == ErrorCode::kIo || past.error->code == ErrorCode::kCancelled) node.connection.reset();
    return past;
  }
  Result<control::History> history = control::ReadHistory(reply->body);
  if (history) {
    past.history = std::move(*history);
  } else {
    past.error = history.error();
  }
  return past;
}

std::vector<NodePast> NodePoller::LookBack(int64_t length_ns, uint64_t points, int64_t deadline_ns) {
  std::vector<NodePast> pasts(nodes_.size());
  control::ForEachNode(
      nodes_.size(), parallel_, deadline_ns,
      [&](size_t i, int64_t left_ns) { pasts[i] = AskBack(*nodes_[i], length_ns, points, left_ns); },
      [&](size_t i) {
        {
          const MutexLock lock(mutex_);
          pasts[i].host = nodes_[i]->known_host;
        }
        pasts[i].place = control::PlaceOf(nodes_[i]->endpoint);
        pasts[i].error = Error{ErrorCode::kCancelled, "was not asked: the time limit was reached first"};
      });
  return pasts;
}

}  // namespace lockstep::live
