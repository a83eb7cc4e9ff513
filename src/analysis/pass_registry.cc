#include "analysis/pass_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "analysis/analyze.h"

namespace lockstep::analysis {
namespace {

/// Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view NearestPass(std::string_view name) {
  const auto& passes = Passes();
  return std::min_element(passes.begin(), passes.end(),
                          [name](const PassInfo& a, const PassInfo& b) {
                            return EditDistance(name, a.name) < EditDistance(name, b.name);
                          })
      ->name;
}

const PassInfo* FindPass(std::string_view name) {
  for (const PassInfo& pass : Passes()) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

void Require(const PassInfo& pass, std::set<std::string_view>* wanted) {
  if (!wanted->insert(pass.name).second) return;
  for (const std::string_view need : pass.needs) {
    if (const PassInfo* needed = FindPass(need)) Require(*needed, wanted);
  }
}

}  // namespace

const std::vector<PassInfo>& Passes() {
  static const std::vector<PassInfo> kPasses = {
      {"breakdown", "Where did the time go: compute, communication, memory, idle?", {}},
      {"idle", "Why was the device idle: host too late, gap between kernels, other?", {}},
      {"kernels", "Which kernels, copies and sets take the device's time?", {}},
      {"operators", "Which operators take the time, on the CPU and on the device?", {}},
      {"collectives", "How long did each collective wait, and how fast did it transfer?", {}},
      {"wait_states", "What made the others wait first of all, and on which rank?", {"collectives"}},
      {"stragglers", "Which rank do the others wait for, and what was it doing?", {"wait_states"}},
      {"imbalance", "Do the ranks have equal work?", {"breakdown", "memory"}},
      {"memory", "How much memory was in use, and how near to the limit?", {}},
      {"launch", "Does the host launch work early enough?", {}},
      {"critical_path", "Which chain of work over all ranks fixes the step time?", {"collectives"}},
      {"groups", "What is each process group for, and what does it cost?", {}},
      {"ddp", "Are gradient buckets sent while the backward pass runs?", {"groups"}},
      {"fsdp", "Are sharded weights gathered before they are needed?", {"groups"}},
      {"pipeline", "How long do pipeline stages wait for each other?", {"groups"}},
      {"moe", "Do all experts get as many tokens, by what all_to_alls carry?", {"groups"}},
      {"inference", "How long are prefill, decode and requests, where they are marked?", {}},
      {"regions", "How long are the ranges that the program marks, on CPU and device, and on which rank?", {}},
      {"counters", "How busy were the devices' parts, and what did the program count, where it was sampled?", {}},
      {"flops", "How much of the device's arithmetic is used, where shapes were recorded?", {}},
      {"measured_kernels", "What bounds the kernels, where tables of Nsight Compute lie beside the traces?", {}},
      {"what_if",
       "What would each change gain? (--what-if; operation traces: always)",
       {"critical_path", "pipeline"},
       true},
      {"bubbles", "How long do pipeline stages idle? (operation traces)", {}, true},
      {"fabric", "How much of what the fabric can do do the collectives get? (--fabric)", {"collectives"}, true},
  };
  return kPasses;
}

Result<std::vector<std::string>> ResolvePasses(const std::vector<std::string>& only, std::string_view also) {
  std::set<std::string_view> wanted;
  if (const PassInfo* pass = FindPass(also)) Require(*pass, &wanted);
  for (const std::string& name : only) {
    const PassInfo* pass = FindPass(name);
    if (pass == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("no pass is named '{}'; did you mean '{}'?", name, NearestPass(name))};
    }
    Require(*pass, &wanted);
  }
  std::vector<std::string> resolved;
  for (const PassInfo& pass : Passes()) {
    if ((only.empty() && !pass.on_request) || wanted.count(pass.name) > 0) resolved.emplace_back(pass.name);
  }
  return resolved;
}

}  // namespace lockstep::analysis
