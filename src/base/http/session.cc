#include "base/http/session.h"

#include <fmt/format.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <optional>

#include "base/http/answer_writer.h"

namespace lockstep::http {
namespace {

using State = RequestReader::State;

constexpr size_t kIdleWindowBytes = 512;  // Most requests are no larger.
constexpr size_t kHeaderWindowBytes = 4096;
constexpr size_t kBodyWindowBytes = size_t{16} << 10;
constexpr auto kDrainTime = std::chrono::seconds(2);

}  // namespace

Session::Session(std::unique_ptr<Connection> connection, ConnectionEnds ends, ServerState& state,
                 ConnectionTable::Id id)
    : connection_(std::move(connection)), state_(state), limits_(state.rules.limits), id_(id), ends_(std::move(ends)) {}

Session::~Session() {
  if (is_answering_) --state_.answer_count;
  CountBody(0);
  state_.table.Leave(id_);
}

void Session::Start() {
  boost::asio::dispatch(connection_->executor(), [self = shared_from_this()] {
    self->Wait();
    self->connection_->ExpireAfter(std::chrono::seconds(self->limits_.header_seconds));
    self->connection_->Handshake([self](IoError error, size_t /*count*/) {
      if (error) return self->Close();
      self->ends_.peer.certificate_name = self->connection_->CertificateName();
      self->reader_ = std::make_unique<RequestReader>(self->state_.rules, self->ends_.peer, self->ends_.local_address);
      self->connection_->ExpireAfter(std::chrono::seconds(self->limits_.header_seconds));
      self->Read();
    });
  });
}

// The connection's place may be given to another from now on.
void Session::Wait() {
  state_.table.Waiting(id_, std::chrono::steady_clock::now(),
                       [executor = connection_->executor(), weak = weak_from_this()] {
                         boost::asio::post(executor, [weak] {
                           const auto self = weak.lock();
                           // A request that was completed in the meantime is still answered.
                           if (self && !self->is_answering_) self->Close();
                         });
                       });
}

// One step of reading, with as much room as the request's part asks for.
void Session::Read() {
  const State state = reader_->state();
  const size_t bytes = state == State::kIdle     ? kIdleWindowBytes
                       : state == State::kHeader ? kHeaderWindowBytes
                                                 : kBodyWindowBytes;
  if (window_.size() != bytes) {
    window_.resize(bytes);
    window_.shrink_to_fit();
  }
  connection_->ReadSome(boost::asio::buffer(window_),
                        [self = shared_from_this()](IoError error, size_t count) { self->Heard(error, count); });
}

void Session::Heard(IoError error, size_t count) {
  if (error) return Close();  // Gone, or too slow.
  reader_->Put({window_.data(), count});
  Look();
}

// Goes on with what the reader has.
void Session::Look() {
  if (!AllowsBody()) reader_->Refuse(503, "Too many requests with bodies are under way; try again.");
  const State state = reader_->state();
  if (state == State::kRefused) CountBody(0);
  if (state == State::kWhole) return Answer();
  if (state == State::kRefused) {
    state_.table.Busy(id_);
    is_refused_ = true;
    is_head_ = false;
    keep_alive_ = false;
    return Send(std::move(reader_->refusal()));
  }
  if (std::exchange(deadline_of_, state) != state) {
    const int seconds = state == State::kIdle     ? limits_.idle_seconds
                        : state == State::kHeader ? limits_.header_seconds
                                                  : limits_.body_seconds;
    connection_->ExpireAfter(std::chrono::seconds(seconds));
  }
  if (!reader_->TakeContinue()) return Read();
  WriteAnswer(*connection_, limits_, "HTTP/1.1 100 Continue\r\n\r\n", nullptr, {},
              [self = shared_from_this()](IoError error) {
                if (error) return self->Close();
                self->connection_->ExpireAfter(std::chrono::seconds(self->limits_.body_seconds));
                self->Read();
              });
}

bool Session::AllowsBody() {
  CountBody(reader_->body_bytes());
  return counted_body_bytes_ == 0 || state_.body_bytes <= limits_.all_bodies_bytes;
}

void Session::CountBody(size_t held_bytes) {
  state_.body_bytes += held_bytes - counted_body_bytes_;  // Unsigned: wraps to a subtraction.
  counted_body_bytes_ = held_bytes;
}

void Session::Answer() {
  state_.table.Busy(id_);
  if (!std::exchange(is_answering_, true)) ++state_.answer_count;
  Request& request = reader_->request();
  is_head_ = request.method == Method::kHead;
  keep_alive_ = reader_->keep_alive() && !state_.stopping;
  Response response;
  try {
    response = state_.handler(request);
  } catch (const std::exception& error) {
    response = state_.rules.Refusal(500, fmt::format("lockstep failed: {}", error.what()));
  }
  request.body = {};
  CountBody(0);
  if (response.status == 200 && MatchesEtag(request.if_none_match, response.etag)) {
    response.status = 304;
    response.body = nullptr;
    response.file.clear();
    response.descriptor = nullptr;
  }
  Send(std::move(response));
}

void Session::Send(Response response) {
  on_sent_ = is_head_ ? nullptr : std::move(response.on_sent);
  if (!std::exchange(is_answering_, true)) ++state_.answer_count;
  Framing framing = {.keep_alive = keep_alive_, .is_http_1_0 = reader_->is_http_1_0()};
  if (response.status != 304 && (response.descriptor || !response.file.empty())) return SendFile(std::move(response));
  if (!response.events) {
    if (response.status != 304) framing.content_length = response.body ? response.body->size() : 0;
    return Write(response, framing, is_head_ ? nullptr : response.body, {});
  }
  keep_alive_ = false;
  framing.keep_alive = false;
  framing.is_chunked = !framing.is_http_1_0;
  if (is_head_) {
    response.events->Abandon();
    return Write(response, framing, nullptr, {});
  }
  if (std::exchange(is_answering_, false)) --state_.answer_count;  // Nobody waits for its end.
  const EventFraming events_framing = framing.is_chunked ? EventFraming::kChunked : EventFraming::kPlain;
  // The last to let go of the stream abandons it: a server that stops drops what it was about to do without a call.
  const std::shared_ptr<EventStream> stream(response.events.get(),
                                            [kept = response.events](EventStream* events) { events->Abandon(); });
  WriteAnswer(*connection_, limits_, HeaderText(response, framing), nullptr, {},
              [self = shared_from_this(), events = stream, events_framing](IoError error) {
                if (error) return self->Close();
                WriteEvents(*self->connection_, self->limits_, events, events_framing,
                            [self](IoError /*end*/) { self->Close(); });
              });
}

void Session::SendFile(Response response) {
  const Result<FilePart> opened = OpenFilePart(response, is_head_ ? std::string_view() : reader_->range());
  if (!opened) {
    on_sent_ = {};
    return Send(state_.rules.Refusal(404, opened.error().message));
  }
  FilePart part = *opened;
  response.headers.emplace_back("Accept-Ranges", "bytes");
  if (part.kind == RangeKind::kUnsatisfiable) {
    on_sent_ = {};
    Response refusal = state_.rules.Refusal(416, fmt::format("The file has {} bytes.", part.file_bytes));
    refusal.headers = response.headers;
    refusal.headers.emplace_back("Content-Range", fmt::format("bytes */{}", part.file_bytes));
    return Send(std::move(refusal));
  }
  if (part.kind == RangeKind::kPart) {
    response.status = 206;
    response.headers.emplace_back("Content-Range",
                                  fmt::format("bytes {}-{}/{}", part.range.begin, part.range.end - 1, part.file_bytes));
  }
  if (part.range.end != part.file_bytes) on_sent_ = {};
  const Framing framing = {.content_length = part.range.end - part.range.begin,
                           .keep_alive = keep_alive_,
                           .is_http_1_0 = reader_->is_http_1_0()};
  if (is_head_) part.file = nullptr;
  Write(response, framing, nullptr, std::move(part));
}

void Session::Write(const Response& response, const Framing& framing, std::shared_ptr<const std::string> body,
                    FilePart part) {
  WriteAnswer(*connection_, limits_, HeaderText(response, framing), std::move(body), std::move(part),
              [self = shared_from_this()](IoError error) { self->Sent(error); });
}

void Session::Sent(IoError error) {
  if (std::exchange(is_answering_, false)) --state_.answer_count;
  if (error) return Close();
  if (on_sent_) std::exchange(on_sent_, {})();
  if (is_refused_ && !state_.stopping) return DrainAndClose();
  if (!keep_alive_ || state_.stopping) return Close();
  Wait();
  deadline_of_ = State::kWhole;  // Any: the next deadline begins now.
  reader_->Next();
  Look();
}

// Closing with bytes unread resets the connection, and the answer may be lost on the way: some of them are read first.
void Session::DrainAndClose() {
  Wait();
  connection_->FinishSending();
  connection_->ExpireAfter(kDrainTime);
  window_.resize(kHeaderWindowBytes);
  Drain(0);
}

void Session::Drain(size_t drained_bytes) {
  connection_->ReadSome(boost::asio::buffer(window_),
                        [self = shared_from_this(), drained_bytes](IoError error, size_t count) {
                          if (error || self->state_.stopping || drained_bytes + count >= self->limits_.drained_bytes)
                            return self->Close();
                          self->Drain(drained_bytes + count);
                        });
}

void Session::Close() { connection_->Close(); }

}  // namespace lockstep::http
