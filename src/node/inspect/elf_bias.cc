#include "node/inspect/elf_bias.h"

#include <algorithm>

namespace lockstep::inspect {

bool FindBias(Elf* elf, const MemoryRange& range, uint64_t* bias) {
  constexpr uint64_t kPageBytes = 4096;
  constexpr size_t kMaxSegments = 256;
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  bool found = false;
  for (size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD) continue;
    const uint64_t first = header.p_offset / kPageBytes * kPageBytes;
    if (range.file_offset < first || range.file_offset >= header.p_offset + header.p_filesz) continue;
    // Linkers such as lld and mold let one segment end and the next begin within a page of the file, which then is
    // mapped for both: the one that may be executed as the mapping may is meant.
    const bool same = ((header.p_flags & PF_X) != 0) == range.executable;
    if (found && !same) continue;
    *bias = range.start - range.file_offset + header.p_offset - header.p_vaddr;
    found = true;
    if (same && first == range.file_offset) return true;
  }
  return found;
}

}  // namespace lockstep::inspect
