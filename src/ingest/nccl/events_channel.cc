// Channels: connections, rings, trees, counts.
#include <algorithm>

#include "base/ascii.h"
#include "base/split.h"
#include "ingest/nccl/log_events.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclConnection;
using evidence::NcclDirection;
using evidence::NcclMember;
using evidence::NcclTransport;
using evidence::NcclTreeNode;

constexpr int32_t kChannelLimit = 1024;
constexpr size_t kRankLimit = 100'000;

std::optional<int32_t> TakeChannel(Words& words) {
  const auto channel = ToInt32(words.TakeNumber());
  if (!channel || *channel < 0 || *channel >= kChannelLimit) return {};
  return channel;
}

/// "7[a01d0]": the rank; the bracket holds the bus id before 2.19 and the device since.
std::optional<int32_t> TakeEndpoint(Words& words) {
  const auto rank = ToInt32(words.TakeNumber());
  if (!rank) return {};
  if (words.Skip("[")) {
    words.TakeUntil("]");
    if (!words.Skip("]")) return {};
  }
  return rank;
}

/// "NET/AWS Libfabric/1(3)/GDRDMA/Shared" behind "NET/": the network's name, its device, the proxy, flags.
void ReadNetwork(NcclLogReader& reader, std::string_view text, NcclConnection& connection) {
  std::string detail;
  while (!text.empty()) {
    std::string_view part = TakePart(&text, '/');
    const size_t bracket = part.find('(');
    if (part == "GDRDMA") {
      connection.gpu_direct = true;
    } else if (IsNumber(part.substr(0, bracket)) && connection.net_device < 0) {
      Words words(part);
      connection.net_device = ToInt32(words.TakeNumber()).value_or(-1);
      if (words.Skip("(")) connection.proxy = ToInt32(words.TakeNumber());
    } else {
      if (!detail.empty()) detail += '/';
      detail += part;
    }
  }
  connection.detail = reader.Intern(detail);
}

void ReadTransport(NcclLogReader& reader, std::string_view text, NcclConnection& connection) {
  const size_t slash = text.find('/');
  const std::string_view kind = text.substr(0, slash);
  const std::string_view rest = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  if (kind == "NET") {
    connection.transport = NcclTransport::kNetwork;
    return ReadNetwork(reader, rest, connection);
  }
  if (kind == "COLLNET" || kind == "CollNet") connection.transport = NcclTransport::kCollNet;
  if (kind == "SHM") connection.transport = NcclTransport::kSharedMemory;
  if (kind.starts_with("P2P")) connection.transport = NcclTransport::kP2p;
  connection.detail = reader.Intern(connection.transport == NcclTransport::kOther ? text : rest);
}

NcclTreeNode& TreeOf(NcclMember& member, int32_t channel) {
  for (NcclTreeNode& node : member.trees) {
    if (node.channel == channel) return node;
  }
  member.trees.push_back({.channel = channel, .up = -1, .down = {}});
  return member.trees.back();
}

/// "8/-1/-1": those that are there.
bool TakeDown(Words& words, std::vector<int32_t>& down) {
  down.clear();
  do {
    const auto rank = ToInt32(words.TakeNumber());
    if (!rank) return false;
    if (*rank >= 0) down.push_back(*rank);
  } while (down.size() < 16 && words.Skip("/"));
  return true;
}

}  // namespace

/// "Channel 07/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA", before 2.18 without "/0".
bool HandleConnection(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclConnection connection;
  const auto channel = TakeChannel(words);
  if (!channel) return false;
  if (words.Skip("/")) words.TakeNumber();
  words.SkipBlanks();
  if (!words.Skip(":")) return false;
  const auto from = TakeEndpoint(words);
  if (!from || !words.Skip(" -> ")) return false;
  const auto to = TakeEndpoint(words);
  if (!to) return false;
  if (words.Skip(" [send]")) connection.direction = NcclDirection::kSend;
  if (words.Skip(" [receive]")) connection.direction = NcclDirection::kReceive;
  if (!words.Skip(" via ")) return false;
  connection.channel = *channel;
  connection.from = *from;
  connection.to = *to;
  connection.place = reader.Place(hand);
  ReadTransport(reader, words.rest(), connection);
  if (reader.MayKeepConnection()) reader.MemberOfConnection(hand, *from, *to).connections.push_back(connection);
  return true;
}

/// "Channel 00/02 : 0 1 2 3"
bool HandleRingOrder(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const auto channel = TakeChannel(words);
  if (!channel) return false;
  if (words.Skip("/")) words.TakeNumber();
  words.SkipBlanks();
  if (!words.Skip(":")) return false;
  std::vector<int32_t> order;
  while (const auto rank = ToInt32(words.TakeNumber())) {
    if (*rank < 0 || order.size() >= kRankLimit) return false;
    order.push_back(*rank);
  }
  if (order.empty()) return false;
  reader.MemberInCreation(hand).rings[*channel] = std::move(order);
  return true;
}

/// "Ring 00 : 1 -> 0 -> 1": previous, own, next.
bool HandleRingNeighbours(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  if (!TakeChannel(words) || !words.Skip(" : ")) return false;
  if (!words.TakeNumber() || !words.Skip(" -> ")) return false;
  const auto own = ToInt32(words.TakeNumber());
  if (!own || !words.Skip(" -> ") || !words.TakeNumber()) return false;
  NcclMember& member = reader.MemberInCreation(hand);
  if (member.rank < 0) member.rank = *own;
  return true;
}

/// "Trees [0] 1/-1/-1->0->8 [1] ...": below, own, above, for each channel.
bool HandleTrees(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclMember& member = reader.MemberInCreation(hand);
  do {
    const auto channel = TakeChannel(words);
    std::vector<int32_t> down;
    if (!channel || !words.Skip("] ") || !TakeDown(words, down) || !words.Skip("->")) return true;  // Cut.
    const auto own = ToInt32(words.TakeNumber());
    if (!own || !words.Skip("->")) return true;
    const auto up = ToInt32(words.TakeNumber());
    if (!up) return true;
    if (member.rank < 0) member.rank = *own;
    NcclTreeNode& node = TreeOf(member, *channel);
    node.up = *up;
    node.down = std::move(down);
  } while (words.Skip(" ["));
  return true;
}

/// "Tree 0 : -1 -> 0 -> 1/-1/-1": above, own, below.
bool HandleTree(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const auto channel = TakeChannel(words);
  if (!channel || !words.Skip(" : ")) return false;
  const auto up = ToInt32(words.TakeNumber());
  if (!up || !words.Skip(" -> ")) return false;
  const auto own = ToInt32(words.TakeNumber());
  std::vector<int32_t> down;
  if (!own || !words.Skip(" -> ") || !TakeDown(words, down)) return false;
  NcclMember& member = reader.MemberInCreation(hand);
  if (member.rank < 0) member.rank = *own;
  NcclTreeNode& node = TreeOf(member, *channel);
  node.up = *up;
  node.down = std::move(down);
  return true;
}

bool HandleConnectedRings(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  reader.MemberOfThread(hand).connected_rings = true;
  return true;
}
bool HandleConnectedTrees(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  reader.MemberOfThread(hand).connected_trees = true;
  return true;
}
bool HandleConnectedNvls(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  reader.MemberOfThread(hand).connected_nvls = true;
  return true;
}

/// "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer"
bool HandleChannelCounts(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  std::vector<std::pair<std::string, int64_t>> counts;
  Words words(hand.message);
  do {
    const auto count = words.TakeNumber();
    if (!count) return !counts.empty();
    const std::string_view name = words.TakeWord();
    if (name.empty() || !words.Skip(" channels")) return !counts.empty();
    counts.emplace_back(words.Skip(" per peer") ? std::string(name) + "_per_peer" : std::string(name), *count);
    words.Skip(",");
  } while (!words.empty() && counts.size() < 16);
  NcclMember& member = reader.MemberOfThread(hand);
  member.channel_counts = std::move(counts);
  member.channel_counts_place = reader.Place(hand);
  return true;
}

}  // namespace lockstep::ingest
