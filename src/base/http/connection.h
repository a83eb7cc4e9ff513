#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace lockstep::http {

/// One accepted stream socket, TCP or Unix, plain or under TLS, with a deadline on what waits. Used from the strand
/// that the socket runs on; at most one read and one write at a time. What ends with an error ends the connection.
class Connection {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Done = std::function<void(boost::system::error_code error, size_t count)>;

  /// `tls` null: plain.
  static std::unique_ptr<Connection> Create(Socket socket, std::shared_ptr<boost::asio::ssl::context> tls);
  virtual ~Connection() = default;

  virtual boost::asio::any_io_executor executor() = 0;
  /// Of what is begun after this: a deadline for all of it together.
  virtual void ExpireAfter(std::chrono::nanoseconds time) = 0;
  virtual void ExpireNever() = 0;

  /// Nothing to do for a plain one.
  virtual void Handshake(Done done) = 0;
  virtual void ReadSome(boost::asio::mutable_buffer into, Done done) = 0;
  virtual void WriteSome(boost::asio::const_buffer bytes, Done done) = 0;
  /// Says that nothing more is sent; the client may still be read.
  virtual void FinishSending() = 0;
  virtual void Close() = 0;

  /// The common name of the client's certificate, which was verified; or empty.
  virtual std::string CertificateName() const = 0;
};

}  // namespace lockstep::http
