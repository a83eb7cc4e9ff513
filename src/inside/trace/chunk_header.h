#pragma once

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/trace/clock.h"
#include "inside/trace/file_format.h"
#include "inside/trace/trace_file.h"

namespace lockstep::instrument {

/// Takes a chunk's records away before its place is used again. Its head still has the length, without the magic, so a
/// reader of a killed process's file skips it.
inline void EmptyChunk(ChunkHeader* chunk, uint32_t size_bytes) {
  __atomic_store_n(&chunk->magic, 0, __ATOMIC_RELEASE);
  memset(static_cast<void*>(chunk + 1), 0, size_bytes - sizeof(ChunkHeader));
}

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
