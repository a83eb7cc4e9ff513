#include "analysis/bandwidth.h"

#include <map>
#include <tuple>
#include <utility>

#include "analysis/quantiles.h"

namespace lockstep::analysis {

std::vector<BandwidthRow> ComputeBandwidth(const Collectives& collectives) {
  struct Values {
    std::vector<double> busbw;
    std::vector<double> algbw;
  };
  std::map<std::tuple<std::string, std::optional<int32_t>, int64_t>, Values> by_key;
  for (const CollectiveInstance& instance : collectives.instances) {
    if (!instance.bytes || !instance.busbw_bytes_per_s || !instance.algbw_bytes_per_s) continue;
    Values& values = by_key[{instance.name, instance.group_size, *instance.bytes}];
    values.busbw.push_back(*instance.busbw_bytes_per_s);
    values.algbw.push_back(*instance.algbw_bytes_per_s);
  }
  std::vector<BandwidthRow> rows;
  rows.reserve(by_key.size());
  for (auto& [key, values] : by_key) {
    BandwidthRow row;
    std::tie(row.name, row.group_size, row.bytes) = key;
    row.count = values.busbw.size();
    row.busbw_bytes_per_s = FiveNumbers(&values.busbw);
    row.algbw_median_bytes_per_s = FiveNumbers(&values.algbw)[2];
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lockstep::analysis
