#include "inside/trace/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace lockstep::instrument {
namespace {

// The second number of /proc/self/statm, in pages.
uint64_t ResidentBytes() {
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* const second = strchr(text, ' ');
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (second == nullptr || page_bytes <= 0) return 0;
  return strtoull(second, nullptr, 10) * static_cast<uint64_t>(page_bytes);
}

}  // namespace

ProcessMemory ReadProcessMemory() {
  const int error = errno;
  ProcessMemory memory;
  memory.resident_bytes = ResidentBytes();
  struct sysinfo host = {};
  if (sysinfo(&host) == 0) memory.host_bytes = uint64_t{host.totalram} * host.mem_unit;
  errno = error;
  return memory;
}

}  // namespace lockstep::instrument
