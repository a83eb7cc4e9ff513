#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "base/split.h"
#include "inside/launch/environment.h"
#include "inside/launch/rank_environment.h"
#include "measure/runner/bench_flags.h"
#include "measure/runner/bench_program.h"
#include "node/control/discovery/command_words.h"
#include "programs/cli/bench_show.h"
#include "programs/cli/cli.h"
#include "programs/cli/run/foreground.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/text_flags.h"

namespace lockstep::cli {
namespace {

/// `lockstep bench collectives`: becomes the program that measures, once per rank where a launcher started us so, else
/// what starts the ranks. `lockstep bench show FILE -o PAGE` draws what was measured before.
class BenchCommand : public Subcommand {
 public:
  const char* name() const override { return "bench"; }
  const char* purpose() const override { return "Measure collectives by size: time, algbw, busbw, slow links"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  Result<bench_program::Words> MakeWords() const;
  /// Whether this process is a rank that its launcher's variables bring to the others, rather than MPI.
  Result<bool> MeetsByEnvironment(const launch::RankIdentity& identity) const;
  /// What to become.
  Result<std::vector<std::string>> CommandLine() const;

  std::vector<std::string> words_;
  int rank_count_ = 0;
  std::string launcher_;
  std::string backend_ = "mpi";
  std::string bootstrap_;
  std::string nccl_library_;
  bench_program::BenchFlags flags_;
};

constexpr const char* kMpiProgram = "lockstep-mpi-bench";
constexpr const char* kNcclProgram = "lockstep-nccl-bench";
constexpr const char* kMpiLauncher = "mpirun";
constexpr std::array<std::string_view, 2> kTorchBackends = {"torch", "gloo"};
constexpr const char* kWhat = "collectives";
constexpr const char* kShow = "show";

constexpr const char* kBenchFooter =
    "Sizes are defined as in nccl-tests: one rank's buffer; for all_gather, reduce_scatter and\n"
    "all_to_all the chunks of all ranks together. busbw can be compared with a link's bandwidth\n"
    "(docs/metrics.md#collective-bench). Every size is checked before it is timed.\n"
    "\n"
    "--backend mpi measures MPI on host memory, --backend nccl measures NCCL with one device\n"
    "per rank. Behind a launcher this process is one of the ranks. Otherwise it starts the\n"
    "ranks: MPI's with mpirun, NCCL's by itself, on this host. NCCL and the CUDA driver are\n"
    "opened at run time; NCCL is looked for in LD_LIBRARY_PATH, the system, and the active\n"
    "Python (docs/bench.md).\n"
    "Exit status: 0 done; 1 failed, or a result was wrong; 2 misused.\n"
    "\n"
    "Examples:\n"
    "  lockstep bench collectives -n 4\n"
    "  mpirun --hostfile hosts -n 16 lockstep bench collectives all_reduce -b 8 -e 4G\n"
    "  srun --mpi=pmix -N4 lockstep bench collectives --sizes 1M,4M,16M,64M,256M --json\n"
    "  lockstep bench collectives -n 8 --launcher 'mpirun --hostfile hosts' --pairs\n"
    "  lockstep bench collectives --backend nccl -n 8\n"
    "  torchrun --nnodes 2 --nproc-per-node 8 ... --no-python \\\n"
    "      lockstep bench collectives --backend nccl -b 8 -e 8G\n"
    "  torchrun --nproc-per-node 4 -m lockstep.bench    (torch.distributed: docs/bench.md)\n"
    "  lockstep bench show bench.json --beside earlier.json -o bench.html";

/// Beside this program, else whatever PATH has.
std::string ProgramPath(const char* program) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return program;
  const std::string beside = (self.parent_path() / program).string();
  return ::access(beside.c_str(), X_OK) == 0 ? beside : program;
}

void BenchCommand::Declare(CLI::App& app) {
  app.add_option("WHAT", words_,
                 "collectives, and which of them: all_reduce, all_gather, reduce_scatter, broadcast, reduce, "
                 "all_to_all, send_recv (all); or: show FILE, for an earlier result")
      ->type_name("WHAT...");
  app.option_defaults()->group("Ranks");
  app.add_option("-n,--ranks", rank_count_, "Start this many")->type_name("N");
  app.add_option("--launcher", launcher_, "Program that starts the ranks (mpi: mpirun; nccl: this program)")
      ->type_name("CMD");
  app.option_defaults()->group("Backend");
  app.add_option("--backend", backend_, "Library whose collectives are measured: mpi, nccl (mpi)")->type_name("NAME");
  app.add_option("--nccl-library", nccl_library_, "The libnccl.so.2 to open (searched for)")->type_name("FILE");
  app.add_option("--bootstrap", bootstrap_, "How NCCL's ranks find each other: env (if MASTER_ADDR is set), mpi")
      ->type_name("HOW");
  flags_.Declare(app);
  app.footer(kBenchFooter);
}

Result<bench_program::Words> BenchCommand::MakeWords() const {
  if (words_.empty() || words_.front() != kWhat) {
    return Misuse(fmt::format("bench measures collectives: lockstep bench {} -n 4", kWhat));
  }
  ASSIGN_OR_RETURN(bench_program::Words words, flags_.Make({words_.begin() + 1, words_.end()}));
  if (std::find(kTorchBackends.begin(), kTorchBackends.end(), backend_) != kTorchBackends.end()) {
    return Misuse(
        fmt::format("--backend {}: PyTorch's are measured by lockstep.bench of the Python package: "
                    "torchrun --nproc-per-node 4 -m lockstep.bench (docs/bench.md)",
                    backend_));
  }
  if (backend_ != "mpi" && backend_ != "nccl") {
    return Misuse(fmt::format("--backend {}: expected one of mpi, nccl{}", backend_,
                              DidYouMean(backend_, std::vector<std::string>{"mpi", "nccl"})));
  }
  if (!bootstrap_.empty() && bootstrap_ != "env" && bootstrap_ != "mpi") {
    return Misuse(fmt::format("--bootstrap {}: expected one of env, mpi", bootstrap_));
  }
  if (backend_ == "mpi" && (!nccl_library_.empty() || !bootstrap_.empty())) {
    return Misuse("--nccl-library and --bootstrap are for --backend nccl");
  }
  words.backend = backend_ == "nccl" ? bench_program::BackendKind::kNccl : bench_program::BackendKind::kMpi;
  // Ranks may have another folder.
  if (!nccl_library_.empty()) words.nccl_library = std::filesystem::absolute(nccl_library_).string();
  return words;
}

Result<bool> BenchCommand::MeetsByEnvironment(const launch::RankIdentity& identity) const {
  if (backend_ != "nccl" || bootstrap_ == "mpi") return false;
  const bool has_address = !launch::Environment::Own().Get("MASTER_ADDR").empty();
  if (!bootstrap_.empty() || has_address || launch::StartsMpiRanks(identity.launcher)) {
    return !bootstrap_.empty() || has_address;
  }
  return Misuse(
      fmt::format("{} gives the rank ({}) but not where the other ranks are: set MASTER_ADDR to the name of rank 0's "
                  "host, on all ranks",
                  launch::LauncherName(identity.launcher), *identity.rank));
}

Result<std::vector<std::string>> BenchCommand::CommandLine() const {
  ASSIGN_OR_RETURN(bench_program::Words words, MakeWords());
  const bool is_nccl = words.backend == bench_program::BackendKind::kNccl;
  const launch::RankIdentity identity = launch::FindRank(launch::Environment::Own());
  const bool is_mpi_rank = launch::StartsMpiRanks(identity.launcher);
  // Without --ranks: a RANK that was left in a shell does not stand in the way of starting some.
  const bool is_rank = is_mpi_rank || (is_nccl && identity.rank && rank_count_ == 0);
  std::vector<std::string> line;
  const char* program = kMpiProgram;
  if (is_rank) {
    if (rank_count_ != 0) {
      return Misuse(fmt::format("a launcher ({}) started this process as a rank: leave --ranks to it",
                                launch::LauncherName(identity.launcher)));
    }
    ASSIGN_OR_RETURN(const bool by_environment, MeetsByEnvironment(identity));
    if (by_environment) program = kNcclProgram;
  } else {
    if (rank_count_ < 1) {
      return Misuse(is_nccl ? "say how many ranks to start (-n 8), or start it by torchrun, mpirun or srun"
                            : "say how many ranks to start (-n 4), or start it by mpirun or srun --mpi=pmix");
    }
    if (is_nccl && launcher_.empty() && bootstrap_ != "mpi") {
      program = kNcclProgram;
      words.start_count = rank_count_;
    } else {
      const std::string launcher = launcher_.empty() ? kMpiLauncher : launcher_;
      for (const std::string_view word : SplitAt(launcher)) line.emplace_back(word);
      if (line.empty()) return Misuse("--launcher: no command");
      line.emplace_back("-n");
      line.push_back(std::to_string(rank_count_));
      if (bootstrap_ == "env") program = kNcclProgram;
    }
  }
  line.push_back(ProgramPath(program));
  for (std::string& word : bench_program::ToArguments(words)) line.push_back(std::move(word));
  return line;
}

Result<int> BenchCommand::Run(Console& console) {
  const std::string& page_path = flags_.page_path();
  if (!page_path.empty()) RETURN_IF_ERROR(CheckPagePath(page_path));
  if (!words_.empty() && words_.front() == kShow) {
    if (words_.size() != 2 || page_path.empty()) {
      return Misuse("bench show takes a file and a page to write: lockstep bench show bench.json -o bench.html");
    }
    return ShowBenchResults(words_[1], flags_.beside_path(), page_path, console);
  }
  ASSIGN_OR_RETURN(std::vector<std::string> words, CommandLine());
  console.out.flush();
  const std::string program = words.front();
  Error error = ReplaceByCommand({.arguments = std::move(words), .environment = {}});
  if (error.code == ErrorCode::kNotFound) {
    error.message += program.ends_with(kNcclProgram) ? "; it belongs beside lockstep: install it again"
                     : program.ends_with(kMpiProgram)
                         ? "; lockstep was built without MPI: install Open MPI or MPICH and "
                           "build it again"
                         : "; install Open MPI or MPICH, or name another launcher with "
                           "--launcher";
  }
  return error;
}

}  // namespace

std::unique_ptr<Subcommand> MakeBench() { return std::make_unique<BenchCommand>(); }

}  // namespace lockstep::cli
