#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/finding.h"

namespace lockstep::analysis {

/// How long a pass took, all threads added.
struct PassTiming {
  std::string name;
  int64_t cpu_ns = 0;
};

/// What passes found, each under the type of its output: a struct of tables that names its pass as `kPass`, as in
/// `result.Get<Kernels>().rows`. Code that reads one output includes only the header of that pass.
class AnalysisResult {
 public:
  /// Whether the pass ran; its tables may be empty all the same.
  bool Has(std::string_view pass) const { return outputs_.contains(pass); }
  template <typename Output>
  bool Has() const {
    return Has(Output::kPass);
  }

  /// Empty when the pass did not run.
  template <typename Output>
  const Output& Get() const {
    static const Output kNone{};
    const auto found = outputs_.find(Output::kPass);
    return found == outputs_.end() ? kNone : *std::any_cast<Output>(&found->second);
  }

  /// The same to be written, made when it is not there: the pass counts as run.
  template <typename Output>
  Output& Edit() {
    std::any& output = outputs_[std::string(Output::kPass)];
    if (!output.has_value()) output.emplace<Output>();
    return *std::any_cast<Output>(&output);
  }

  /// Moves it out: the pass counts as not run.
  template <typename Output>
  Output Take() {
    Output output = std::move(Edit<Output>());
    Drop(Output::kPass);
    return output;
  }
  void Drop(std::string_view pass) {
    if (const auto found = outputs_.find(pass); found != outputs_.end()) outputs_.erase(found);
  }

  std::vector<Finding> findings;  ///< Largest gain first, then severity, then id.
  int64_t step_count = 0;         ///< Most steps any rank has; 0 = no steps in the files.
  int64_t job_span_ns = 0;        ///< First start to last end over all ranks, aligned clock (first window).
  std::vector<PassTiming> timings;

 private:
  std::map<std::string, std::any, std::less<>> outputs_;  // by pass
};

}  // namespace lockstep::analysis
