#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::ingest::nsight {

/// What the payload of one of NCCL's NVTX ranges says of a call.
struct NcclPayload {
  std::optional<uint64_t> communicator = {};
  std::optional<int64_t> message_bytes = {};
  std::optional<int64_t> peer = {};
  std::optional<int64_t> rank = {};
  std::optional<int64_t> rank_count = {};
};

/// Of JSON text, as `nsys export --include-json` decodes payloads.
NcclPayload ReadNcclPayload(std::string_view json);

/// Of the payload's bytes, which older exports hold without their layout: of NCCL's functions the name and the number
/// of bytes tell it. Nullopt for anything else. Sources: NCCL up to 2.23, src/collectives.cc and src/init.cc; later,
/// src/include/nvtx_payload_schemas.h.
std::optional<NcclPayload> DecodeNcclPayload(std::string_view function, std::string_view bytes);

}  // namespace lockstep::ingest::nsight
