#include "node/inspect/ras_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/text_scan.h"
#include "base/timed_socket_io.h"
#include "base/unique_fd.h"

namespace lockstep::inspect {
namespace {

Error NoAnswer(const RasOptions& options, const std::string& what) {
  return Error{ErrorCode::kIo, fmt::format("RAS at {}: {}", options.address, what)};
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

using AddressInfo = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<AddressInfo> ReadAddress(const RasOptions& options) {
  const auto refuse = [&](const char* why) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("RAS's address '{}': {}", options.address, why)};
  };
  const size_t colon = options.address.rfind(':');
  if (colon == std::string::npos || colon == 0) return refuse("expected HOST:PORT, as NCCL_RAS_ADDR has it");
  std::string host = options.address.substr(0, colon);
  const std::string port = options.address.substr(colon + 1);
  if (port.empty()) return refuse("it has no port");
  if (host == "localhost") host = "127.0.0.1";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;  // Names would need a resolver, which knows no deadline.
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return refuse("expected localhost or an address in numbers, and a port");
  }
  AddressInfo info(found, ::freeaddrinfo);
  if (!options.allow_remote && !IsLoopback(info->ai_addr)) {
    return refuse("it is not on this machine; RAS has no authentication, so other machines are asked only on request");
  }
  return info;
}

/// One connection: lines until STATUS, then all until its end.
class Connection {
 public:
  explicit Connection(const RasOptions& options, int64_t deadline_ns) : options_(options), deadline_ns_(deadline_ns) {}

  Status Open(const addrinfo& address) {
    socket_ = UniqueFd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) return NoAnswer(options_, "no socket");
    const int error = ConnectWithin(socket_.get(), address.ai_addr, address.ai_addrlen, deadline_ns_);
    if (error == 0) return {};
    if (error == ETIME) return NoAnswer(options_, "it does not accept a connection in time");
    if (error == ECONNREFUSED) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("no process listens at {}: no job with NCCL 2.24 or newer, or NCCL_RAS_ENABLE=0",
                               options_.address)};
    }
    return NoAnswer(options_, "cannot connect");
  }

  Status Send(std::string_view line) {
    const int error = SendWithin(socket_.get(), std::string(line) + "\n", deadline_ns_);
    if (error == 0) return {};
    return NoAnswer(options_, error == ETIME ? "it does not read in time" : "it closed the connection");
  }

  /// The next line, without its end.
  Result<std::string> ReadLine() {
    constexpr size_t kLineLimit = 4096;
    while (true) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return line;
      }
      if (buffer_.size() > kLineLimit) {
        return Error{ErrorCode::kCorruptData,
                     fmt::format("the answer from {} is not RAS's: too long a line", options_.address)};
      }
      ASSIGN_OR_RETURN(const bool more, ReadSome());
      if (!more) return NoAnswer(options_, "it closed the connection");
    }
  }

  Result<std::string> ReadAll() {
    while (true) {
      if (buffer_.size() > options_.max_bytes) {
        return Error{ErrorCode::kLimitExceeded,
                     fmt::format("RAS at {}: its answer is above {} bytes", options_.address, options_.max_bytes)};
      }
      ASSIGN_OR_RETURN(const bool more, ReadSome());
      if (!more) return std::move(buffer_);
    }
  }

 private:
  Result<bool> ReadSome() {
    std::array<char, 65536> chunk;
    size_t size = 0;
    const int error = ReceiveWithin(socket_.get(), chunk.data(), chunk.size(), &size, deadline_ns_);
    if (error != 0) return NoAnswer(options_, error == ETIME ? "no complete answer in time" : "the connection broke");
    buffer_.append(chunk.data(), size);
    return size > 0;
  }

  const RasOptions& options_;
  int64_t deadline_ns_;
  UniqueFd socket_;
  std::string buffer_;
};

/// `ask_json` off: the format is not named, as versions before 2.28.7 have only text.
Result<RasAnswer> AskOnce(const RasOptions& options, const addrinfo& address, int64_t deadline_ns, bool ask_json) {
  RasAnswer answer;
  answer.asked_unix_ns = UnixNow();
  Connection connection(options, deadline_ns);
  RETURN_IF_ERROR(connection.Open(address));
  RETURN_IF_ERROR(connection.Send("CLIENT PROTOCOL 2"));
  ASSIGN_OR_RETURN(const std::string hello, connection.ReadLine());
  constexpr std::string_view kHello = "SERVER PROTOCOL ";
  if (!hello.starts_with(kHello)) {
    return Error{ErrorCode::kCorruptData, fmt::format("the answer from {} is not RAS's", options.address)};
  }
  answer.protocol =
      LeadingNumber<decltype(answer.protocol)>(std::string_view(hello).substr(kHello.size())).value_or(answer.protocol);
  // RAS waits so long for other processes; we wait a little longer for it.
  const int64_t seconds = std::max<int64_t>(options.timeout_ns / kSecondNs - 1, 1);
  RETURN_IF_ERROR(connection.Send(fmt::format("TIMEOUT {}", seconds)));
  ASSIGN_OR_RETURN(const std::string taken, connection.ReadLine());
  if (taken != "OK" && !taken.starts_with("ERROR")) {
    return Error{ErrorCode::kCorruptData, fmt::format("the answer from {} is not RAS's", options.address)};
  }
  if (ask_json) {
    RETURN_IF_ERROR(connection.Send("SET FORMAT json"));
    ASSIGN_OR_RETURN(const std::string format, connection.ReadLine());
    answer.is_json = format == "OK";
  }
  RETURN_IF_ERROR(connection.Send("VERBOSE STATUS"));
  ASSIGN_OR_RETURN(answer.text, connection.ReadAll());
  if (answer.text.empty()) return NoAnswer(options, "it closed the connection without an answer");
  return answer;
}

}  // namespace

Result<RasAnswer> AskRas(const RasOptions& options) {
  ASSIGN_OR_RETURN(const AddressInfo address, ReadAddress(options));
  const int64_t deadline_ns = SteadyNow() + options.timeout_ns;
  Result<RasAnswer> answer = AskOnce(options, *address, deadline_ns, true);
  if (answer || answer.error().code != ErrorCode::kIo || SteadyNow() >= deadline_ns) return answer;
  return AskOnce(options, *address, deadline_ns, false);
}

Result<std::vector<RasAnswer>> AskRasTwice(const RasOptions& options, int64_t interval_ns) {
  std::vector<RasAnswer> answers;
  ASSIGN_OR_RETURN(RasAnswer first, AskRas(options));
  answers.push_back(std::move(first));
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<int64_t>(interval_ns, 0)));
  if (Result<RasAnswer> second = AskRas(options)) answers.push_back(std::move(*second));
  return answers;
}

}  // namespace lockstep::inspect
