#include "base/http/answer_writer.h"

#include <unistd.h>

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::http {
namespace {

using boost::system::error_code;

constexpr size_t kPieceBytes = size_t{64} << 10;
constexpr size_t kJoinedBytes = size_t{16} << 10;  // A body up to this leaves together with its header.

/// Lives as long as a write is under way.
class AnswerWriter : public std::enable_shared_from_this<AnswerWriter> {
 public:
  AnswerWriter(Connection& connection, int write_seconds, std::string header, std::shared_ptr<const std::string> body,
               FilePart part, WriteDone done)
      : connection_(connection),
        write_seconds_(write_seconds),
        header_(std::move(header)),
        body_(std::move(body)),
        part_(std::move(part)),
        done_(std::move(done)) {}

  void Begin() {
    if (body_ && body_->size() <= kJoinedBytes) {
      header_ += *body_;
      body_ = nullptr;
    }
    left_ = header_;
    Continue();
  }

 private:
  void Continue() {
    error_code error;
    if (left_.empty() && !Refill(&error)) return done_(error);
    connection_.ExpireAfter(std::chrono::seconds(write_seconds_));
    connection_.WriteSome(boost::asio::buffer(left_.data(), left_.size()),
                          [self = shared_from_this()](error_code failure, size_t count) {
                            if (failure) return self->done_(failure);
                            self->left_.remove_prefix(count);
                            self->Continue();
                          });
  }

  // False when there is nothing more.
  bool Refill(error_code* error) {
    if (body_ && !std::exchange(is_body_begun_, true)) {
      left_ = *body_;
      return !left_.empty();
    }
    if (!part_.file || part_.range.begin >= part_.range.end) return false;
    piece_.resize(static_cast<size_t>(std::min<uint64_t>(part_.range.end - part_.range.begin, kPieceBytes)));
    const ssize_t count =
        ::pread(part_.file->get(), piece_.data(), piece_.size(), static_cast<off_t>(part_.range.begin));
    if (count <= 0) {  // Not readable, or shorter than it was.
      *error = boost::beast::http::error::partial_message;
      return false;
    }
    part_.range.begin += static_cast<uint64_t>(count);
    left_ = {piece_.data(), static_cast<size_t>(count)};
    return true;
  }

  Connection& connection_;
  const int write_seconds_;
  std::string header_;
  std::shared_ptr<const std::string> body_;
  bool is_body_begun_ = false;
  FilePart part_;
  std::vector<char> piece_;
  std::string_view left_;  ///< Of header_, body_ or piece_.
  const WriteDone done_;
};

}  // namespace

void WriteAnswer(Connection& connection, const ServerLimits& limits, std::string header,
                 std::shared_ptr<const std::string> body, FilePart part, WriteDone done) {
  std::make_shared<AnswerWriter>(connection, limits.write_seconds, std::move(header), std::move(body), std::move(part),
                                 std::move(done))
      ->Begin();
}

}  // namespace lockstep::http
