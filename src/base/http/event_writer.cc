#include <fmt/format.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "base/http/answer_writer.h"

namespace lockstep::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// What a client may say while it listens; more than a few pipelined requests is nonsense.
constexpr size_t kChatterBytes = size_t{64} << 10;

/// Lives as long as one of its reads, writes and waits is under way. Never touched from a pusher's thread: that one
/// holds a weak pointer and posts.
class EventWriter : public std::enable_shared_from_this<EventWriter> {
 public:
  EventWriter(Connection& connection, const ServerLimits& limits, std::shared_ptr<EventStream> events,
              EventFraming framing, WriteDone done)
      : connection_(connection),
        limits_(limits),
        events_(std::move(events)),
        framing_(framing),
        done_(std::move(done)),
        quiet_(connection.executor()) {}
  ~EventWriter() { events_->Abandon(); }
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void Begin() {
    connection_.ExpireNever();
    WatchForEnd();
    events_->OnChange([executor = connection_.executor(), weak = weak_from_this()] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->Pump();
      });
    });
    Rest();
  }

 private:
  // Sends what is there, if nothing is being sent.
  void Pump() {
    if (is_writing_ || is_over_) return;
    if (events_->is_abandoned()) return Over(asio::error::no_buffer_space);
    bool is_last = false;
    const std::string bytes = events_->Take(&is_last);
    if (!bytes.empty()) return Write(bytes);
    if (!is_last) return Rest();
    if (framing_ == EventFraming::kPlain || is_ended_) return Over({});
    is_ended_ = true;
    WriteRaw("0\r\n\r\n");
  }

  void Write(const std::string& bytes) {
    WriteRaw(framing_ == EventFraming::kChunked ? fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes) : bytes);
  }
  void WriteRaw(std::string bytes) {
    is_writing_ = true;
    quiet_.cancel();
    out_ = std::move(bytes);
    out_begin_ = 0;
    WriteSome();
  }
  void WriteSome() {
    connection_.ExpireAfter(std::chrono::seconds(limits_.write_seconds));  // The read that is under way keeps "never".
    connection_.WriteSome(asio::buffer(out_.data() + out_begin_, out_.size() - out_begin_),
                          [self = shared_from_this()](error_code error, size_t count) {
                            if (self->is_over_) return;
                            if (error) return self->Over(error);
                            self->out_begin_ += count;
                            if (self->out_begin_ < self->out_.size()) return self->WriteSome();
                            self->is_writing_ = false;
                            self->out_ = {};
                            self->Pump();
                          });
  }

  // Nothing is there: a comment goes out after a while.
  void Rest() {
    quiet_.expires_after(std::chrono::seconds(limits_.keep_alive_seconds));
    quiet_.async_wait([self = shared_from_this()](error_code error) {
      if (!error && !self->is_over_ && !self->is_writing_) self->Write(": keep-alive\n\n");
    });
  }

  // A listening client sends nothing; the end of its stream means that it has disconnected.
  void WatchForEnd() {
    connection_.ReadSome(asio::buffer(heard_), [self = shared_from_this()](error_code error, size_t count) {
      if (self->is_over_) return;
      self->heard_bytes_ += count;
      if (error || self->heard_bytes_ > kChatterBytes) return self->Over(asio::error::eof);
      self->connection_.ExpireNever();
      self->WatchForEnd();
    });
  }

  void Over(error_code error) {
    if (std::exchange(is_over_, true)) return;
    events_->Abandon();
    quiet_.cancel();
    done_(error);
  }

  Connection& connection_;
  const ServerLimits& limits_;
  const std::shared_ptr<EventStream> events_;
  const EventFraming framing_;
  const WriteDone done_;
  asio::steady_timer quiet_;
  std::string out_;
  size_t out_begin_ = 0;
  std::array<char, 256> heard_ = {};
  size_t heard_bytes_ = 0;
  bool is_writing_ = false;
  bool is_ended_ = false;  ///< The last chunk has left.
  bool is_over_ = false;
};

}  // namespace

void WriteEvents(Connection& connection, const ServerLimits& limits, std::shared_ptr<EventStream> events,
                 EventFraming framing, WriteDone done) {
  std::make_shared<EventWriter>(connection, limits, std::move(events), framing, std::move(done))->Begin();
}

}  // namespace lockstep::http
