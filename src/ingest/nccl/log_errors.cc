// Lines that tell of a failure: one row a kind. Source: docs/formats/nccl-log.md#errors.
#include <array>
#include <cctype>

#include "ingest/nccl/log_reader.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclError;

enum class Weight : uint8_t { kError, kConsequence, kWarning };

/// Fills in what only some messages have. `words` stands behind the mark.
using ErrorReader = void (*)(Words words, NcclError& error);

struct ErrorRule {
  const char* kind;
  std::string_view mark;    ///< Anywhere in the message.
  std::string_view second;  ///< Anywhere too; "" = nothing.
  Weight weight = Weight::kError;
  bool on_info = false;  ///< Also a failure where the level is INFO.
  const char* meaning = "";
  const char* remedy = "";
  ErrorReader read = nullptr;
};

struct CompletionStatus {
  int64_t code;
  const char* name;
  const char* meaning;
  const char* remedy;
  bool consequence = false;
};

// InfiniBand's work-completion codes. NCCL's own hints are not repeated: 2.30 prints that of another code as well.
constexpr std::array kCompletions = {
    CompletionStatus{1, "length error", "the two sides exchange different sizes",
                     "compare the collectives of both ranks: NCCL_DEBUG_SUBSYS=COLL, or the flight recorder"},
    CompletionStatus{4, "local protection error", "the adapter may not touch the memory that was registered",
                     "check GPUDirect RDMA (nvidia_peermem, ACS off, IOMMU in pass-through); NCCL_NET_GDR_LEVEL=LOC "
                     "tells whether it is the cause"},
    CompletionStatus{5, "flushed", "follows from an earlier error of this connection",
                     "look for the first error, on the other side as well", true},
    CompletionStatus{9, "remote invalid request", "the peer's adapter refused the request",
                     "look at the peer's log; compare versions and drivers"},
    CompletionStatus{10, "remote access error", "the peer's adapter may not touch the memory that was registered",
                     "check GPUDirect RDMA on the peer (nvidia_peermem, ACS off, IOMMU in pass-through)"},
    CompletionStatus{11, "remote operation error", "the peer's adapter failed", "look at the peer's log and adapter"},
    CompletionStatus{12, "retry exceeded",
                     "the peer did not answer for about 30 s: it is dead, or cable, switch, GID or P_Key are wrong",
                     "see whether the peer's process lives; ibstat and link counters on both sides; equal "
                     "NCCL_IB_GID_INDEX; NCCL_IB_TIMEOUT only when the fabric is known to pause"},
    CompletionStatus{13, "receiver not ready", "the peer does not post receives",
                     "look at the peer: it is stuck or gone"},
};

void ReadCompletion(Words words, NcclError& error) {
  // "error 12," before 2.18, "status=12 " since, "status=IBV_WC_RETRY_EXC_ERR(12)" since 2.28.
  Words form = words;
  if (form.SkipPast("status=")) {
    if (const auto number = form.TakeNumber()) {
      error.code = std::to_string(*number);
    } else {
      form.TakeUntil("( ");
      if (form.Skip("(")) {
        if (const auto inner = form.TakeNumber()) error.code = std::to_string(*inner);
      }
    }
  } else if (form = words; form.SkipPast("error ")) {
    if (const auto number = form.TakeNumber()) error.code = std::to_string(*number);
  }
  for (const CompletionStatus& status : kCompletions) {
    if (error.code != std::to_string(status.code)) continue;
    error.code = std::string(status.name) + " (" + error.code + ")";
    error.meaning = status.meaning;
    error.remedy = status.remedy;
    error.consequence = status.consequence;
    return;
  }
}

/// "failed with 110 Connection timed out, on dev ..."
void ReadVerbsCall(Words words, NcclError& error) {
  if (!words.SkipPast("failed with ")) return;
  Words text = words;
  if (words.Skip("error ")) text = words;
  error.code = text.TakeUntil(",");
  if (error.code.starts_with("22 ")) {
    error.meaning = "the adapter refuses the connection's parameters, mostly its GID index";
    error.remedy = "set one NCCL_IB_GID_INDEX that every node has (show_gids), or unset it";
  }
}

void ReadCudaFailure(Words words, NcclError& error) {
  if (!words.Skip("'") && !words.Skip(" '")) {
    error.code = words.rest().substr(0, 64);
    return;
  }
  error.code = words.TakeUntil("'");
  if (error.code.find("out of memory") != std::string::npos) {
    error.meaning = "the device has no memory left for NCCL's buffers";
    error.remedy =
        "leave a few GiB free beside PyTorch's cache (PYTORCH_CUDA_ALLOC_CONF, smaller batch), or lower "
        "NCCL_BUFFSIZE and the number of communicators";
  } else if (error.code.find("driver version") != std::string::npos) {
    error.meaning = "the node's driver is older than this CUDA, or missing";
    error.remedy = "compare nvidia-smi on all nodes; start the container with the GPUs; use a build for this driver";
  }
}

void ReadRanks(Words words, NcclError& error) {
  Words text(error.text);
  while (error.named_ranks.size() < 16 && text.SkipPast("ank ")) {
    if (const auto rank = ToInt32(text.TakeNumber())) error.named_ranks.push_back(*rank);
  }
  static_cast<void>(words);
}

constexpr const char* kLookAtPeer = "look at the peer's log and process: it ended first; this rank only noticed it";
constexpr const char* kReach =
    "check firewalls and that both nodes use interfaces that reach each other (NCCL_SOCKET_IFNAME), and that rank 0 "
    "of the communicator is up";

constexpr std::array kErrorRules = {
    ErrorRule{"ib_completion", "Got completion", "", Weight::kError, false, "an InfiniBand transfer failed",
              "look for the first such error of the job; check both adapters", ReadCompletion},
    ErrorRule{"ib_event", "async fatal event", "", Weight::kError, false, "the adapter or its port failed",
              "check cable, port and switch: ibstat, dmesg, link error counters"},
    ErrorRule{"ib_event", "async event", "", Weight::kWarning, false, "the adapter or its port reports a change",
              "check cable, port and switch: ibstat, dmesg, link error counters"},
    ErrorRule{"ib_event", "non-fatal async", "", Weight::kWarning, false, "the adapter or its port reports a change",
              "check cable, port and switch: ibstat, dmesg, link error counters"},
    ErrorRule{"ib_event", "GID table changed", "", Weight::kWarning, true, "addresses of the adapter changed",
              "a port went down and up, or the network manager reconfigured it: dmesg"},
    ErrorRule{"ib_device_failed", "marked as failed", "", Weight::kError, true, "an adapter failed during the run",
              "replace or reset it; NCCL may go on by another port where it is told to"},
    ErrorRule{"ib_route", "ibv_modify_qp failed", "", Weight::kError, false,
              "the two adapters cannot reach each other: other rails or subnets",
              "NCCL_CROSS_NIC=0 where rails are separate; check subnets, GID index and switches", ReadVerbsCall},
    ErrorRule{"ib_memory", "ibv_reg_mr", "Cannot allocate memory", Weight::kError, false,
              "memory could not be locked for the adapter",
              "ulimit -l unlimited, also inside containers and for the "
              "launcher's daemons",
              ReadVerbsCall},
    ErrorRule{"ib_memory", "ibv_create_", "Cannot allocate memory", Weight::kError, false,
              "memory could not be locked for the adapter",
              "ulimit -l unlimited, also inside containers and for the "
              "launcher's daemons",
              ReadVerbsCall},
    ErrorRule{"ib_call", "Call to ibv_", "failed", Weight::kError, false, "the adapter's driver refused a call",
              "dmesg and ibstat on this node; compare driver and firmware between nodes", ReadVerbsCall},
    ErrorRule{"socket_closed", "Connection closed by remote peer", "", Weight::kError, true, "the peer's process ended",
              kLookAtPeer},
    ErrorRule{"socket_reset", "Connection reset by peer", "", Weight::kError, true, "the peer's process was killed",
              kLookAtPeer},
    ErrorRule{"socket_reset", "Broken pipe", "", Weight::kError, true, "the peer's process ended", kLookAtPeer},
    ErrorRule{"socket_connect_failed", "exceeded error retry count", "", Weight::kError, true,
              "the peer could not be reached", kReach},
    ErrorRule{"socket_connect_retry", "Connection refused, retrying", "", Weight::kWarning, true,
              "the peer does not listen yet, or cannot be reached", kReach},
    ErrorRule{"socket_connect_failed", "Connection refused", "", Weight::kError, true,
              "the peer does not listen: it is not up, has ended, or another interface is meant", kReach},
    ErrorRule{"socket_connect_failed", "No route to host", "", Weight::kError, true, "the peer cannot be reached",
              kReach},
    ErrorRule{"socket_connect_failed", "Connection timed out", "", Weight::kError, true, "the peer did not answer",
              kReach},
    ErrorRule{"size_mismatch", "message truncated", "", Weight::kError, false,
              "two ranks exchange different sizes: their collectives differ, or NCCL_ALGO or NCCL_PROTO do",
              "compare the collectives of both ranks: NCCL_DEBUG_SUBSYS=COLL, or the flight recorder"},
    ErrorRule{"cuda", "Cuda failure", "", Weight::kError, false,
              "a call to CUDA failed, often because of an earlier error in one of the program's kernels",
              "run with CUDA_LAUNCH_BLOCKING=1 to find the kernel; dmesg for Xid lines", ReadCudaFailure},
    ErrorRule{"nvlink", "P2P is disabled between NVLINK connected GPUs", "", Weight::kError, false,
              "two GPUs that NVLink joins cannot reach each other: probably hardware",
              "nvidia-smi nvlink -s, dmesg for Xid 74; take the node out"},
    ErrorRule{"shared_memory", "/dev/shm", "No space left", Weight::kError, false, "/dev/shm is full",
              "give the container more (docker --shm-size=8g, an emptyDir of medium Memory), and remove old "
              "/dev/shm/nccl-* files"},
    ErrorRule{"shared_memory", "rror while creating shared memory segment", "", Weight::kError, false,
              "shared memory could not be allocated",
              "give the container more (docker --shm-size=8g, an emptyDir of medium Memory)"},
    ErrorRule{"shared_memory", "failed to extend /dev/shm", "", Weight::kError, false,
              "shared memory could not be allocated",
              "give the container more (docker --shm-size=8g, an emptyDir of medium Memory)"},
    ErrorRule{"version_mismatch", "ismatched NCCL version", "", Weight::kError, false,
              "ranks run different versions of NCCL", "use one image on all nodes", ReadRanks},
    ErrorRule{"duplicate_gpu", "Duplicate GPU detected", "", Weight::kError, false, "two ranks use the same GPU",
              "call torch.cuda.set_device(LOCAL_RANK) before anything else; check the launcher's CUDA_VISIBLE_DEVICES",
              ReadRanks},
    ErrorRule{"net_device_mismatch", "local Net device", "", Weight::kError, false,
              "nodes have different numbers of network devices",
              "find the node that misses one (ibstat, NCCL_IB_HCA); NCCL_IGNORE_NET_MISMATCH=1 can hang silently",
              ReadRanks},
    ErrorRule{"ofi", "NET/OFI Request", "completed with error", Weight::kError, false, "an EFA transfer failed",
              "look at the peer's process first, then at the adapter"},
    ErrorRule{"ofi", "NET/OFI ", "rror", Weight::kError, false, "the EFA plugin failed", ""},
    ErrorRule{"bootstrap", "ootstrap", "", Weight::kError, false, "ranks could not find each other", kReach},
    ErrorRule{"no_interface", "no socket interface found", "", Weight::kError, true, "no network interface matches",
              "check NCCL_SOCKET_IFNAME against `ip addr`"},
    ErrorRule{"no_network", "Failed to initialize any NET plugin", "", Weight::kError, false, "no network can be used",
              "check NCCL_NET, NCCL_NET_PLUGIN and the plugin's own errors above"},
    ErrorRule{"no_gpu_memory_for_buffers", "Failed to CUDA calloc", "", Weight::kError, false,
              "the device has no memory left for NCCL's buffers", "leave memory free beside PyTorch's cache"},
    ErrorRule{"invalid_argument", "nvalid argument", "", Weight::kError, false, "NCCL was called wrongly", ""},
    ErrorRule{"invalid_usage", "nvalid usage", "", Weight::kError, false, "NCCL was called wrongly", ""},
    ErrorRule{"missing_topology", "Could not find real path of", "", Weight::kWarning, false,
              "a device is missing in /sys, as in containers", ""},
};

/// "10.0.0.5<41234>": the first word of that form.
std::string FindPeer(std::string_view message) {
  for (size_t at = message.find('<'); at != std::string_view::npos; at = message.find('<', at + 1)) {
    const size_t end = message.find('>', at);
    if (end == std::string_view::npos) break;
    size_t begin = at;
    while (begin > 0 && message[begin - 1] != ' ' && message[begin - 1] != '(') --begin;
    Words port(message.substr(at + 1, end - at - 1));
    if (begin == at || !port.TakeNumber() || !port.empty()) continue;
    return std::string(message.substr(begin, end - begin + 1).substr(0, 300));
  }
  return "";
}

/// "transport/net.cc:1362 -> 6 [Progress Thread]"
bool ReadCallResult(NcclLogReader& reader, const NcclLineInHand& hand) {
  Words words(hand.message);
  const std::string_view where = words.TakeWord();
  const size_t colon = where.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == where.size() || where.find('.') == std::string_view::npos ||
      std::isdigit(static_cast<unsigned char>(where[colon + 1])) == 0 || !words.Skip(" -> ")) {
    return false;
  }
  const auto result = ToInt32(words.TakeNumber());
  if (!result) return false;
  std::string thread;
  if (words.Skip(" [")) thread = words.TakeUntil("]").substr(0, 64);
  if (!reader.MayKeepError()) return true;
  reader.job().call_results.push_back({.process = hand.process,
                                       .where = std::string(where.substr(0, 200)),
                                       .thread = std::move(thread),
                                       .result = *result,
                                       .place = reader.Place(hand)});
  return true;
}

}  // namespace

const char* HandleNcclError(NcclLogReader& reader, const NcclLineInHand& hand) {
  const bool is_info = hand.line.level == NcclLevel::kInfo || hand.line.level == NcclLevel::kVersion;
  if (is_info && ReadCallResult(reader, hand)) return "call_result";
  const ErrorRule* found = nullptr;
  for (const ErrorRule& rule : kErrorRules) {
    if (is_info && !rule.on_info) continue;
    if (hand.message.find(rule.mark) == std::string_view::npos) continue;
    if (!rule.second.empty() && hand.message.find(rule.second) == std::string_view::npos) continue;
    found = &rule;
    break;
  }
  if (found == nullptr && is_info) return nullptr;
  const char* kind = found == nullptr ? "other_warning" : found->kind;
  if (!reader.MayKeepError()) return kind;
  NcclError error;
  error.process = hand.process;
  error.kind = kind;
  error.text = hand.message.substr(0, 1024);
  error.peer = FindPeer(hand.message);
  error.time_unix_ns = reader.Time(hand);
  error.place_in_source = hand.line.source.substr(0, 200);
  error.place = reader.Place(hand);
  error.warning = found == nullptr || found->weight == Weight::kWarning;
  if (found != nullptr) {
    error.consequence = found->weight == Weight::kConsequence;
    error.meaning = found->meaning;
    error.remedy = found->remedy;
    Words words(hand.message);
    words.SkipPast(found->mark);
    if (found->read != nullptr) found->read(words, error);
  }
  reader.job().errors.push_back(std::move(error));
  return kind;
}

}  // namespace lockstep::ingest
