#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "inside/launch/ncu_command.h"
#include "inside/launch/nsys_command.h"
#include "inside/launch/rank_filter.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

enum class Profiler : uint8_t { kKineto, kNsys, kNcu, kNone };

/// What `lockstep run` is to do besides running CMD.
struct ProfileRequest {
  Profiler profiler = Profiler::kKineto;
  launch::RankFilter filter;
  std::string out;           ///< Folder of the reports; empty: by the job's id.
  std::string name_pattern;  ///< launch::ExpandName.
  std::string tool;          ///< Path of nsys or ncu; empty: looked for.
  std::string scratch;       ///< TMPDIR of the tool.
  bool overwrites = false;
  bool is_dry_run = false;
  launch::NsysRequest nsys;
  launch::NcuRequest ncu;
  std::string kernels_from;  ///< JSON of `lockstep analyze`; empty: none.
  int64_t top = 5;           ///< How many of its kernels.

  const char* tool_name() const { return profiler == Profiler::kNcu ? "ncu" : "nsys"; }
};

/// The flags of `lockstep run` that ask for a profiler.
class ProfileFlags {
 public:
  void Declare(CLI::App& app);
  /// Errors: kInvalidArgument for values and combinations that mean nothing.
  Result<ProfileRequest> Read() const;
  /// The flags as they were given, but --out: for a command line of `lockstep run`.
  std::vector<std::string> WordsWithoutOut() const;

 private:
  Status ReadRange(launch::NsysRequest* nsys) const;
  Status ReadNcu(ProfileRequest* request) const;
  Status RefuseOthersFlags(Profiler profiler) const;

  const CLI::App* app_ = nullptr;
  std::string profile_;
  std::string ranks_;
  std::string out_;
  std::string name_;
  std::string tool_;
  std::string scratch_;
  std::string traces_;
  std::string range_;
  std::string delay_;
  std::string duration_;
  int64_t range_count_ = 1;
  std::vector<std::string> nsys_options_;
  std::string kernels_from_;
  std::vector<std::string> kernels_;
  std::string set_;
  int64_t top_ = 5;
  int64_t skip_ = -1;
  int64_t count_ = 1;
  std::vector<std::string> ncu_options_;
  bool overwrites_ = false;
  bool is_dry_run_ = false;
  bool prints_statistics_ = false;
  bool exports_ = false;
};

}  // namespace lockstep::cli
