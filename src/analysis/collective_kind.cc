#include "analysis/collective_kind.h"

#include <array>
#include <string>

namespace lockstep::analysis {
namespace {

struct Spelling {
  std::string_view text;  // lower-case letters only
  CollectiveKind kind;
};

// In order: longer names before the ones they contain.
constexpr Spelling kSpellings[] = {
    {"reducescatter", CollectiveKind::kReduceScatter},
    {"allreduce", CollectiveKind::kAllReduce},
    {"crossdevicereduce", CollectiveKind::kAllReduce},
    {"allgather", CollectiveKind::kAllGather},
    {"alltoall", CollectiveKind::kAllToAll},
    {"barrier", CollectiveKind::kBarrier},
    {"broadcast", CollectiveKind::kBroadcast},
    {"sendrecv", CollectiveKind::kSendReceive},
    {"reduce", CollectiveKind::kReduce},
    {"gather", CollectiveKind::kGather},
    {"scatter", CollectiveKind::kScatter},
    {"send", CollectiveKind::kSend},
    {"recv", CollectiveKind::kReceive},
};

constexpr std::array<const char*, 13> kNames = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier",
                                                "broadcast",  "reduce",     "gather",         "scatter",    "send",
                                                "recv",       "send_recv",  "other"};

}  // namespace

const char* CollectiveKindName(CollectiveKind kind) { return kNames[static_cast<size_t>(kind)]; }

CollectiveKind ClassifyCollective(std::string_view name) {
  // Arguments and template parameters of kernels name types, not operations.
  name = name.substr(0, name.find('('));
  std::string letters;
  letters.reserve(name.size());
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') letters.push_back(c);
    if (c >= 'A' && c <= 'Z') letters.push_back(static_cast<char>(c - 'A' + 'a'));
  }
  for (const Spelling& spelling : kSpellings) {
    if (letters.find(spelling.text) != std::string::npos) return spelling.kind;
  }
  return CollectiveKind::kOther;
}

bool IsSynchronising(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kBarrier: return true;
    default: return false;
  }
}

}  // namespace lockstep::analysis
