#include "programs/cli/workload_flag.h"

#include <fmt/format.h>

#include <string_view>

#include "base/json_object.h"
#include "base/utf8.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {

Result<model::Workload> ReadWorkloadFlags(const std::vector<std::string>& words) {
  model::Workload workload;
  for (const std::string& word : words) {
    const size_t cut = word.find('=');
    const std::string key = word.substr(0, cut);
    if (cut == std::string::npos || key.empty() || key.size() > model::kMostWorkloadKeyBytes ||
        !IsWord(key, model::kWorkloadKeyAlso)) {
      return Misuse(
          fmt::format("--workload {}: expected key=value, the key of letters, digits and \"{}\", such as "
                      "--workload model=gpt2-medium",
                      Printable(word), model::kWorkloadKeyAlso));
    }
    const std::string value = word.substr(cut + 1);
    if (value.size() > model::kMostWorkloadValueBytes || ValidUtf8(value) != value) {
      return Misuse(fmt::format("--workload {}: its value has to be UTF-8 of at most {} bytes", key,
                                model::kMostWorkloadValueBytes));
    }
    if (!workload.emplace(key, value).second) return Misuse(fmt::format("--workload {}: the key is given twice", key));
  }
  if (workload.size() > model::kMostWorkloadKeys) {
    return Misuse(fmt::format("--workload: {} keys; {} at most", workload.size(), model::kMostWorkloadKeys));
  }
  return workload;
}

}  // namespace lockstep::cli
