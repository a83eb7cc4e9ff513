#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "measure/runner/bench_program.h"

namespace CLI {
class App;
}

namespace lockstep::bench_program {

/// The flags of a benchmark that do not depend on who carries collectives out: what is measured, how, and where the
/// results go. Shared by `lockstep bench collectives` and `python -m lockstep.bench`.
class BenchFlags {
 public:
  void Declare(CLI::App& app);
  /// Of the operations named, or of all. Errors: kInvalidArgument.
  Result<Words> Make(const std::vector<std::string>& operations) const;

  const std::string& page_path() const { return page_path_; }
  const std::string& beside_path() const { return beside_path_; }

 private:
  Result<collective_bench::Plan> MakePlan(const std::vector<std::string>& operations) const;

  int timeout_seconds_ = 300;
  std::string sizes_;
  std::string least_;
  std::string most_;
  double factor_ = 2;
  std::string type_ = "float32";
  std::string reduction_ = "sum";
  int root_ = 0;
  int iterations_ = 20;
  int warmup_ = 5;
  bool no_check_ = false;
  bool no_in_place_ = false;
  bool pairs_ = false;
  bool json_ = false;
  std::string csv_path_;
  std::string page_path_;
  std::string beside_path_;
};

}  // namespace lockstep::bench_program
