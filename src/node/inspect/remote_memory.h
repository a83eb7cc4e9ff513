#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/unique_fd.h"

namespace lockstep::inspect {

/// Bytes of another process's memory from `address` on, read without stopping it: as many as there are up to
/// `size_bytes`, which may be none. What comes back is whatever the process says: hostile, and perhaps torn.
std::string ReadMemory(pid_t pid, uint64_t address, size_t size_bytes);

/// Same for a value of fixed size; false: it could not be read whole.
template <typename Value>
requires std::is_trivially_copyable_v<Value>
bool ReadMemoryValue(pid_t pid, uint64_t address, Value* value) {
  const std::string bytes = ReadMemory(pid, address, sizeof(Value));
  if (bytes.size() != sizeof(Value)) return false;
  bytes.copy(reinterpret_cast<char*>(value), sizeof(Value));
  return true;
}

/// One line of /proc/PID/maps.
struct MemoryRange {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  std::string path;  ///< "/usr/lib/libc.so.6", "[stack]", "[vdso]"; "" = anonymous.
};
/// Lines that are not of the expected form are passed over; at most `kMaxRanges` are taken.
std::vector<MemoryRange> ParseMaps(std::string_view text);
constexpr size_t kMaxRanges = 65536;
std::vector<MemoryRange> ReadMaps(pid_t pid);

/// A mapped file, opened as the process itself sees its file system (other mount namespaces too), never out of its
/// root, and only where it is a regular file. Invalid: it could not be had.
UniqueFd OpenMappedFile(pid_t pid, const std::string& path);

}  // namespace lockstep::inspect
