#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/http/connection.h"
#include "base/http/connection_table.h"
#include "base/http/file_part.h"
#include "base/http/http_server.h"
#include "base/http/peer.h"
#include "base/http/request_reader.h"
#include "base/http/response_header.h"

namespace lockstep::http {

/// What all connections of a server share. Outlives them.
struct ServerState {
  ServerState(const ServerOptions& options, Handler answer)
      : handler(std::move(answer)),
        rules{options.limits, options.takes_bodies, options.host_names, options.refuse},
        table(options.limits) {}

  const Handler handler;
  const RequestRules rules;
  ConnectionTable table;
  std::atomic<size_t> answer_count = 0;  ///< Answers under way; streams of events aside.
  std::atomic<size_t> body_bytes = 0;    ///< Held of all requests' bodies.
  std::atomic<bool> stopping = false;
};

/// One connection: reads a request, has it answered, sends the answer, again. All its steps run on the connection's
/// strand; it lives as long as one of them is to come.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `id` was counted in, and is counted out when this ends.
  Session(std::unique_ptr<Connection> connection, ConnectionEnds ends, ServerState& state, ConnectionTable::Id id);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Start();

 private:
  using IoError = boost::system::error_code;

  void Read();
  void Heard(IoError error, size_t count);
  void Look();
  bool AllowsBody();
  void CountBody(size_t held_bytes);
  void Wait();

  void Answer();
  void Send(Response response);
  void SendFile(Response response);
  void Write(const Response& response, const Framing& framing, std::shared_ptr<const std::string> body, FilePart part);
  void Sent(IoError error);
  void DrainAndClose();
  void Drain(size_t drained_bytes);
  void Close();

  const std::unique_ptr<Connection> connection_;
  ServerState& state_;
  const ServerLimits& limits_;
  const ConnectionTable::Id id_;
  ConnectionEnds ends_;
  std::unique_ptr<RequestReader> reader_;  ///< Made after the handshake, which tells who the peer is.
  RequestReader::State deadline_of_ = RequestReader::State::kHeader;  ///< What the deadline that runs is for.
  std::vector<char> window_;                                          ///< What is read into; small while idle.
  size_t counted_body_bytes_ = 0;                                     ///< In ServerState::body_bytes.
  std::function<void()> on_sent_;
  bool is_head_ = false;
  bool keep_alive_ = false;
  bool is_refused_ = false;
  bool is_answering_ = false;
};

}  // namespace lockstep::http
