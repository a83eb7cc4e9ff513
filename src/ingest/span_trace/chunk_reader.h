#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/span_trace/wire_format.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest::span_trace {

/// One chunk's whole records.
struct RecordChunk {
  uint64_t thread_id = 0;
  uint32_t thread_number = 0;
  bool is_copy = false;
  std::string thread_name;
  std::vector<Slot> slots;
};

/// A file as it lies there, nothing interpreted.
struct RawFile {
  Header header = {};
  std::map<uint64_t, RecordChunk> chunks;  ///< By number: of a thread in order of time.
  std::unordered_map<uint32_t, std::string> names;
  std::vector<uint64_t> name_chunk_numbers;  ///< In no order.
  std::vector<Anchor> anchors;               ///< In no order.
  uint64_t bytes = 0;
  uint64_t damaged_pages = 0;
  uint64_t first_damage = 0;  ///< Byte.
  bool is_cut = false;        ///< The file ends inside a chunk.
};

/// Reads all chunks; what is damaged is skipped page by page. Errors: kCorruptData for what is not a span trace or is
/// of an unknown version; kIo, kLimitExceeded, kCancelled before the first chunk.
Result<RawFile> ReadChunks(ByteSource& source, const std::string& display_name, const TraceReaderOptions& options);

}  // namespace lockstep::ingest::span_trace
