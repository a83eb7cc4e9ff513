#pragma once

#include <memory>

#include "ingest/bytes/byte_source.h"

namespace lockstep::ingest {

/// Reads `source` ahead on a thread of its own, a few blocks far, so that decompression and parsing overlap when there
/// are more processors than files. Costs one copy of the bytes and under 1 MiB. Destruction stops the thread within the
/// time of one block. consumed_bytes() may be called from any thread.
std::unique_ptr<ByteSource> Prefetch(std::unique_ptr<ByteSource> source);

}  // namespace lockstep::ingest
