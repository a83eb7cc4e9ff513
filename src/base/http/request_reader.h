#pragma once

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http/http_message.h"
#include "base/http/server_limits.h"

namespace lockstep::http {

/// What a server takes; see ServerOptions.
struct RequestRules {
  ServerLimits limits = {};
  bool takes_bodies = false;
  std::vector<std::string> host_names = {};
  std::function<Response(int status, std::string sentence)> refuse = {};

  Response Refusal(int status, std::string sentence) const;
};

/// A string that grows with what came, not with what Content-Length promises.
struct GrowingBody {
  using value_type = std::string;
  static uint64_t size(const value_type& body) { return body.size(); }
  class reader {  // the name Beast asks for
   public:
    template <bool is_request, typename Fields>
    reader(boost::beast::http::header<is_request, Fields>& /*header*/, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>& /*length*/, boost::system::error_code& error) { error = {}; }
    template <typename Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      size_t count = 0;
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        count += buffer.size();
      }
      return count;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

/// One connection's requests, from bytes: parsed (by Boost.Beast), bounded, and checked by all that does not need a
/// handler. Does no input or output and knows no time. Not thread-safe.
class RequestReader {
 public:
  enum class State : uint8_t {
    kIdle,     ///< Between requests, and nothing of the next one has come.
    kHeader,   ///< In mid-header.
    kBody,     ///< The header is well, the body is not whole.
    kWhole,    ///< `request` is.
    kRefused,  ///< `refusal` is to be sent and the connection closed: where the next request would begin is unknown.
  };

  /// `rules` is borrowed. `local_address`: the IP address that the client connected to, or empty.
  RequestReader(const RequestRules& rules, Peer peer, std::string local_address);

  State state() const { return state_; }
  /// Takes bytes as they come, in pieces of any size. What comes behind a whole request is kept for Next.
  void Put(std::string_view bytes);
  /// Forgets the request that was whole, and goes on with what came behind it.
  void Next();
  /// Refuses the rest of a body.
  void Refuse(int status, std::string sentence);

  /// Whether the client waits for "100 Continue" before it sends the body. True once.
  bool TakeContinue();
  /// Bytes of the body held so far.
  size_t body_bytes() const { return parser_ ? parser_->get().body().size() : request_.body.size(); }

  // When whole.
  Request& request() { return request_; }
  const std::string& range() const { return range_; }
  bool keep_alive() const { return keep_alive_; }
  // When refused.
  Response& refusal() { return refusal_; }
  // Then too, and false until the header is whole.
  bool is_http_1_0() const { return is_http_1_0_; }

 private:
  void Parse();
  void CheckHeader();
  /// The status and sentence of what is wrong with the header's parts, 0 when nothing is.
  int CheckBody(std::string* sentence);
  int CheckOrigin(std::string* sentence);
  std::string_view Field(boost::beast::http::field field) const;
  size_t Count(boost::beast::http::field field) const;
  void RefuseParse(boost::system::error_code error);
  void BeginRequest();

  const RequestRules& rules_;
  const Peer peer_;
  const std::string local_address_;
  State state_ = State::kIdle;
  std::string pending_;  ///< Not parsed yet.
  std::optional<boost::beast::http::request_parser<GrowingBody>> parser_;
  size_t header_bytes_ = 0;   ///< Parsed of this header.
  size_t framing_bytes_ = 0;  ///< Of this body, chunk headers included.
  bool wants_continue_ = false;
  bool keep_alive_ = false;
  bool is_http_1_0_ = false;
  Request request_;
  std::string range_;
  Response refusal_;
};

}  // namespace lockstep::http
