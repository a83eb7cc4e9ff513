// HttpServer under TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/http/http_server.h"
#include "base/http/testing/test_certificates.h"
#include "base/http/testing/test_client.h"

namespace lockstep::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct TlsClientOptions {
  const TestIdentity* identity = nullptr;
  const TestIdentity* authority = nullptr;
  int version = 0;  ///< 0: the newest.
};

/// One connection under TLS.
class TlsClient {
 public:
  TlsClient(uint16_t port, const TlsClientOptions& options)
      : tcp_(port), context_(SSL_CTX_new(TLS_client_method())), ssl_(nullptr) {
    if (options.version != 0) {
      SSL_CTX_set_security_level(context_.get(), 0);
      SSL_CTX_set_min_proto_version(context_.get(), options.version);
      SSL_CTX_set_max_proto_version(context_.get(), options.version);
    }
    if (options.identity) {
      SSL_CTX_use_certificate(context_.get(), options.identity->certificate());
      SSL_CTX_use_PrivateKey(context_.get(), options.identity->key());
    }
    if (options.authority) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), options.authority->certificate());
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    }
    ssl_.reset(SSL_new(context_.get()));
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), "127.0.0.1");
    SSL_set_fd(ssl_.get(), tcp_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
    ERR_clear_error();
  }
  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  /// Empty when the server has closed, as it does to a client whose certificate it does not like (in TLS 1.3 only the
  /// first read tells).
  std::string Ask(const std::string& request, const std::string& end = "well\n") {
    if (!connected_ || SSL_write(ssl_.get(), request.data(), static_cast<int>(request.size())) <= 0) return {};
    std::string heard;
    char window[16384];
    int count = 0;
    while (heard.find(end) == std::string::npos && (count = SSL_read(ssl_.get(), window, sizeof(window))) > 0)
      heard.append(window, static_cast<size_t>(count));
    ERR_clear_error();
    return heard;
  }

 private:
  Client tcp_;
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freed<SSL_free>> ssl_;
  bool connected_ = false;
};

constexpr const char* kGet = "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

class TlsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("tls_server_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    files_.certificate = folder_ / "server.crt";
    files_.key = folder_ / "server.key";
    server_identity_.WriteCertificate(files_.certificate);
    server_identity_.WriteKey(files_.key);
    authority_.WriteCertificate(folder_ / "ca.crt");
  }
  void TearDown() override {
    StopServer();
    std::filesystem::remove_all(folder_);
  }
  Result<std::unique_ptr<HttpServer>> Open() {
    ServerOptions options;
    options.port.reset();
    options.takes_bodies = true;
    options.limits = limits_;
    options.listeners.push_back({.address = "127.0.0.1", .tls = files_});
    return HttpServer::Open(options, [this](const Request& request) {
      const std::lock_guard<std::mutex> lock(mutex_);
      peer_ = request.peer;
      body_ = request.body;
      Response response = TextResponse(200, "well\n");
      if (request.path == "/events") {
        response.events = events_;
        response.body = nullptr;
      }
      return response;
    });
  }
  void Start() {
    auto server = Open();
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    server_ = std::move(*server);
    ASSERT_EQ(1U, server_->listener_ports().size());
    port_ = server_->listener_ports()[0];
    thread_ = std::jthread([this] { server_->Run(); });
  }
  void StopServer() {
    if (server_) server_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  Peer peer() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peer_;
  }

  const TestIdentity authority_{"test authority", nullptr};
  const TestIdentity server_identity_{"server", &authority_};
  const TestIdentity client_identity_{"operator@cluster", &authority_};
  std::filesystem::path folder_;
  TlsFiles files_;
  ServerLimits limits_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  std::jthread thread_;
  std::shared_ptr<EventStream> events_ = std::make_shared<EventStream>();
  std::mutex mutex_;
  Peer peer_;
  std::string body_;
};

TEST_F(TlsServerTest, AnswersUnderTls13And12AndNothingOlder) {
  Start();
  TlsClient newest(port_, {.authority = &authority_});
  EXPECT_EQ("TLSv1.3", newest.version());
  EXPECT_THAT(newest.Ask(kGet), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(peer().is_encrypted);
  EXPECT_EQ(Peer::Kind::kLoopback, peer().kind);
  EXPECT_EQ("", peer().certificate_name);
  TlsClient older(port_, {.authority = &authority_, .version = TLS1_2_VERSION});
  EXPECT_THAT(older.Ask(kGet), StartsWith("HTTP/1.1 200"));
  EXPECT_FALSE(TlsClient(port_, {.version = TLS1_1_VERSION}).connected());
  EXPECT_FALSE(TlsClient(port_, {.version = TLS1_VERSION}).connected());
}

TEST_F(TlsServerTest, LargeBodiesGoBothWays) {
  Start();
  TlsClient client(port_, {.authority = &authority_});
  const std::string body(size_t{1} << 20, 'b');
  EXPECT_THAT(client.Ask("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n" + body),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(body, body_);
}

TEST_F(TlsServerTest, EventsGoOutAndTheStreamEnds) {
  Start();
  TlsClient client(port_, {});
  const std::string get = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_TRUE(events_->Push("data: one\n\n"));
  EXPECT_THAT(client.Ask(get, "one\n\n\r\n"), HasSubstr("data: one\n\n"));
  EXPECT_TRUE(events_->Push("data: two\n\n"));
  events_->Close();
  EXPECT_THAT(client.Ask("x", "0\r\n\r\n"), HasSubstr("data: two\n\n\r\n0\r\n\r\n"));
}

TEST_F(TlsServerTest, AClientsCertificateTellsItsName) {
  files_.client_authority = folder_ / "ca.crt";
  Start();
  EXPECT_THAT(TlsClient(port_, {.identity = &client_identity_}).Ask(kGet), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ("operator@cluster", peer().certificate_name);
  EXPECT_THAT(TlsClient(port_, {}).Ask(kGet), StartsWith("HTTP/1.1 200")) << "asked for, not required";
  EXPECT_EQ("", peer().certificate_name);
}

TEST_F(TlsServerTest, CertificatesOfOthersAreRefused) {
  files_.client_authority = folder_ / "ca.crt";
  Start();
  const TestIdentity other_authority("test authority", nullptr);
  const TestIdentity stranger("operator@cluster", &other_authority);
  const TestIdentity self_signed("operator@cluster", nullptr);
  const TestIdentity expired("operator@cluster", &authority_, 1800);
  for (const TestIdentity* identity : {&stranger, &self_signed, &expired})
    EXPECT_EQ("", TlsClient(port_, {.identity = identity}).Ask(kGet));
  EXPECT_EQ("", peer().address) << "no request was handed on";
}

TEST_F(TlsServerTest, ARequiredCertificateIsRequired) {
  files_.client_authority = folder_ / "ca.crt";
  files_.requires_client_certificate = true;
  Start();
  EXPECT_EQ("", TlsClient(port_, {}).Ask(kGet));
  EXPECT_THAT(TlsClient(port_, {.identity = &client_identity_}).Ask(kGet), StartsWith("HTTP/1.1 200"));
}

TEST_F(TlsServerTest, ANameThatIsNoPlainTextIsNone) {
  files_.client_authority = folder_ / "ca.crt";
  Start();
  const TestIdentity odd(std::string("root\0.evil", 10), &authority_);
  EXPECT_THAT(TlsClient(port_, {.identity = &odd}).Ask(kGet), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ("", peer().certificate_name);
}

TEST_F(TlsServerTest, NewCertificatesAreTakenAndOpenConnectionsStay) {
  Start();
  TlsClient old_client(port_, {.authority = &authority_});
  EXPECT_THAT(old_client.Ask(kGet), StartsWith("HTTP/1.1 200"));
  const TestIdentity new_authority("new authority", nullptr);
  const TestIdentity new_server("server", &new_authority);
  new_server.WriteCertificate(files_.certificate);
  EXPECT_FALSE(server_->ReloadCertificates().has_value()) << "the key is the old one's";
  EXPECT_TRUE(TlsClient(port_, {.authority = &authority_}).connected());
  new_server.WriteKey(files_.key);
  EXPECT_TRUE(server_->ReloadCertificates().has_value());
  EXPECT_FALSE(TlsClient(port_, {.authority = &authority_}).connected());
  EXPECT_THAT(TlsClient(port_, {.authority = &new_authority}).Ask(kGet), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(old_client.Ask(kGet), StartsWith("HTTP/1.1 200"));
}

TEST_F(TlsServerTest, FilesThatAreNotWellAreNamed) {
  const auto error_of = [this](TlsFiles files) {
    files_ = std::move(files);
    const auto server = Open();
    EXPECT_FALSE(server.has_value());
    return server ? std::string() : server.error().ToString();
  };
  const TlsFiles well = files_;
  const std::string none = folder_ / "none.pem";
  const std::string text = folder_ / "text.pem";
  const std::string locked = folder_ / "locked.key";
  std::ofstream(text) << "hello\n";
  server_identity_.WriteKey(locked, "secret");
  EXPECT_THAT(error_of({.certificate = none, .key = well.key}), HasSubstr(none));
  EXPECT_THAT(error_of({.certificate = none, .key = well.key}), HasSubstr("No such file"));
  EXPECT_THAT(error_of({.certificate = text, .key = well.key}), HasSubstr(text));
  EXPECT_THAT(error_of({.certificate = well.certificate, .key = text}), HasSubstr(text));
  EXPECT_THAT(error_of({.certificate = well.certificate, .key = locked}), HasSubstr(locked));
  EXPECT_THAT(error_of({.certificate = well.certificate, .key = well.key, .client_authority = text}), HasSubstr(text));
  EXPECT_THAT(error_of({.certificate = well.certificate, .key = well.key, .requires_client_certificate = true}),
              HasSubstr("authority"));
}

TEST_F(TlsServerTest, WhoDoesNotSpeakTlsIsDropped) {
  limits_.header_seconds = 1;
  Start();
  Client plain(port_);
  plain.Say(kGet);
  plain.Hear();
  EXPECT_TRUE(plain.closed());
  Client silent(port_);
  silent.Hear();
  EXPECT_TRUE(silent.closed()) << "in mid-handshake";
  std::string answer;  // A second is short for a whole handshake where others have the processors.
  for (int i = 0; i < 60 && answer.empty(); ++i) answer = TlsClient(port_, {}).Ask(kGet);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace lockstep::http
