// What a process says of itself: versions, interfaces, networks, settings, plugins.
#include <algorithm>

#include "base/ascii.h"
#include "ingest/nccl/log_events.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclInterface;
using evidence::NcclProcess;

constexpr size_t kListLimit = 256;

/// "eth0:10.0.92.140<0>", also "[0]eth0:fe80::1%eth0<0>".
NcclInterface ReadInterface(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(std::min(text.find(']'), text.size() - 1) + 1);
  const size_t colon = text.find(':');
  NcclInterface result{std::string(text.substr(0, colon)), {}, {}};
  if (colon != std::string_view::npos) {
    const std::string_view address = text.substr(colon + 1);
    result.address = address.substr(0, address.find('<'));
  }
  return result;
}

void KeepSetting(NcclProcess& process, std::string_view name, std::string_view value, evidence::NcclPlace place,
                 bool by_plugin) {
  if (name.empty() || process.settings.size() >= kListLimit) return;
  for (const evidence::NcclSetting& known : process.settings) {
    if (known.name == name && known.value == value) return;
  }
  process.settings.push_back({std::string(name), std::string(value), place, by_plugin});
}

bool SetGpuDirect(NcclLogReader& reader, const NcclLineInHand& hand, bool on) {
  NcclProcess& process = reader.Process(hand);
  // One adapter with it is enough to have it; which connections use it, channel lines tell.
  if (process.gpu_direct.value_or(false) && !on) return true;
  process.gpu_direct = on;
  process.gpu_direct_place = reader.Place(hand);
  return true;
}

}  // namespace

bool HandleVersion(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclProcess& process = reader.Process(hand);
  process.version = words.TakeWord().substr(0, 64);
  process.version_place = reader.Place(hand);
  return !process.version.empty();
}

bool HandleDriverVersion(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const auto number = words.TakeNumber();
  if (!number || *number < 0) return false;
  reader.Process(hand).driver_version = std::to_string(*number / 1000) + "." + std::to_string(*number % 1000 / 10);
  return true;
}

bool HandleBootstrap(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclProcess& process = reader.Process(hand);
  process.bootstrap = ReadInterface(words.TakeWord());
  process.bootstrap_place = reader.Place(hand);
  return true;
}

bool HandleNetwork(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclProcess& process = reader.Process(hand);
  process.network = words.rest().substr(0, 64);
  process.network_place = reader.Place(hand);
  return true;
}

/// "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
bool HandleAdapters(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclProcess& process = reader.Process(hand);
  process.adapters.clear();
  while (words.SkipPast("[")) {
    if (!words.TakeNumber() || !words.Skip("]")) continue;
    std::string_view adapter = words.TakeUntil(" ;");
    NcclInterface interface;
    const size_t slash = adapter.rfind('/');
    if (slash != std::string_view::npos) {
      interface.link = adapter.substr(slash + 1);
      adapter = adapter.substr(0, slash);
    }
    interface.name = adapter.substr(0, adapter.find(':'));
    if (process.adapters.size() < kListLimit) process.adapters.push_back(std::move(interface));
  }
  return true;
}

bool HandleNoAdapter(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  reader.Process(hand).no_adapter_found = true;
  return true;
}

bool HandleSockets(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  NcclProcess& process = reader.Process(hand);
  process.sockets.clear();
  while (words.SkipPast("[")) {
    if (!words.TakeNumber() || !words.Skip("]")) continue;
    if (process.sockets.size() < kListLimit) process.sockets.push_back(ReadInterface(words.TakeUntil(" ")));
  }
  return true;
}

bool HandleGpuDirectOn(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  return SetGpuDirect(reader, hand, true);
}
bool HandleGpuDirectOff(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  return SetGpuDirect(reader, hand, false);
}

/// "NCCL_SHM_DISABLE set by environment to 1." — the dot ends the sentence of numeric settings only.
bool HandleSetting(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  std::string_view name = hand.message.substr(0, hand.message.find(' '));
  std::string_view value = words.rest();
  if (value.size() > 1 && value.back() == '.' && IsDigit(value[value.size() - 2])) {
    value.remove_suffix(1);
  }
  KeepSetting(reader.Process(hand), name.substr(0, 128), value, reader.Place(hand), false);
  return true;
}

/// "NET/OFI Running on P4d platform, Setting NCCL_TOPO_FILE environment variable to /opt/topo.xml"
bool HandlePluginSetting(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const std::string_view name = words.TakeWord();
  if (!words.Skip(" environment variable to ")) return false;
  KeepSetting(reader.Process(hand), name.substr(0, 128), words.rest(), reader.Place(hand), true);
  return true;
}

bool HandleAffinity(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  const auto device = ToInt32(words.TakeNumber());
  if (!device || !words.Skip(" to ")) return false;
  auto& affinity = reader.Process(hand).affinity;
  if (affinity.size() < kListLimit) affinity[*device] = words.rest().substr(0, 512);
  return true;
}

bool HandleNvls(NcclLogReader& reader, const NcclLineInHand& hand, Words words) {
  reader.Process(hand).nvls = !words.Skip("not");
  return true;
}

bool HandlePlugin(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  auto& plugins = reader.Process(hand).plugins;
  constexpr size_t kPluginLimit = 32;
  const std::string_view text = hand.message.substr(0, 200);
  if (plugins.size() < kPluginLimit && std::find(plugins.begin(), plugins.end(), text) == plugins.end()) {
    plugins.emplace_back(text);
  }
  return true;
}

bool HandleEnd(NcclLogReader& reader, const NcclLineInHand& hand, Words) {
  reader.Process(hand).ended = true;
  return true;
}

}  // namespace lockstep::ingest
