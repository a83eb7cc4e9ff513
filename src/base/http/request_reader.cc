#include "base/http/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace lockstep::http {
namespace {

namespace beast = boost::beast;
namespace beast_http = beast::http;

/// Of a chunk's line, or of the fields behind the last chunk.
constexpr size_t kChunkHeaderBytes = 8 * 1024;

constexpr const char* kHeaderTooLarge = "The request's header is too large.";

std::string_view View(beast::string_view view) { return {view.data(), view.size()}; }

Method MethodOf(beast_http::verb verb) {
  switch (verb) {
    case beast_http::verb::get: return Method::kGet;
    case beast_http::verb::head: return Method::kHead;
    case beast_http::verb::post: return Method::kPost;
    case beast_http::verb::delete_: return Method::kDelete;
    default: return Method::kOther;
  }
}

}  // namespace

Response RequestRules::Refusal(int status, std::string sentence) const {
  return refuse ? refuse(status, std::move(sentence)) : TextResponse(status, std::move(sentence) + "\n");
}

RequestReader::RequestReader(const RequestRules& rules, Peer peer, std::string local_address)
    : rules_(rules), peer_(std::move(peer)), local_address_(std::move(local_address)) {}

void RequestReader::Put(std::string_view bytes) {
  if (state_ == State::kRefused) return;
  pending_ += bytes;
  if (state_ != State::kWhole) Parse();
}

void RequestReader::Next() {
  parser_.reset();
  request_ = {};
  range_ = {};
  wants_continue_ = false;
  if (state_ == State::kRefused) return;
  state_ = State::kIdle;
  if (pending_.empty()) {
    pending_.shrink_to_fit();  // Idle connections are many.
  } else {
    Parse();
  }
}

void RequestReader::Refuse(int status, std::string sentence) {
  state_ = State::kRefused;
  keep_alive_ = false;
  refusal_ = rules_.Refusal(status, std::move(sentence));
  parser_.reset();
  pending_ = {};
}

bool RequestReader::TakeContinue() { return state_ == State::kBody && std::exchange(wants_continue_, false); }

void RequestReader::BeginRequest() {
  state_ = State::kHeader;
  parser_.emplace();
  parser_->header_limit(rules_.limits.header_bytes);
  parser_->body_limit(boost::none);  // Until the header has been looked at.
  header_bytes_ = 0;
  framing_bytes_ = 0;
  is_http_1_0_ = false;
}

void RequestReader::Parse() {
  size_t begin = 0;
  while (state_ < State::kWhole && begin < pending_.size()) {
    if (state_ == State::kIdle) BeginRequest();
    beast::error_code error;
    const size_t taken =
        parser_->put(boost::asio::const_buffer(pending_.data() + begin, pending_.size() - begin), error);
    begin += taken;
    (state_ == State::kHeader ? header_bytes_ : framing_bytes_) += taken;
    if (error && error != beast_http::error::need_more) return RefuseParse(error);
    if (state_ == State::kHeader && parser_->is_header_done()) {
      if (header_bytes_ > rules_.limits.header_bytes) return Refuse(431, kHeaderTooLarge);
      CheckHeader();
    }
    if (state_ == State::kRefused) return;
    if (parser_->is_done()) {
      request_.body = std::move(parser_->get().body());
      parser_.reset();
      state_ = State::kWhole;
    }
    if (error) break;
  }
  pending_.erase(0, begin);
  // The parser takes whole lines out of the buffer one by one and does not add them up.
  if (state_ == State::kHeader && header_bytes_ + pending_.size() > rules_.limits.header_bytes)
    return Refuse(431, kHeaderTooLarge);
  if (state_ != State::kBody) return;
  // Chunks of one byte, each with a long line before it.
  if (pending_.size() > kChunkHeaderBytes || framing_bytes_ > 4 * rules_.limits.body_bytes + kChunkHeaderBytes)
    Refuse(413, "The body's chunks are too small, or their headers too large.");
}

void RequestReader::RefuseParse(beast::error_code error) {
  if (error == beast_http::error::header_limit) return Refuse(431, kHeaderTooLarge);
  if (error == beast_http::error::body_limit) return Refuse(413, "The request's body is too large.");
  Refuse(400, "This is not an HTTP request.");
}

std::string_view RequestReader::Field(beast_http::field field) const { return View(parser_->get()[field]); }
size_t RequestReader::Count(beast_http::field field) const { return parser_->get().count(field); }

int RequestReader::CheckBody(std::string* sentence) {
  const auto& message = parser_->get();
  if (Count(beast_http::field::transfer_encoding) > 0 && !parser_->chunked()) {
    *sentence = "No transfer encoding but chunked is read.";
    return 400;
  }
  const uint64_t length = parser_->content_length().value_or(0);
  if (!parser_->chunked() && length == 0) return 0;
  if (!rules_.takes_bodies || message.method() == beast_http::verb::get || message.method() == beast_http::verb::head) {
    *sentence = "A request has no body here.";
    return 413;
  }
  if (length > rules_.limits.body_bytes) {
    *sentence = "The request's body is too large.";
    return 413;
  }
  if (Count(beast_http::field::expect) > 0) {
    if (!beast::iequals(message[beast_http::field::expect], "100-continue")) {
      *sentence = "Only 100-continue can be expected.";
      return 417;
    }
    wants_continue_ = true;
  }
  parser_->body_limit(rules_.limits.body_bytes);
  return 0;
}

int RequestReader::CheckOrigin(std::string* sentence) {
  if (Count(beast_http::field::host) > 1) {
    *sentence = "Two Host headers.";
    return 400;
  }
  const std::string_view host = Field(beast_http::field::host);
  if (!IsAdmittedHost(host, peer_, rules_.host_names, local_address_)) {
    *sentence = rules_.takes_bodies ? "This is not answered under that Host name."
                                    : "This is answered under the names 127.0.0.1 and localhost only.";
    return 403;
  }
  if (!rules_.takes_bodies) return 0;
  if (Count(beast_http::field::authorization) > 1) {
    *sentence = "Two Authorization headers.";
    return 400;
  }
  if (request_.method == Method::kGet || request_.method == Method::kHead) return 0;
  const beast::string_view fetch_site = parser_->get()["Sec-Fetch-Site"];
  if (Count(beast_http::field::origin) > 1 || parser_->get().count("Sec-Fetch-Site") > 1) {
    *sentence = "Two Origin or Sec-Fetch-Site headers.";
    return 400;
  }
  if (IsFromAnotherSite(Field(beast_http::field::origin), View(fetch_site), host, peer_.is_encrypted)) {
    *sentence = "A web page of another site may not ask this.";
    return 403;
  }
  return 0;
}

void RequestReader::CheckHeader() {
  const auto& message = parser_->get();
  keep_alive_ = message.keep_alive();
  is_http_1_0_ = message.version() == 10;
  request_ = {};
  request_.peer = peer_;
  request_.method = MethodOf(message.method());
  const bool is_taken = request_.method == Method::kGet || request_.method == Method::kHead ||
                        (rules_.takes_bodies && request_.method != Method::kOther);
  if (!is_taken) {
    const std::string allowed = rules_.takes_bodies ? "GET, HEAD, POST, DELETE" : "GET, HEAD";
    Refuse(405,
           rules_.takes_bodies ? "Only GET, HEAD, POST and DELETE are answered." : "Only GET and HEAD are answered.");
    refusal_.headers.emplace_back("Allow", allowed);
    return;
  }
  std::string sentence;
  if (const int status = CheckBody(&sentence)) return Refuse(status, std::move(sentence));
  if (const int status = CheckOrigin(&sentence)) return Refuse(status, std::move(sentence));
  if (!ReadTarget(View(message.target()), &request_)) return Refuse(400, "The path is not valid.");
  request_.if_none_match = Field(beast_http::field::if_none_match);
  request_.authorization = Field(beast_http::field::authorization);
  request_.content_type = Field(beast_http::field::content_type);
  request_.accept = Field(beast_http::field::accept);
  request_.accepts_gzip = AcceptsGzip(Field(beast_http::field::accept_encoding));
  // Files have no version that a client could name: a range of another one is not sent.
  range_ = Count(beast_http::field::if_range) > 0 ? std::string_view() : Field(beast_http::field::range);
  state_ = State::kBody;  // Until the parser says that it is done.
}

}  // namespace lockstep::http
