// A list of hosts, as schedulers and users write them. Names have no brackets, spaces or duplicates, and are within the
// limit; a name by itself is a list of just it.
#include <string_view>
#include <unordered_set>

#include "fuzz.h"
#include "node/control/discovery/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lockstep::control::ExpandHostlist;
  const auto names = ExpandHostlist(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!names) {
    FUZZ_CHECK(!names.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(names->size() <= 65536);
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : *names) {
    FUZZ_CHECK(!name.empty() && name.size() <= 1024);
    FUZZ_CHECK(seen.insert(name).second);
    for (const char c : name) FUZZ_CHECK(static_cast<unsigned char>(c) > ' ' && c != '[' && c != ']' && c != ',');
  }
  if (!names->empty()) {
    const auto again = ExpandHostlist(names->front());
    FUZZ_CHECK(again && again->size() == 1 && again->front() == names->front());
  }
  return 0;
}
