#include "base/http/connection.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <utility>

namespace lockstep::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

class PlainConnection : public Connection {
 public:
  explicit PlainConnection(Socket socket) : stream_(std::move(socket)) {}

  asio::any_io_executor executor() override { return stream_.get_executor(); }
  void ExpireAfter(std::chrono::nanoseconds time) override { stream_.expires_after(time); }
  void ExpireNever() override { stream_.expires_never(); }
  void Handshake(Done done) override {
    asio::post(stream_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }
  void ReadSome(asio::mutable_buffer into, Done done) override { stream_.async_read_some(into, std::move(done)); }
  void WriteSome(asio::const_buffer bytes, Done done) override { stream_.async_write_some(bytes, std::move(done)); }
  void FinishSending() override {
    beast::error_code ignored;
    stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  }
  void Close() override {
    FinishSending();
    stream_.close();
  }
  std::string CertificateName() const override { return {}; }

 protected:
  Stream stream_;
};

/// A certificate's common name; empty when it has none, or one that is not plain text.
std::string CommonName(X509* certificate) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place < 0) return {};
  unsigned char* text = nullptr;
  const int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
  if (length < 0) return {};
  const std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(length));
  OPENSSL_free(text);
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return {};
  }
  return name;
}

class TlsConnection : public PlainConnection {
 public:
  TlsConnection(Socket socket, std::shared_ptr<asio::ssl::context> context)
      : PlainConnection(std::move(socket)), context_(std::move(context)), tls_(stream_, *context_) {}

  void Handshake(Done done) override {
    tls_.async_handshake(asio::ssl::stream_base::server, [this, done = std::move(done)](beast::error_code error) {
      is_open_ = !error;
      done(error, 0);
    });
  }
  void ReadSome(asio::mutable_buffer into, Done done) override { tls_.async_read_some(into, std::move(done)); }
  void WriteSome(asio::const_buffer bytes, Done done) override { tls_.async_write_some(bytes, std::move(done)); }
  // Without close_notify: every answer says its length or ends in a last chunk, and HTTP/1.0's end with an error at
  // worst.
  std::string CertificateName() const override {
    SSL* ssl = const_cast<TlsConnection*>(this)->tls_.native_handle();
    if (!is_open_ || SSL_get_verify_result(ssl) != X509_V_OK) return {};
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (!certificate) return {};
    std::string name = CommonName(certificate);
    X509_free(certificate);
    return name;
  }

 private:
  std::shared_ptr<asio::ssl::context> context_;
  asio::ssl::stream<Stream&> tls_;
  bool is_open_ = false;
};

}  // namespace

std::unique_ptr<Connection> Connection::Create(Socket socket, std::shared_ptr<asio::ssl::context> tls) {
  if (!tls) return std::make_unique<PlainConnection>(std::move(socket));
  return std::make_unique<TlsConnection>(std::move(socket), std::move(tls));
}

}  // namespace lockstep::http
