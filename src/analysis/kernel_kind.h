#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/run.h"

namespace lockstep::analysis {

enum class KernelKind : uint8_t { kCompute, kCommunication, kMemcpy, kMemset };
const char* KernelKindName(KernelKind kind);  ///< "compute", "communication", "memcpy", "memset".

/// True for CPU ranges that are a collective of a CPU backend: "gloo:all_reduce", "mpi:...", "ucc:...".
bool IsCpuCollectiveName(std::string_view name);

/// The names of a run's device events.
struct DeviceNames {
  std::vector<uint64_t> counts;              ///< By NameId: device events.
  std::vector<bool> recorded_as_collective;  ///< By NameId: kernels whose own metadata says what collective they are.
};

/// What one rank adds to DeviceNames.
struct RankDeviceNames {
  std::vector<std::pair<NameId, uint64_t>> counts;  ///< By name; only those there are.
  std::vector<NameId> recorded_as_collective;       ///< Sorted, distinct.
};
RankDeviceNames MapDeviceNames(const model::RankTrace& trace);

/// Cost: O(device events), on several threads.
DeviceNames FindDeviceNames(const model::Run& run, uint32_t thread_count = 0);

/// By NameId: is a kernel of this name communication? One entry per name of the run, so that passes test a bit, not a
/// string. Names that contain one of `own_kernels` are communication as well.
std::vector<bool> ClassifyCommunication(const model::Run& run, const DeviceNames& device_names,
                                        const std::vector<std::string>& own_kernels);
std::vector<bool> ClassifyCommunication(const model::Run& run, const std::vector<std::string>& own_kernels = {});

/// A ledger row that names kernels which sound like collectives and count as compute; absent when there are none.
std::optional<model::LedgerEntry> NoteUnclaimedCollectives(const model::Run& run, const DeviceNames& device_names,
                                                           const std::vector<bool>& is_communication);
std::optional<model::LedgerEntry> NoteUnclaimedCollectives(const model::Run& run,
                                                           const std::vector<bool>& is_communication);

}  // namespace lockstep::analysis
