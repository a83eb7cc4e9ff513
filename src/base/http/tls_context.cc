#include "base/http/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>
#include <system_error>

namespace lockstep::http {
namespace {

namespace ssl = boost::asio::ssl;

// Those of TLS 1.2 with forward secrecy and authenticated encryption; TLS 1.3's are all such.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

Error FileError(const std::string& file, const char* what) {
  const unsigned long code = ERR_peek_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  std::string why = reason ? reason : "unknown error";
  if (code != 0 && ERR_SYSTEM_ERROR(code)) why = std::generic_category().message(ERR_GET_REASON(code));
  ERR_clear_error();
  return {.code = ErrorCode::kInvalidArgument, .message = fmt::format("{}: {}", what, why), .file = file};
}

}  // namespace

Result<std::shared_ptr<ssl::context>> CreateTlsContext(const TlsFiles& files) {
  ERR_clear_error();
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(raw, kCiphers);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);                               // Idle connections are many.
  SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return 0; });  // Nobody is there to be asked.
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1)
    return FileError(files.certificate, "the certificate cannot be read");
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return FileError(files.key, "the private key cannot be read, or is not the certificate's");
  if (SSL_CTX_check_private_key(raw) != 1) return FileError(files.key, "the private key is not the certificate's");
  if (files.client_authority.empty()) {
    if (!files.requires_client_certificate) return context;
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "client certificates are required, but there is no authority to verify them against"};
  }
  if (SSL_CTX_load_verify_file(raw, files.client_authority.c_str()) != 1)
    return FileError(files.client_authority, "the authority of client certificates cannot be read");
  SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(files.client_authority.c_str()));
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | (files.requires_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return context;
}

}  // namespace lockstep::http
