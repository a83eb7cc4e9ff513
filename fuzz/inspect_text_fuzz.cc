// Texts that a process under inspection has a say in: /proc's files with its names, its helper's answer, its server's
// HTTP, a code object's table of lines. The first byte chooses which; bounds hold and nothing is read beyond the end.
#include <string>
#include <string_view>

#include "base/proc_stat.h"
#include "fuzz.h"
#include "node/inspect/devices.h"
#include "node/inspect/job_dump.h"
#include "node/inspect/local_server.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/python_frames.h"
#include "node/inspect/remote_memory.h"
#include "node/inspect/tcp_sockets.h"
#include "node/inspect/wire.h"
#include "node/proc/job_environment.h"

namespace {

bool IsPrintable(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
  }
  return true;
}

void CheckHelperAnswer(std::string_view text) {
  lockstep::inspect::JobDump dump;
  lockstep::inspect::ParseHelperAnswer(text, &dump);
  FUZZ_CHECK(dump.record.size() <= text.size());
  FUZZ_CHECK(IsPrintable(dump.reason));
  for (const auto& thread : dump.threads) {
    FUZZ_CHECK(IsPrintable(thread.name) && thread.tid >= 0);
    for (const auto& frame : thread.python) {
      FUZZ_CHECK(IsPrintable(frame.function) && IsPrintable(frame.file) && frame.line >= 0);
    }
  }
}

void CheckWire(std::string_view text) {
  lockstep::inspect::WireReader reader(text);
  size_t total = 0;
  while (!reader.done()) {
    reader.Get<uint64_t>();
    total += reader.GetText().size();
  }
  FUZZ_CHECK(total <= text.size());
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::inspect;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 9) {
    case 0:
      if (const auto stat = lockstep::ParseProcStat(text)) FUZZ_CHECK(stat->name.size() <= text.size());
      ParseBlockedCall(text);
      ParseFields(text);
      break;
    case 1:
      for (const MemoryRange& range : ParseMaps(text)) FUZZ_CHECK(range.start < range.end);
      break;
    case 2:
      for (const TableSocket& socket : ParseSocketTable(text)) FUZZ_CHECK(IsPrintable(socket.socket.local));
      break;
    case 3: CheckHelperAnswer("lockstep.hang/1\n" + std::string(text)); break;
    case 4: FUZZ_CHECK(FindHelperSocket(text, {1, 7, 42}).size() <= text.size()); break;
    case 5:
      if (const auto answer = ParseHttpAnswer(text)) FUZZ_CHECK(answer->body.size() <= text.size());
      break;
    case 6:
      for (uint64_t unit = 0; unit < 64; ++unit) {
        const auto line = LineOf(text, 10, unit);
        FUZZ_CHECK(!line || *line >= 0);
      }
      break;
    case 7:
      for (const auto& device : ParseGpuLines(text, kGpuHealthQuery)) FUZZ_CHECK(IsPrintable(device.name));
      FUZZ_CHECK(lockstep::proc::EnvironmentValue(text, "RANK").size() <= text.size());
      break;
    default: CheckWire(text); break;
  }
  return 0;
}
