#include "node/inspect/remote_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "base/split.h"
#include "base/text_scan.h"
#include "node/inspect/proc_files.h"

namespace lockstep::inspect {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kMaxPieces = 1024;  // IOV_MAX.
constexpr size_t kMaxMapsBytes = size_t{32} << 20;

bool ParseRange(std::string_view line, MemoryRange* range) {
  // Addresses, rights, offset, device, inode; then the path, which may hold anything.
  const std::vector<std::string_view> words = SplitAt(line, " ");
  if (words.size() < 5) return false;
  const std::string_view addresses = words[0], rights = words[1], offset = words[2];
  const size_t dash = addresses.find('-');
  if (dash == std::string_view::npos || rights.size() < 4) return false;
  if (!ReadNumber(addresses.substr(0, dash), &range->start, 16) ||
      !ReadNumber(addresses.substr(dash + 1), &range->end, 16) || !ReadNumber(offset, &range->file_offset, 16) ||
      range->start >= range->end)
    return false;
  range->inode = LeadingNumber<decltype(range->inode)>(words[4]).value_or(0);
  range->readable = rights[0] == 'r';
  range->writable = rights[1] == 'w';
  range->executable = rights[2] == 'x';
  if (words.size() > 5) range->path = line.substr(static_cast<size_t>(words[5].data() - line.data()));
  return true;
}

}  // namespace

std::string ReadMemory(pid_t pid, uint64_t address, size_t size_bytes) {
  std::string bytes(size_bytes, '\0');
  size_t done = 0;
  while (done < size_bytes) {
    // One piece a page: the kernel gives what comes before the first piece that it cannot read.
    std::vector<iovec> pieces;
    size_t planned = done;
    while (planned < size_bytes && pieces.size() < kMaxPieces) {
      const uint64_t at = address + planned;
      if (at < address) break;  // Past the end of all addresses.
      const size_t size = std::min<size_t>(size_bytes - planned, kPageBytes - at % kPageBytes);
      pieces.push_back({.iov_base = reinterpret_cast<void*>(at), .iov_len = size});
      planned += size;
    }
    if (pieces.empty()) break;
    const iovec local = {.iov_base = bytes.data() + done, .iov_len = planned - done};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, pieces.data(), pieces.size(), 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
    if (done < planned) break;
  }
  bytes.resize(done);
  return bytes;
}

std::vector<MemoryRange> ParseMaps(std::string_view text) {
  std::vector<MemoryRange> ranges;
  LineScanner lines(text);
  for (std::string_view line; ranges.size() < kMaxRanges && lines.Next(&line);) {
    MemoryRange range;
    if (ParseRange(line, &range)) ranges.push_back(std::move(range));
  }
  return ranges;
}

std::vector<MemoryRange> ReadMaps(pid_t pid) {
  return ParseMaps(ReadProcFile(pid, "maps", kMaxMapsBytes).value_or(""));
}

UniqueFd OpenMappedFile(pid_t pid, const std::string& path) {
  const UniqueFd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return {};
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  UniqueFd file(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how))));
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

}  // namespace lockstep::inspect
