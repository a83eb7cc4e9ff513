#include "node/control/discovery/hostfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ascii.h"
#include "base/split.h"
#include "node/control/discovery/command_words.h"

namespace lockstep::control {

namespace {

constexpr uintmax_t kMostFileBytes = uintmax_t{64} << 20;

Error InvalidLine(size_t line_number, std::string_view why) {
  return Error{.code = ErrorCode::kInvalidArgument, .message = fmt::format("line {}: {}", line_number, why)};
}

bool IsProcessCount(std::string_view text) {
  return !text.empty() && text.size() <= 9 && std::all_of(text.begin(), text.end(), IsDigit);
}

// "host", "host:4" (MPICH: processes there), "user@host" (Open MPI), "n[1-4]" (ours).
std::string_view HostOf(std::string_view word) {
  if (const size_t at = word.find('@'); at != std::string_view::npos) word.remove_prefix(at + 1);
  const size_t colon = word.rfind(':');
  const bool one_colon = colon != std::string_view::npos && word.find(':') == colon;  // Several: an IPv6 address.
  return one_colon && IsProcessCount(word.substr(colon + 1)) ? word.substr(0, colon) : word;
}

}  // namespace

Result<std::vector<JobNode>> ParseHostfile(std::string_view text) {
  std::vector<JobNode> nodes;
  std::unordered_map<std::string, size_t> indices;
  size_t line_number = 0;
  for (std::string_view line : SplitLines(text)) {
    ++line_number;
    line = line.substr(0, line.find('#'));
    const std::vector<std::string_view> words = SplitAt(line);
    if (words.empty()) continue;
    uint16_t port = 0;
    std::string address;
    for (size_t i = 1; i < words.size(); ++i) {
      // slots=4, max_slots=4, binding=...: not ours. A bare word would be a host on the wrong line.
      const size_t equals = words[i].find('=');
      if (equals == std::string_view::npos) {
        return InvalidLine(line_number, fmt::format("\"{}\" is not NAME=VALUE; one host a line", Shortened(words[i])));
      }
      const std::string_view value = words[i].substr(equals + 1);
      const std::string_view name = words[i].substr(0, equals);
      if (name == "port") {
        const auto [at, error] = std::from_chars(value.data(), value.data() + value.size(), port);
        if (error != std::errc() || at != value.data() + value.size() || port == 0) {
          return InvalidLine(line_number, fmt::format("\"{}\" is not a port", Shortened(value)));
        }
      } else if (name == "address") {
        address = value;
      }
    }
    const auto hosts = ExpandHostlist(HostOf(words[0]));
    if (!hosts) return InvalidLine(line_number, hosts.error().message);
    for (const std::string& host : *hosts) {
      if (host[0] == '-') return InvalidLine(line_number, fmt::format("\"{}\" is not a host's name", Shortened(host)));
      const auto [at, is_new] = indices.try_emplace(host, nodes.size());
      if (is_new) {
        if (nodes.size() == kMostNodes) {
          return Error{.code = ErrorCode::kLimitExceeded, .message = fmt::format("over {} hosts", kMostNodes)};
        }
        nodes.push_back({.host = host});
      }
      JobNode& node = nodes[at->second];
      if (port != 0) node.port = port;
      if (!address.empty()) node.address = address;
    }
  }
  return nodes;
}

Result<std::vector<JobNode>> ReadHostfile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int number = errno;
    const ErrorCode code = number == ENOENT                      ? ErrorCode::kNotFound
                           : number == EACCES || number == EPERM ? ErrorCode::kPermissionDenied
                                                                 : ErrorCode::kIo;
    return Error{.code = code, .message = fmt::format("hostfile: {}", std::strerror(number)), .file = path};
  }
  std::string text;
  std::vector<char> piece(1 << 16);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > kMostFileBytes) {
      return Error{.code = ErrorCode::kLimitExceeded, .message = "hostfile: over 64 MiB", .file = path};
    }
  }
  if (file.bad() || (text.empty() && !file.eof())) {
    return Error{.code = ErrorCode::kIo, .message = "hostfile: cannot be read", .file = path};
  }
  auto nodes = ParseHostfile(text);
  if (!nodes) {
    Error error = std::move(nodes).error();
    error.file = path;
    return error;
  }
  if (nodes->empty()) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "hostfile: contains no host", .file = path};
  }
  return nodes;
}

}  // namespace lockstep::control
