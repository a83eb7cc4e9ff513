#include "node/agent/kineto/process_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/nanoseconds.h"
#include "node/agent/kineto/process_client.h"

namespace lockstep::agent {
namespace {

/// Clients look for a reply at 0, 10, 20, 30 and 40 ms after their request (to 80 ms from PyTorch 2.10 on). What cannot
/// be sent before the last look is not sent; what was sent near to it may have been missed.
constexpr int64_t kLateNs = 35 * kMillisecondNs;
constexpr int64_t kMaybeMissedNs = 38 * kMillisecondNs;
/// The stamp is the kernel's and `now` is read after it: only a clock that was set makes it newer.
constexpr int64_t kClockSlackNs = kMillisecondNs;

/// A client polls each 5 s, or each second; after trouble two polls come at once.
constexpr double kRateBurst = 20;
constexpr double kRatePerS = 10;

constexpr int64_t kDefaultPeriodNs = 5 * kSecondNs;
constexpr int64_t kLeastSilenceNs = 3 * kSecondNs;
constexpr int64_t kLeastExpiryNs = 30 * kSecondNs;
constexpr int64_t kSweepNs = kSecondNs;
constexpr int64_t kPendingNs = 60 * kSecondNs;
constexpr uint64_t kMostRefreshPolls = 64;
constexpr size_t kMaxEvents = 65'536;

std::string OfferText(const Offer& offer, int64_t now_unix_ns) {
  if (offer.start_after_ns == 0) return offer.text;
  return offer.text + fmt::format("PROFILE_START_TIME={}\n", (now_unix_ns + offer.start_after_ns) / kMillisecondNs);
}

std::string AddressKey(const Sender& sender) { return fmt::format("{}:", sender.socket_idx) + sender.address; }

}  // namespace

int64_t ProcessTable::Client::PollPeriodNs() const {
  if (poll_count < 3) return kDefaultPeriodNs;
  std::array<int64_t, 5> sorted = intervals_ns;
  const size_t count = std::min<size_t>(poll_count - 1, sorted.size());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return sorted[count / 2];
}

ProcessTable::ProcessTable(ProcessTableOptions options) : options_(std::move(options)) {}
ProcessTable::~ProcessTable() = default;

ProcessTable::Next ProcessTable::Handle(const Arrival& arrival, ReplySink* sink) {
  const Message message = ReadDatagram(arrival.bytes);
  const MutexLock lock(mutex_);
  Next next;
  ++counters_.datagrams;
  if (message.kind == Message::Kind::kMalformed) ++counters_.malformed;
  if (message.kind == Message::Kind::kUnknownTag) ++counters_.unknown_tags;
  if (message.kind != Message::Kind::kPoll && message.kind != Message::Kind::kContext) return next;

  bool is_new = false;
  Client* client = FindOrRegister(arrival, sink, &is_new);
  if (client == nullptr) return next;
  if (is_new) next.new_client = client->serial;
  if (!TakeRate(client, arrival.now_monotonic_ns)) {
    ++counters_.limited;
    return next;
  }
  if (message.kind == Message::Kind::kContext) {
    client->context_device = message.context.device_ordinal;
    if (client->client_pids.empty()) client->client_pids = {message.context.pid};
    if (client->job_id == 0) client->job_id = message.context.job_id;
    const auto count = static_cast<int32_t>(std::count_if(clients_.begin(), clients_.end(), [&](const auto& other) {
      return other.second->context_device == client->context_device && other.second->job_id == client->job_id;
    }));
    const std::string_view payload(reinterpret_cast<const char*>(&count), sizeof(count));
    if (MayReply(client, arrival)) Reply(client, arrival, kContextTag, payload, {}, sink);
    return next;
  }

  NotePoll(client, message.poll, arrival);
  if (!is_new && client->poll_count >= client->next_refresh_poll) {
    // A device is opened, and a worker takes its name, after the first poll: look soon, and then ever less often.
    next.refresh_client = client->serial;
    client->next_refresh_poll = client->poll_count + std::min(client->poll_count, kMostRefreshPolls);
  }
  if (message.poll.is_tracer) {
    AnswerTracer(client, arrival, message.poll.free(), sink);
    return next;
  }
  const uint64_t withheld = counters_.withheld;
  if (!MayReply(client, arrival)) {
    if (counters_.withheld != withheld) next.withheld_client = client->serial;
    return next;
  }
  if (client->offer && message.poll.free() && client->offer->deliver_from_unix_ns <= arrival.now_unix_ns) {
    Reply(client, arrival, kPollTag, OfferText(*client->offer, arrival.now_unix_ns), client->offer->token, sink);
  } else {
    Reply(client, arrival, kPollTag, {}, {}, sink);
  }
  return next;
}

/// It reads replies at any time, so none can be late. It gets a reply even if there is no request, so that it knows
/// that it talks to a lockstepd.
void ProcessTable::AnswerTracer(Client* client, const Arrival& arrival, bool is_free, ReplySink* sink) {
  const uint64_t serial = client->serial;
  if (!client->stop.empty()) {
    const uint64_t failed = counters_.failed_replies;
    Reply(client, arrival, kStopTag, client->stop, {}, sink);
    if (!clients_.contains(serial)) return;  // Nobody reads there any more.
    if (counters_.failed_replies == failed) client->stop.clear();
  }
  const bool is_due = client->offer && is_free && client->offer->deliver_from_unix_ns <= arrival.now_unix_ns;
  if (is_due && !IsKinetoBusy(*client)) {
    Reply(client, arrival, kTracerTag, OfferText(*client->offer, arrival.now_unix_ns), client->offer->token, sink);
  } else {
    Reply(client, arrival, kTracerTag, {}, {}, sink);
  }
}

/// A request of Kineto's in the same process: two profilers do not go together.
bool ProcessTable::IsKinetoBusy(const Client& tracer) const {
  return tracer.sender.pid != 0 && std::any_of(clients_.begin(), clients_.end(), [&](const auto& other) {
           return !other.second->is_tracer && other.second->busy && other.second->sender.pid == tracer.sender.pid;
         });
}

ProcessTable::Client* ProcessTable::FindOrRegister(const Arrival& arrival, ReplySink* sink, bool* is_new) {
  const Sender& sender = arrival.sender;
  const std::string key = AddressKey(sender);
  if (const auto found = by_address_.find(key); found != by_address_.end()) {
    Client* client = clients_.at(found->second).get();
    if (client->sender.pid != sender.pid || (sender.pid == 0 && client->sender.uid != sender.uid)) {
      ++counters_.forged;
      return nullptr;
    }
    if (client->sender.uid == sender.uid) return client;
    // The same process under another user: what its user may do follows.
    Remove(client->serial);
  }
  if (!MakeRoom(sender, sink)) {
    ++counters_.limited;
    return nullptr;
  }
  auto client = std::make_unique<Client>();
  client->serial = ++last_serial_;
  client->sender = sender;
  client->rate_tokens = kRateBurst;
  client->rate_monotonic_ns = arrival.now_monotonic_ns;
  client->first_poll_unix_ns = arrival.sent_unix_ns;
  client->last_poll_unix_ns = arrival.sent_unix_ns;
  client->last_poll_monotonic_ns = arrival.now_monotonic_ns;
  *is_new = true;
  ++counters_.registrations;
  ++uid_counts_[sender.uid];
  ++pid_counts_[sender.pid];
  by_address_.emplace(key, client->serial);
  Client* borrowed = client.get();
  clients_.emplace(client->serial, std::move(client));
  return borrowed;
}

/// Room for one more of this user and process, if need be by letting go a client of the process whose address is dead
/// (it executed another program), or the silent client that polled longest ago.
bool ProcessTable::MakeRoom(const Sender& sender, ReplySink* sink) {
  const auto count = [](const auto& counts, auto key) {
    const auto found = counts.find(key);
    return found == counts.end() ? size_t{0} : found->second;
  };
  const bool pid_full = sender.pid != 0 && count(pid_counts_, sender.pid) >= options_.pid_client_limit;
  const bool uid_full = count(uid_counts_, sender.uid) >= options_.uid_client_limit;
  const bool full = clients_.size() >= options_.client_limit;
  if (!pid_full && !uid_full && !full) return true;
  const Client* oldest = nullptr;
  for (const auto& [serial, client] : clients_) {
    if (pid_full && client->sender.pid != sender.pid) continue;
    if (pid_full && sink->IsGone(client->sender)) {
      oldest = client.get();
      break;
    }
    if (!client->silent || client->offer) continue;
    if (uid_full && client->sender.uid != sender.uid) continue;
    if (oldest == nullptr || client->last_poll_monotonic_ns < oldest->last_poll_monotonic_ns) oldest = client.get();
  }
  if (oldest == nullptr) return false;
  Remove(oldest->serial);
  return true;
}

bool ProcessTable::TakeRate(Client* client, int64_t now_monotonic_ns) {
  const int64_t passed_ns = std::max<int64_t>(now_monotonic_ns - client->rate_monotonic_ns, 0);
  client->rate_monotonic_ns = now_monotonic_ns;
  client->rate_tokens = std::min(
      kRateBurst, client->rate_tokens + kRatePerS * static_cast<double>(passed_ns) / static_cast<double>(kSecondNs));
  if (client->rate_tokens < 1) return false;
  client->rate_tokens -= 1;
  return true;
}

void ProcessTable::NotePoll(Client* client, const PollRequest& poll, const Arrival& arrival) {
  if (client->poll_count > 0) {
    client->intervals_ns[(client->poll_count - 1) % client->intervals_ns.size()] =
        std::max<int64_t>(arrival.sent_unix_ns - client->last_poll_unix_ns, 0);
  }
  ++client->poll_count;
  client->client_pids = poll.pids;
  if (poll.job_id != 0) client->job_id = poll.job_id;
  client->last_poll_unix_ns = arrival.sent_unix_ns;
  client->last_poll_monotonic_ns = arrival.now_monotonic_ns;
  client->silent = false;
  client->is_tracer = poll.is_tracer;
  client->has_steps = (poll.mask & PollRequest::kSteps) != 0;
  client->note = poll.note;
  NoteMask(client, !poll.free(), arrival.now_unix_ns);
}

void ProcessTable::NoteMask(Client* client, bool busy, int64_t now_unix_ns) {
  if (busy == client->busy) return;
  client->busy = busy;
  if (busy) client->delivered_token.clear();
  Emit(*client, busy ? RegistryEvent::Kind::kBusy : RegistryEvent::Kind::kFree, now_unix_ns);
}

bool ProcessTable::MayReply(Client* client, const Arrival& arrival) {
  const int64_t age_ns = options_.wall_clock_ns() - arrival.sent_unix_ns;
  if (age_ns > kLateNs || age_ns < -kClockSlackNs) {
    ++counters_.late;
    return false;
  }
  if (client->owed_silence > 0) {
    --client->owed_silence;
    ++counters_.withheld;
    return false;
  }
  return true;
}

void ProcessTable::Reply(Client* client, const Arrival& arrival, std::string_view tag, std::string_view payload,
                         const std::string& token, ReplySink* sink) {
  const auto header = WriteHeader(tag, payload.size());
  const ReplySink::Outcome outcome = sink->Send(client->sender, header, payload);
  const int64_t now_unix_ns = options_.wall_clock_ns();
  if (outcome != ReplySink::Outcome::kSent) {
    ++counters_.failed_replies;
    // The process no longer reads its socket. Remove frees the client.
    if (outcome == ReplySink::Outcome::kGone) Remove(client->serial);
    return;
  }
  ++counters_.replies;
  // This thread was held up in between: the client may read this at its next poll, which then needs no second one.
  if (!client->is_tracer && now_unix_ns - arrival.sent_unix_ns > kMaybeMissedNs) ++client->owed_silence;
  if (token.empty()) return;
  ++counters_.deliveries;
  client->delivered_token = token;
  client->pending_until_unix_ns =
      client->offer->pending_until_unix_ns != 0 ? client->offer->pending_until_unix_ns : now_unix_ns + kPendingNs;
  client->offer.reset();
  Emit(*client, RegistryEvent::Kind::kDelivered, now_unix_ns, client->delivered_token);
}

void ProcessTable::OweSilence(uint64_t serial) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(serial);
  if (found != clients_.end()) found->second->owed_silence = std::max(found->second->owed_silence, 1);
}

void ProcessTable::SetDetails(uint64_t serial, proc::ProcessDetails details, bool gone) {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(serial);
  if (found == clients_.end()) return;
  Client* client = found->second.get();
  if (gone) {
    Remove(serial);
    return;
  }
  const bool first = !client->published();
  if (!first && client->details != nullptr && client->details->start_ticks != details.start_ticks) return;
  client->details = std::make_shared<const proc::ProcessDetails>(std::move(details));
  if (!first) return;
  // Where the pid cannot be seen, the address is all that there is to tell it by; it is random and lives as long.
  std::string id = client->sender.pid != 0 ? fmt::format("{}-{}", client->sender.pid, client->details->start_ticks)
                                           : fmt::format("0-{}", std::hash<std::string>()(AddressKey(client->sender)));
  if (client->is_tracer) id += "-steps";
  const std::string first_choice = id;
  for (int extra = 2; by_id_.contains(id); ++extra) id = fmt::format("{}-{}", first_choice, extra);
  client->id = id;
  by_id_.emplace(std::move(id), serial);
  Emit(*client, RegistryEvent::Kind::kRegistered, options_.wall_clock_ns());
  if (client->busy) Emit(*client, RegistryEvent::Kind::kBusy, options_.wall_clock_ns());
}

void ProcessTable::End(uint64_t serial, control::ProcessEnd end) {
  const MutexLock lock(mutex_);
  Remove(serial, end);
}

void ProcessTable::Remove(uint64_t serial, std::optional<control::ProcessEnd> end) {
  const auto found = clients_.find(serial);
  if (found == clients_.end()) return;
  const Client& client = *found->second;
  const int64_t now_unix_ns = options_.wall_clock_ns();
  Emit(client, RegistryEvent::Kind::kEnded, now_unix_ns, {}, end.value_or(control::ProcessEnd{.unix_ns = now_unix_ns}));
  ++counters_.ended;
  if (--uid_counts_[client.sender.uid] == 0) uid_counts_.erase(client.sender.uid);
  if (--pid_counts_[client.sender.pid] == 0) pid_counts_.erase(client.sender.pid);
  by_address_.erase(AddressKey(client.sender));
  if (client.published()) by_id_.erase(client.id);
  ended_.emplace_back(serial, client.sender);
  clients_.erase(found);
}

void ProcessTable::Emit(const Client& client, RegistryEvent::Kind kind, int64_t unix_ns, std::string token,
                        control::ProcessEnd end) {
  // Before a client is published, no other thread knows it. If a listener never takes its events, they do not pile up.
  if (!client.published() || events_.size() >= kMaxEvents) return;
  events_.push_back({.kind = kind, .process_id = client.id, .token = std::move(token), .unix_ns = unix_ns, .end = end});
}

ProcessTable::Swept ProcessTable::Sweep(int64_t now_monotonic_ns) {
  const MutexLock lock(mutex_);
  Swept swept;
  // After this process was stopped itself, the silence was its own.
  const bool was_stopped = last_sweep_monotonic_ns_ != 0 && now_monotonic_ns - last_sweep_monotonic_ns_ > 3 * kSweepNs;
  std::vector<uint64_t> expired;
  for (auto& [serial, client] : clients_) {
    if (was_stopped) client->last_poll_monotonic_ns = now_monotonic_ns;
    const int64_t quiet_ns = now_monotonic_ns - client->last_poll_monotonic_ns;
    const int64_t patience_ns = std::max(3 * client->PollPeriodNs() + kSecondNs, kLeastSilenceNs);
    if (quiet_ns <= patience_ns) continue;
    if (!client->silent) {
      client->silent = true;
      Emit(*client, RegistryEvent::Kind::kSilent, options_.wall_clock_ns());
    }
    if (client->sender.pid != 0) {
      swept.silent_clients.push_back(serial);
    } else if (quiet_ns > std::max(patience_ns, kLeastExpiryNs)) {
      expired.push_back(serial);
    }
  }
  for (const uint64_t serial : expired) Remove(serial);
  last_sweep_monotonic_ns_ = clients_.empty() ? 0 : now_monotonic_ns;
  if (!clients_.empty()) swept.next_monotonic_ns = now_monotonic_ns + kSweepNs;
  return swept;
}

std::optional<Sender> ProcessTable::FindSender(uint64_t serial) const {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(serial);
  return found == clients_.end() ? std::nullopt : std::optional(found->second->sender);
}

std::shared_ptr<const proc::ProcessDetails> ProcessTable::FindDetails(uint64_t serial) const {
  const MutexLock lock(mutex_);
  const auto found = clients_.find(serial);
  return found == clients_.end() ? nullptr : found->second->details;
}

bool ProcessTable::has_events() const {
  const MutexLock lock(mutex_);
  return !events_.empty();
}

void ProcessTable::CountUnanswerable() {
  const MutexLock lock(mutex_);
  ++counters_.datagrams;
  ++counters_.unanswerable;
}

std::vector<std::pair<uint64_t, Sender>> ProcessTable::TakeEnded() {
  const MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

std::vector<RegistryEvent> ProcessTable::TakeEvents() {
  const MutexLock lock(mutex_);
  return std::exchange(events_, {});
}

KinetoCounters ProcessTable::Counters() const {
  const MutexLock lock(mutex_);
  return counters_;
}

size_t ProcessTable::client_count() const {
  const MutexLock lock(mutex_);
  return clients_.size();
}

}  // namespace lockstep::agent
