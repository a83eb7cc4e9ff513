// Names of files and archive members: any bytes. Up to three names, separated by newlines.
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/natural_order.h"
#include "ingest/bytes/trace_files.h"

namespace {

using namespace lockstep::ingest;

void CheckName(std::string_view name) {
  const NameFacts facts = ReadNameFacts(name);
  FUZZ_CHECK(!facts.rank || (*facts.rank >= 0 && *facts.rank <= 999'999'999));
  FUZZ_CHECK(!facts.world_size || (*facts.world_size > 0 && *facts.world_size <= 999'999'999));
  FUZZ_CHECK(!facts.process_id || *facts.process_id >= 0);
  FUZZ_CHECK(facts.host.has_value() == facts.process_id.has_value());
  FUZZ_CHECK(!facts.host || !facts.host->empty());

  const NameKind kind = KindOfName(name);
  FUZZ_CHECK(kind == NameKind::kOther || !BaseName(name).empty());

  const std::string shown = PrintableName(name);
  for (const char c : shown) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  FUZZ_CHECK(PrintableName(shown) == shown);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> names;
  while (names.size() < 3) {
    const size_t end = rest.find('\n');
    names.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  for (const std::string_view name : names) CheckName(name);

  // A strict total order, or sorting is undefined.
  for (const std::string_view a : names) {
    FUZZ_CHECK(!NaturalLess(a, a));
    for (const std::string_view b : names) {
      FUZZ_CHECK(a == b || NaturalLess(a, b) != NaturalLess(b, a));
      for (const std::string_view c : names) FUZZ_CHECK(!NaturalLess(a, b) || !NaturalLess(b, c) || NaturalLess(a, c));
    }
  }
  return 0;
}
