#include "programs/cli/version.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "programs/cli/cli.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {
namespace {

class VersionCommand : public Subcommand {
 public:
  const char* name() const override { return "version"; }
  const char* purpose() const override { return "Print the version, the compiler and the JSON schemas"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;
};

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

void VersionCommand::Declare(CLI::App& app) { app.footer("Examples:\n  lockstep version\n  lockstep --version"); }

Result<int> VersionCommand::Run(Console& console) {
  console.out << VersionText() << "\ncompiler  " << kCompiler
              << "\nschemas   lockstep.analyze/1, lockstep.bench-collectives/1, lockstep.capture/1, "
                 "lockstep.compare/1, lockstep.doctor/1, lockstep.hang/1, "
                 "lockstep.kernels/1, lockstep.logs/1, lockstep.merge/1, lockstep.nccl_log/1, lockstep.query/1, "
                 "lockstep.scaling/1, lockstep.stage_comparison/1, lockstep.stages/1, "
                 "lockstep.status/1, lockstep.top/1, lockstep.watch/1\n";
  return kDone;
}

}  // namespace

std::string VersionText() { return "lockstep " LOCKSTEP_VERSION; }

std::unique_ptr<Subcommand> MakeVersion() { return std::make_unique<VersionCommand>(); }

}  // namespace lockstep::cli
