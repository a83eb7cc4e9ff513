// The life of communicators, and what is done with them.
#include <cmath>

#include "base/nanoseconds.h"
#include "ingest/nccl/log_events.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclMember;

/// The words behind the names in "comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1a000 commId 0x2 - Init START".
struct CommunicatorWords {
  uint64_t pointer = 0;
  std::optional<int32_t> rank, rank_count, device, nvml_device, color, split_count, nodes, local_rank_count, local_rank;
  uint64_t parent = 0;
  std::string_view bus_id, id;
  int named = 0;
};

std::string_view WithoutDash(std::string_view word) {
  while (!word.empty() && word.back() == '-') word.remove_suffix(1);
  return word;
}

CommunicatorWords ReadCommunicator(std::string_view message) {
  CommunicatorWords result;
  Words words(message);
  const auto number = [&] { return ++result.named, ToInt32(words.TakeNumber()); };
  while (!words.empty()) {
    const std::string_view name = words.TakeWord();
    if (name.empty()) break;
    if (name == "comm") {
      const auto pointer = words.TakeHex();
      result.pointer = pointer.value_or(0);
      ++result.named;
    } else if (name == "rank") {
      result.rank = number();
    } else if (name == "nranks" || name == "nRanks") {
      result.rank_count = number();
    } else if (name == "cudaDev") {
      result.device = number();
    } else if (name == "nvmlDev") {
      result.nvml_device = number();
    } else if (name == "color") {
      result.color = number();
    } else if (name == "splitCount" || name == "childCount") {
      result.split_count = number();
    } else if (name == "nNodes") {
      result.nodes = number();
    } else if (name == "localRanks") {
      result.local_rank_count = number();
    } else if (name == "localRank") {
      result.local_rank = number();
    } else if (name == "parent") {
      result.parent = words.TakeHex().value_or(0);
    } else if (name == "busId") {
      result.bus_id = WithoutDash(words.TakeWord());
    } else if (name == "commId") {
      result.id = WithoutDash(words.TakeWord());
    }
  }
  return result;
}

void Keep(std::optional<int32_t> value, int32_t& field) {
  if (value && *value >= 0) field = *value;
}

void Fill(const CommunicatorWords& words, NcclMember& member) {
  Keep(words.rank, member.rank);
  Keep(words.rank_count, member.rank_count);
  Keep(words.device, member.device);
  Keep(words.nvml_device, member.nvml_device);
  Keep(words.nodes, member.node_count);
  Keep(words.local_rank, member.local_rank);
  Keep(words.local_rank_count, member.local_rank_count);
  if (words.parent != 0) member.parent = words.parent;
  if (words.color) member.split_color = words.color;
  if (words.split_count) member.split_count = words.split_count;
  if (!words.bus_id.empty()) member.bus_id = words.bus_id.substr(0, 32);
  // Documentation shortens ids to "0x...", which joins nothing.
  if (Words id(words.id); id.TakeHex() && id.empty()) member.id = words.id.substr(0, 32);
}

/// Seconds with decimals, as printed: "2.13".
std::optional<int64_t> TakeSeconds(Words& words) {
  const auto whole = words.TakeNumber();
  if (!whole || *whole < 0 || *whole > 1'000'000) return {};
  int64_t ns = *whole * kSecondNs;
  if (words.Skip(".")) {
    int64_t unit = 100'000'000;
    const std::string_view digits = words.TakeUntil(" ,)");
    for (const char c : digits) {
      if (c < '0' || c > '9') return {};
      ns += (c - '0') * unit;
      unit /= 10;
    }
  }
  return ns;
}

}  // namespace

bool HandleInitStart(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  const CommunicatorWords words = ReadCommunicator(hand.message);
  if (words.named == 0) return false;
  NcclMember& member = reader.MemberOfPointer(hand, words.pointer, true);
  Fill(words, member);
  member.started = reader.Place(hand);
  member.started_unix_ns = reader.Time(hand);
  return true;
}

bool HandleInitComplete(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  const CommunicatorWords words = ReadCommunicator(hand.message);
  if (words.named == 0) return false;
  NcclMember& member = reader.MemberOfPointer(hand, words.pointer, false);
  Fill(words, member);
  member.completed = reader.Place(hand);
  reader.CloseThread(hand);
  return true;
}

bool HandleDestroy(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  const CommunicatorWords words = ReadCommunicator(hand.message);
  if (words.named == 0) return false;
  NcclMember& member = reader.MemberOfPointer(hand, words.pointer, false);
  Fill(words, member);
  member.destroyed = reader.Place(hand);
  return true;
}

bool HandleAbort(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  const CommunicatorWords words = ReadCommunicator(hand.message);
  if (words.named == 0) return false;
  NcclMember& member = reader.MemberOfPointer(hand, words.pointer, false);
  Fill(words, member);
  member.aborted = reader.Place(hand);
  return true;
}

/// "comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0"
bool HandleNodes(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  const CommunicatorWords words = ReadCommunicator(hand.message);
  if (!words.nodes) return false;
  Fill(words, reader.MemberOfPointer(hand, words.pointer, false));
  return true;
}

/// "ncclCommInitRank: rank 0 nranks 2 total 2.13 (kernels 0.17, alloc 0.02, bootstrap 1.93, ...)"
bool HandleInitTiming(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  if (!words.SkipPast("rank ")) return false;
  const auto rank = ToInt32(words.TakeNumber());
  if (!words.SkipPast("total ")) return false;
  const auto total = TakeSeconds(words);
  if (!total) return false;
  NcclMember& member = reader.MemberOfThread(hand);
  if (member.rank < 0) Keep(rank, member.rank);
  member.init_ns = total;
  member.init_timing = reader.Place(hand);
  member.init_phases_ns.clear();
  if (!words.SkipPast("(")) return true;
  while (member.init_phases_ns.size() < 32) {
    const std::string_view name = words.TakeWord();
    const auto duration = TakeSeconds(words);
    if (name.empty() || !duration) break;
    member.init_phases_ns.emplace_back(name, *duration);
    if (!words.Skip(", ")) break;
  }
  return true;
}

/// "AllReduce: opCount 3e sendbuff 0x1 recvbuff 0x2 count 1 datatype 7 op 0 root 0 comm 0x3 [nranks=16] stream 0x4";
/// opCount is hexadecimal.
bool HandleOperation(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const std::string_view name = hand.message.substr(0, hand.message.find(':'));
  if (name.empty() || name.size() > 32 || name.find(' ') != std::string_view::npos) return false;
  const auto operation_idx = words.TakeHex();
  if (!operation_idx || *operation_idx > INT64_MAX) return false;
  evidence::NcclOperation operation;
  operation.operation_idx = static_cast<int64_t>(*operation_idx);
  if (!words.SkipPast(" count ")) return false;
  const auto count = words.TakeNumber();
  if (!count || *count < 0) return false;
  operation.count = static_cast<uint64_t>(*count);
  if (words.SkipPast(" datatype ")) operation.datatype = ToInt32(words.TakeNumber()).value_or(-1);
  if (words.SkipPast(" op ")) operation.reduction = ToInt32(words.TakeNumber()).value_or(-1);
  if (words.SkipPast(" root ")) operation.root = ToInt32(words.TakeNumber()).value_or(-1);
  uint64_t pointer = 0;
  if (words.SkipPast(" comm ")) pointer = words.TakeHex().value_or(0);
  NcclMember& member = pointer == 0 ? reader.MemberOfThread(hand) : reader.MemberOfPointer(hand, pointer, false);
  if (words.SkipPast("[nranks=") && member.rank_count < 0) {
    member.rank_count = ToInt32(words.TakeNumber()).value_or(-1);
  }
  operation.name = reader.Intern(name);
  operation.line = hand.number;
  if (reader.MayKeepOperation()) {
    member.operations.push_back(operation);
  } else {
    ++member.dropped_operation_count;
  }
  return true;
}

/// "AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}", before 2.24 "Algo 1 proto 2 time 1.2"
bool HandleTuning(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const std::string_view name = hand.message.substr(0, hand.message.find(':'));
  Words size(hand.message);
  if (!size.SkipPast(": ")) return false;
  const auto bytes = size.TakeNumber();
  if (!bytes || name.size() > 32) return false;
  const std::string algorithm(words.TakeWord().substr(0, 32));
  std::string protocol;
  if (words.Skip(" proto ")) protocol = words.TakeWord().substr(0, 32);
  auto& tunings = reader.job().tunings;
  const std::string key = std::string(name) + " " + std::to_string(*bytes) + " bytes: " + algorithm + "/" + protocol;
  constexpr size_t kTuningLimit = 10'000;
  if (const auto found = tunings.find(key); found != tunings.end() || tunings.size() < kTuningLimit) ++tunings[key];
  return true;
}

}  // namespace lockstep::ingest
