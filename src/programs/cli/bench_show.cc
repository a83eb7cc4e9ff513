#include "programs/cli/bench_show.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/output_file.h"
#include "ingest/bench_results/bench_results.h"
#include "present/page/fabric/fabric_page.h"
#include "present/report/format.h"
#include "programs/cli/cli.h"

namespace lockstep::cli {

Result<int> ShowBenchResults(const std::string& results_file, const std::string& earlier_file,
                             const std::string& page_file, Console& console) {
  ASSIGN_OR_RETURN(const model::Fabric fabric, ingest::ReadBenchResults(results_file));
  std::optional<model::Fabric> earlier;
  if (!earlier_file.empty()) {
    ASSIGN_OR_RETURN(earlier, ingest::ReadBenchResults(earlier_file));
  }
  const std::string page = page::FabricPage(fabric, earlier ? &*earlier : nullptr);
  RETURN_IF_ERROR(WriteOutputFile(page_file, page));
  const auto best = std::max_element(fabric.points.begin(), fabric.points.end(), [](const auto& a, const auto& b) {
    return a.busbw_bytes_per_s < b.busbw_bytes_per_s;
  });
  console.out << fmt::format("{} ranks, {}: at best {} of bus bandwidth, {} of {}\n", fabric.rank_count, fabric.backend,
                             report::FormatRate(best->busbw_bytes_per_s), best->operation,
                             report::FormatBytes(best->bytes));
  for (const model::FabricPair& pair : fabric.pairs) {
    if (!pair.is_slow) continue;
    console.out << fmt::format("slow link: ranks {} and {}, {} there, {} back\n", pair.rank_a, pair.rank_b,
                               report::FormatRate(pair.bytes_per_s), report::FormatRate(pair.back_bytes_per_s));
  }
  return kDone;
}

}  // namespace lockstep::cli
