#include "ingest/nsight/nccl_payload.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "base/ascii.h"
#include "base/text_scan.h"

namespace lockstep::ingest::nsight {
namespace {

/// The number behind `key` in JSON text, digits grouped by commas or not, in quotes or not, decimal or 0x.
std::optional<uint64_t> NumberBehind(std::string_view json, std::string_view key) {
  const size_t at = json.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  size_t i = at + key.size();
  while (i < json.size() && (json[i] == '"' || json[i] == ':' || json[i] == ' ')) ++i;
  std::string digits;
  const bool is_hex = json.substr(i).starts_with("0x");
  for (i += is_hex ? 2 : 0; i < json.size() && digits.size() < 24; ++i) {
    const char c = json[i];
    const bool is_digit = IsDigit(c) || (is_hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
    // A comma between groups of digits, not the one behind the member.
    const bool groups = c == ',' && i + 1 < json.size() && IsDigit(json[i + 1]);
    if (is_digit) digits += c;
    if (!is_digit && !groups) break;
  }
  return lockstep::WholeNumber<uint64_t>(digits, is_hex ? 16 : 10);
}

std::optional<int64_t> Signed(std::optional<uint64_t> value) {
  if (!value || *value > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*value);
}

/// Where the members of a function's payload lie; of `size` bytes in all. -1: it has none.
struct Layout {
  std::string_view function;
  size_t size = 0;
  int communicator = -1;
  int message_bytes = -1;
  int peer = -1;
  int rank = -1;
  int rank_count = -1;
};

// Per function first the layout without a communicator, then that with one.
constexpr Layout kLayouts[] = {
    {"ncclAllGather", 8, -1, 0},
    {"ncclAllGather", 16, 0, 8},
    {"ncclAllReduce", 16, -1, 0},
    {"ncclAllReduce", 24, 0, 8},
    {"ncclBroadcast", 16, -1, 0},
    {"ncclBroadcast", 24, 0, 8},
    {"ncclReduce", 16, -1, 0},
    {"ncclReduce", 24, 0, 8},
    {"ncclReduceScatter", 16, -1, 0},
    {"ncclReduceScatter", 24, 0, 8},
    {"ncclSend", 16, -1, 0, 8},
    {"ncclSend", 24, 0, 8, 16},
    {"ncclRecv", 16, -1, 0, 8},
    {"ncclRecv", 24, 0, 8, 16},
    {"ncclCommInitRank", 12, -1, -1, -1, 0, 4},
    {"ncclCommInitRank", 24, 0, -1, -1, 12, 8},
    {"ncclCommInitRankConfig", 12, -1, -1, -1, 0, 4},
    {"ncclCommInitRankConfig", 24, 0, -1, -1, 12, 8},
    {"ncclCommInitRankScalable", 24, 0, -1, -1, 12, 8},
};

template <typename Number>
std::optional<Number> At(std::string_view bytes, int offset) {
  if (offset < 0) return std::nullopt;
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

}  // namespace

NcclPayload ReadNcclPayload(std::string_view json) {
  NcclPayload payload;
  if (json.empty()) return payload;
  payload.communicator = NumberBehind(json, "\"NCCL communicator ID\"");
  if (!payload.communicator) payload.communicator = NumberBehind(json, "\"commHash\"");
  payload.message_bytes = Signed(NumberBehind(json, "\"Message size [bytes]\""));
  payload.peer = Signed(NumberBehind(json, "\"Peer rank\""));
  payload.rank = Signed(NumberBehind(json, "\"Rank\""));
  payload.rank_count = Signed(NumberBehind(json, "\"No. of ranks\""));
  return payload;
}

std::optional<NcclPayload> DecodeNcclPayload(std::string_view function, std::string_view bytes) {
  for (const Layout& layout : kLayouts) {
    if (layout.function != function || layout.size != bytes.size()) continue;
    NcclPayload payload;
    payload.communicator = At<uint64_t>(bytes, layout.communicator);
    payload.message_bytes = Signed(At<uint64_t>(bytes, layout.message_bytes));
    payload.peer = At<int32_t>(bytes, layout.peer);
    payload.rank = At<int32_t>(bytes, layout.rank);
    payload.rank_count = At<int32_t>(bytes, layout.rank_count);
    return payload;
  }
  return std::nullopt;
}

}  // namespace lockstep::ingest::nsight
