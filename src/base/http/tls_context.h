#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/http/http_server.h"
#include "base/result.h"

namespace lockstep::http {

/// A server's TLS 1.2 and 1.3 with these files, read now. Sessions are not resumed, so that every connection is checked
/// against the files as they are. Errors: kInvalidArgument with the file's name: not readable, no PEM, a key that does
/// not belong to the certificate or wants a passphrase.
Result<std::shared_ptr<boost::asio::ssl::context>> CreateTlsContext(const TlsFiles& files);

}  // namespace lockstep::http
