// Files of /proc and /sys that sensors read, by what the first byte says. What is taken from them is bounded, printable
// and a number.
#include <cmath>
#include <set>
#include <string>
#include <string_view>

#include "base/proc_stat.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "node/agent/host/host_text.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  using namespace lockstep::agent;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: {
      const auto rate = ParsePortRate(text);
      FUZZ_CHECK(!rate || (std::isfinite(*rate) && *rate >= 0));
      (void)IsActivePort(text);
      break;
    }
    case 1: {
      (void)ParseProcStat(text);
      (void)ParseResidentPages(text);
      (void)ValueOfLine(text, "read_bytes");
      break;
    }
    case 2: {
      std::set<std::string> modes;
      for (const auto& [mode, ticks] : ParseCpuTicks(text)) FUZZ_CHECK(modes.insert(mode).second);
      break;
    }
    default: {
      std::set<std::string> names;
      for (const InterfaceBytes& each : ParseInterfaces(text)) {
        FUZZ_CHECK(names.insert(each.name).second && Printable(each.name) == each.name);
      }
      FUZZ_CHECK(names.size() <= 64);
    }
  }
  return 0;
}
