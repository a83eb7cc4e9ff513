#include "node/agent/kineto/endpoint.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "base/nanoseconds.h"
#include "base/timespec.h"
#include "node/agent/kineto/unread_replies.h"
#include "node/proc/process_end.h"

namespace lockstep::agent {
namespace {

constexpr size_t kBatch = 32;
/// One byte more than can be valid, so that longer ones show as such.
constexpr size_t kSlotBytes = kMaxDatagramBytes + 1;
/// After so many batches the other sockets have their turn; epoll comes back to what is left.
constexpr int kMaxBatches = 64;
/// Others need descriptors too; processes beyond are looked at when they fall silent.
constexpr size_t kMaxPidfds = 1024;
constexpr size_t kMaxProblems = 32;
/// By then every process that an earlier daemon has answered has polled.
constexpr int64_t kCheckNs = 60 * kSecondNs;

/// epoll's data: a client's serial, or one of these.
constexpr uint64_t kWakeTag = UINT64_MAX;
constexpr uint64_t kSocketTag = uint64_t{1} << 63;

/// What the kernel says of a datagram besides its bytes.
struct Ancillary {
  std::optional<ucred> credentials;
  int64_t sent_unix_ns = 0;
};

Ancillary ReadAncillary(msghdr* header) {
  Ancillary ancillary;
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS && part->cmsg_len >= CMSG_LEN(sizeof(ucred))) {
      std::memcpy(&ancillary.credentials.emplace(), CMSG_DATA(part), sizeof(ucred));
    } else if (part->cmsg_type == SO_TIMESTAMPNS && part->cmsg_len >= CMSG_LEN(sizeof(timespec))) {
      timespec sent;
      std::memcpy(&sent, CMSG_DATA(part), sizeof(sent));
      ancillary.sent_unix_ns = Nanoseconds(sent);
    } else if (part->cmsg_type == SCM_RIGHTS) {
      // Descriptors are not expected here; if they were kept open, they would use up ours.
      for (size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
        ::close(fd);
      }
    }
  }
  return ancillary;
}

}  // namespace

/// Buffers of one recvmmsg.
struct KinetoEndpoint::Batch {
  // Room only for what is expected: descriptors that a sender adds do not fit.
  static constexpr size_t kControlBytes = CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(timespec));

  std::array<std::array<std::byte, kSlotBytes>, kBatch> bytes;
  std::array<sockaddr_un, kBatch> addresses;
  std::array<iovec, kBatch> parts;
  alignas(cmsghdr) std::array<std::array<char, kControlBytes>, kBatch> controls;
  std::array<mmsghdr, kBatch> headers;

  void Prepare() {
    for (size_t i = 0; i < kBatch; ++i) {
      parts[i] = {.iov_base = bytes[i].data(), .iov_len = bytes[i].size()};
      headers[i] = {};
      headers[i].msg_hdr.msg_name = &addresses[i];
      headers[i].msg_hdr.msg_namelen = sizeof(sockaddr_un);
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
      headers[i].msg_hdr.msg_control = controls[i].data();
      headers[i].msg_hdr.msg_controllen = controls[i].size();
    }
  }
};

Result<std::unique_ptr<KinetoEndpoint>> KinetoEndpoint::Create(const KinetoOptions& options) {
  std::vector<KinetoSocket> sockets;
  if (options.abstract_socket) {
    ASSIGN_OR_RETURN(KinetoSocket socket, BindAbstractSocket(options.name));
    sockets.push_back(std::move(socket));
  }
  for (const std::string& directory : options.directories) {
    ASSIGN_OR_RETURN(KinetoSocket socket, BindDirectorySocket(directory, options.name));
    sockets.push_back(std::move(socket));
  }
  if (sockets.empty())
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "without the abstract socket and without a socket directory no process can register"};
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeTag;
  bool good = epoll.valid() && wake.valid() && ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) == 0;
  for (size_t i = 0; good && i < sockets.size(); ++i) {
    event.data.u64 = kSocketTag | i;
    good = ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, sockets[i].fd.get(), &event) == 0;
  }
  if (!good)
    return Error{.code = ErrorCode::kIo,
                 .message = fmt::format("cannot wait for Kineto's sockets: {}", std::strerror(errno))};
  return std::unique_ptr<KinetoEndpoint>(
      new KinetoEndpoint(options, std::move(sockets), std::move(epoll), std::move(wake)));
}

KinetoEndpoint::KinetoEndpoint(const KinetoOptions& options, std::vector<KinetoSocket> sockets, UniqueFd epoll,
                               UniqueFd wake)
    : sockets_(std::move(sockets)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      table_({.host = options.host,
              .sockets =
                  [this] {
                    std::vector<std::string> names;
                    for (const KinetoSocket& socket : sockets_)
                      names.push_back(socket.directory.empty() ? "abstract" : socket.directory);
                    return names;
                  }(),
              .client_limit = options.client_limit,
              .uid_client_limit = options.uid_client_limit,
              .wall_clock_ns = [] { return ClockNs(CLOCK_REALTIME); }}) {
  details_reader_ = std::make_unique<DetailsReader>(DetailsReader::LookInto("/proc"),
                                                    [this](uint64_t serial, proc::ProcessDetails details, bool gone) {
                                                      table_.SetDetails(serial, std::move(details), gone);
                                                      NotifyListener();
                                                      if (gone) Wake();
                                                    });
  listener_thread_ = std::jthread([this](std::stop_token stop) { CallListener(std::move(stop)); });
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

KinetoEndpoint::~KinetoEndpoint() {
  thread_.request_stop();
  Wake();
  thread_.join();
  details_reader_.reset();
  listener_thread_.request_stop();
  listener_thread_.join();
  for (const KinetoSocket& socket : sockets_) {
    if (!socket.directory.empty()) ::unlink(socket.label.c_str());
  }
}

void KinetoEndpoint::Run(std::stop_token stop) {
  // Replies have a deadline, also on a node whose cores are all at work. Without the privilege it stays as it is.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), -10);
  check_until_monotonic_ns_ = ClockNs(CLOCK_MONOTONIC) + kCheckNs;
  const auto batch = std::make_unique<Batch>();
  std::array<epoll_event, 64> events;
  while (!stop.stop_requested()) {
    int timeout_ms = -1;
    if (next_sweep_monotonic_ns_ != 0) {
      const int64_t left_ns = next_sweep_monotonic_ns_ - ClockNs(CLOCK_MONOTONIC);
      timeout_ms = static_cast<int>(std::clamp<int64_t>(left_ns / kMillisecondNs + 1, 0, 10'000));
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[static_cast<size_t>(i)].data.u64;
      if (tag == kWakeTag) {
        uint64_t ignored;
        [[maybe_unused]] const ssize_t size = ::read(wake_.get(), &ignored, sizeof(ignored));
      } else if ((tag & kSocketTag) != 0) {
        Drain(static_cast<size_t>(tag & ~kSocketTag), batch.get());
      } else {
        End(tag);
      }
    }
    const int64_t now_monotonic_ns = ClockNs(CLOCK_MONOTONIC);
    if (next_sweep_monotonic_ns_ == 0 && table_.client_count() > 0) {
      next_sweep_monotonic_ns_ = now_monotonic_ns + kSecondNs;
    } else if (next_sweep_monotonic_ns_ != 0 && now_monotonic_ns >= next_sweep_monotonic_ns_) {
      Sweep(now_monotonic_ns);
    }
    ForgetEnded();
    NotifyListener();
  }
}

void KinetoEndpoint::End(uint64_t serial) {
  const int64_t now_unix_ns = ClockNs(CLOCK_REALTIME);
  control::ProcessEnd end{.unix_ns = now_unix_ns};
  const auto pidfd = pidfds_.find(serial);
  const auto sender = table_.FindSender(serial);
  if (pidfd != pidfds_.end() && sender) end = proc::ReadProcessEnd(pidfd->second.get(), sender->pid, now_unix_ns);
  table_.End(serial, end);
}

void KinetoEndpoint::Drain(size_t socket_idx, Batch* batch) {
  for (int round = 0; round < kMaxBatches; ++round) {
    batch->Prepare();
    const int count = ::recvmmsg(sockets_[socket_idx].fd.get(), batch->headers.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count <= 0) return;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      mmsghdr& header = batch->headers[i];
      const Ancillary ancillary = ReadAncillary(&header.msg_hdr);
      Arrival arrival;
      arrival.bytes = std::span(batch->bytes[i]).first(std::min<size_t>(header.msg_len, kSlotBytes));
      arrival.sender.socket_idx = socket_idx;
      arrival.sender.address = ReadAddress(batch->addresses[i], header.msg_hdr.msg_namelen);
      arrival.sender.pid = ancillary.credentials ? ancillary.credentials->pid : 0;
      arrival.sender.uid = ancillary.credentials ? ancillary.credentials->uid : UINT32_MAX;
      arrival.now_unix_ns = ClockNs(CLOCK_REALTIME);
      arrival.now_monotonic_ns = ClockNs(CLOCK_MONOTONIC);
      arrival.sent_unix_ns = ancillary.sent_unix_ns != 0 ? ancillary.sent_unix_ns : arrival.now_unix_ns;
      Take(arrival);
    }
    if (static_cast<size_t>(count) < kBatch) return;
  }
}

void KinetoEndpoint::Take(const Arrival& arrival) {
  const KinetoSocket& socket = sockets_[arrival.sender.socket_idx];
  const MayAnswer may = CheckAddress(socket, arrival.sender.address);
  if (may != MayAnswer::kYes) {
    table_.CountUnanswerable();
    if (may == MayAnswer::kForeignPath) {
      const std::string& address = arrival.sender.address;
      AddProblem(
          fmt::format("processes use {} as KINETO_IPC_SOCKET_DIR, and this daemon {}: an answer would abort them; add "
                      "their path as another socket directory",
                      address.substr(0, address.rfind('/')), socket.directory));
    }
    return;
  }
  const ProcessTable::Next next = table_.Handle(arrival, this);
  if (next.new_client != 0) WatchClient(next.new_client, ClockNs(CLOCK_BOOTTIME));
  if (next.new_client != 0 && arrival.now_monotonic_ns < check_until_monotonic_ns_)
    to_check_.push_back(next.new_client);
  if (next.withheld_client != 0) to_check_.push_back(next.withheld_client);
  if (next.refresh_client != 0) RequestRefresh(next.refresh_client);
}

/// After its first reply: nothing of this may delay that.
void KinetoEndpoint::WatchClient(uint64_t serial, int64_t seen_boottime_ns) {
  const auto sender = table_.FindSender(serial);
  if (!sender) return;
  if (sender->pid == 0) {
    table_.SetDetails(serial, {}, false);
    return;
  }
  if (pidfds_.size() < kMaxPidfds) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, sender->pid, 0)));
    if (!pidfd.valid() && errno == ESRCH) {
      table_.End(serial, {.unix_ns = ClockNs(CLOCK_REALTIME)});
      return;
    }
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = serial;
    if (pidfd.valid() && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) == 0)
      pidfds_.emplace(serial, std::move(pidfd));
  }
  details_reader_->Request(
      {.serial = serial, .pid = sender->pid, .uid = sender->uid, .seen_boottime_ns = seen_boottime_ns});
}

void KinetoEndpoint::RequestRefresh(uint64_t serial) {
  const auto sender = table_.FindSender(serial);
  const auto details = table_.FindDetails(serial);
  if (!sender || sender->pid == 0 || details == nullptr) return;
  details_reader_->Request(
      {.serial = serial, .pid = sender->pid, .uid = sender->uid, .refresh = true, .known = *details});
}

void KinetoEndpoint::Sweep(int64_t now_monotonic_ns) {
  const ProcessTable::Swept swept = table_.Sweep(now_monotonic_ns);
  next_sweep_monotonic_ns_ = swept.next_monotonic_ns;
  for (const uint64_t serial : swept.silent_clients) {
    if (!pidfds_.contains(serial)) RequestRefresh(serial);
  }
  CheckQueues();
  details_reader_->Tick(now_monotonic_ns);
  if (details_reader_->hanging_count() > 0) {
    AddProblem(
        "a process's arguments or files cannot be read: what this daemon shows of its user's processes is incomplete");
  }
}

/// A reply that came too late, from the daemon before this one, lies in its client's queue until the next poll, which
/// takes it for its own answer, and so on for ever. A poll without an answer brings the two into step.
void KinetoEndpoint::CheckQueues() {
  if (to_check_.empty()) return;
  const std::unordered_set<std::string> unread = FindUnreadClients();
  for (const uint64_t serial : std::exchange(to_check_, {})) {
    const auto sender = table_.FindSender(serial);
    // One that is reading just now may be among them: it goes without an answer once, which does no harm.
    if (sender && unread.contains(sender->address)) table_.OweSilence(serial);
  }
}

void KinetoEndpoint::ForgetEnded() {
  for (const auto& [serial, sender] : table_.TakeEnded()) {
    pidfds_.erase(serial);
    RemoveClientFile(sockets_[sender.socket_idx], sender.address);
  }
}

ReplySink::Outcome KinetoEndpoint::Send(const Sender& to, std::span<const std::byte> header, std::string_view payload) {
  sockaddr_un address;
  std::array<iovec, 2> parts = {
      iovec{.iov_base = const_cast<std::byte*>(header.data()), .iov_len = header.size()},
      iovec{.iov_base = const_cast<char*>(payload.data()), .iov_len = payload.size()},
  };
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = WriteAddress(to.address, &address);
  message.msg_iov = parts.data();
  message.msg_iovlen = payload.empty() ? 1 : 2;
  // From the socket that was asked, always: a client aborts its process over any other.
  if (::sendmsg(sockets_[to.socket_idx].fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Outcome::kSent;
  return errno == ECONNREFUSED || errno == ENOENT ? Outcome::kGone : Outcome::kFailed;
}

void KinetoEndpoint::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(wake_.get(), &one, sizeof(one));
}

void KinetoEndpoint::Listen(std::function<void(const RegistryEvent&)> listener) {
  const MutexLock lock(listener_mutex_);
  listener_ = std::move(listener);
}

void KinetoEndpoint::NotifyListener() {
  if (!table_.has_events()) return;
  const MutexLock lock(events_mutex_);
  events_pending_ = true;
  events_changed_.notify_one();
}

void KinetoEndpoint::CallListener(std::stop_token stop) {
  MutexLock lock(events_mutex_);
  while (events_changed_.wait(lock, stop, [this]() LOCKSTEP_REQUIRES(events_mutex_) { return events_pending_; })) {
    events_pending_ = false;
    lock.unlock();
    const std::vector<RegistryEvent> events = table_.TakeEvents();
    {
      const MutexLock call(listener_mutex_);
      for (const RegistryEvent& event : events) {
        if (listener_) listener_(event);
      }
    }
    lock.lock();
  }
}

void KinetoEndpoint::AddProblem(std::string problem) {
  const MutexLock lock(problems_mutex_);
  if (problems_.size() < kMaxProblems) problems_.insert(std::move(problem));
}

std::vector<std::string> KinetoEndpoint::Problems() const {
  const MutexLock lock(problems_mutex_);
  return {problems_.begin(), problems_.end()};
}

std::vector<std::string> KinetoEndpoint::Sockets() const {
  std::vector<std::string> labels;
  for (const KinetoSocket& socket : sockets_) labels.push_back(socket.label);
  return labels;
}

}  // namespace lockstep::agent
