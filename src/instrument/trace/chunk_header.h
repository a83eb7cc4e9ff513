#pragma once

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "instrument/trace/clock.h"
#include "instrument/trace/file_format.h"
#include "instrument/trace/trace_file.h"

namespace lockstep::instrument {

/// Fills in what begins a chunk of the calling thread.
inline void WriteChunkHeader(const Chunk& chunk, ChunkKind kind, uint32_t thread_number, TraceFile* file) {
  ChunkHeader& header = *chunk.header;
  header.size_bytes = chunk.size_bytes;
  header.kind = kind;
  header.thread_number = thread_number;
  header.thread_id = static_cast<uint64_t>(syscall(SYS_gettid));
  header.chunk_number = file->NextChunkNumber();
  header.anchor = ReadAnchor();
  prctl(PR_GET_NAME, header.thread_name, 0, 0, 0);
  __atomic_store_n(&header.magic, kChunkMagic, __ATOMIC_RELEASE);
}

}  // namespace lockstep::instrument
