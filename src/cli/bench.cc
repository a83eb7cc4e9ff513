#include "cli/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/cli.h"
#include "cli/foreground.h"
#include "cli/nearest.h"
#include "cli/run_input.h"
#include "control/discovery/command_words.h"
#include "launch/environment.h"
#include "launch/rank_environment.h"

namespace lockstep::cli {
namespace {

using collective_bench::Operation;
using collective_bench::Plan;

constexpr const char* kProgram = "lockstep-mpi-bench";
constexpr const char* kDefaultSizes = "8,1K,64K,1M,4M,16M,64M";
constexpr const char* kWhat = "collectives";

constexpr const char* kFooter =
    "Sizes are those of nccl-tests: of one rank's buffer; of all_gather, reduce_scatter and\n"
    "all_to_all of all ranks' chunks together. busbw can be compared with what a link carries\n"
    "(docs/metrics.md#collective-bench). Started without ranks of its own, it starts them with\n"
    "mpirun; behind a launcher it is one of them. Every size is checked before it is timed.\n"
    "Exit status: 0 done; 1 failed, or a result was wrong; 2 misused.\n"
    "\n"
    "Examples:\n"
    "  lockstep bench collectives -n 4\n"
    "  mpirun --hostfile hosts -n 16 lockstep bench collectives all_reduce -b 8 -e 8G\n"
    "  srun --mpi=pmix -N4 lockstep bench collectives --sizes 1M,4M,16M,64M,256M --json\n"
    "  lockstep bench collectives -n 8 --launcher 'mpirun --hostfile hosts' --pairs";

template <typename T, typename Parse, typename Name, typename All>
Result<T> Named(const std::string& text, const char* what, const All& all, const Parse& parse, const Name& name) {
  if (const auto value = parse(text)) return *value;
  std::vector<std::string> names;
  for (const auto& each : all) names.emplace_back(name(each));
  return Misuse(
      fmt::format("{} '{}': expected one of {}{}", what, text, fmt::join(names, ", "), DidYouMean(text, names)));
}

/// Beside this program, else whatever PATH has.
std::string ProgramPath() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return kProgram;
  const std::string beside = (self.parent_path() / kProgram).string();
  return ::access(beside.c_str(), X_OK) == 0 ? beside : kProgram;
}

}  // namespace

void BenchCommand::Declare(CLI::App& app) {
  app.add_option("WHAT", words_,
                 "collectives, and which: all_reduce, all_gather, reduce_scatter, broadcast, reduce, "
                 "all_to_all, send_recv (all of them)")
      ->type_name("WHAT...");
  const char* ranks = "Ranks";
  app.add_option("-n,--ranks", rank_count_, "Start this many, with --launcher")->type_name("N")->group(ranks);
  app.add_option("--launcher", launcher_, "What starts them (mpirun)")->type_name("CMD")->group(ranks);
  const char* sweep = "Sweep";
  app.add_option("--sizes", sizes_, fmt::format("Sizes ({})", kDefaultSizes))->type_name("LIST")->group(sweep);
  app.add_option("-b,--min-bytes", least_, "Or: from this size on")->type_name("SIZE")->group(sweep);
  app.add_option("-e,--max-bytes", most_, "to this one")->type_name("SIZE")->group(sweep);
  app.add_option("-f,--factor", factor_, "each so many times the one before (2)")->type_name("K")->group(sweep);
  app.add_option("--dtype", type_, "uint8, int32, int64, float32, float64 (float32)")->type_name("TYPE")->group(sweep);
  app.add_option("--reduction", reduction_, "sum, min, max (sum)")->type_name("OP")->group(sweep);
  app.add_option("--root", root_, "Root of broadcast and reduce (0)")->type_name("RANK")->group(sweep);
  const char* method = "Method";
  app.add_option("--iterations", iterations_, "Timed calls of each size (20)")->type_name("N")->group(method);
  app.add_option("--warmup", warmup_, "Calls before them (5)")->type_name("N")->group(method);
  app.add_flag("--no-check", no_check_, "Do not look at the results")->group(method);
  app.add_flag("--no-in-place", no_in_place_, "Out of place only")->group(method);
  app.add_flag("--pairs", pairs_, "Also every two ranks alone: a matrix, and slow links")->group(method);
  const char* output = "Output";
  app.add_flag("--json", json_, "One JSON object (lockstep.bench-collectives/1, docs/json.md)")->group(output);
  app.add_option("--csv", csv_file_, "Also write a table")->type_name("FILE")->group(output);
  app.footer(kFooter);
}

Result<Plan> BenchCommand::MakePlan() const {
  Plan plan;
  if (words_.empty() || words_.front() != kWhat) {
    return Misuse(fmt::format("bench measures collectives: lockstep bench {} -n 4", kWhat));
  }
  if (words_.size() > 1) plan.operations.clear();
  for (size_t i = 1; i < words_.size(); ++i) {
    ASSIGN_OR_RETURN(const Operation operation,
                     Named<Operation>(words_[i], "operation", collective_bench::kOperations,
                                      collective_bench::ParseOperation, collective_bench::OperationName));
    plan.operations.push_back(operation);
  }
  ASSIGN_OR_RETURN(plan.type,
                   Named<collective_bench::DataType>(type_, "--dtype", collective_bench::kDataTypes,
                                                     collective_bench::ParseDataType, collective_bench::DataTypeName));
  constexpr std::array kReductions = {collective_bench::Reduction::kSum, collective_bench::Reduction::kMin,
                                      collective_bench::Reduction::kMax};
  ASSIGN_OR_RETURN(plan.reduction, Named<collective_bench::Reduction>(reduction_, "--reduction", kReductions,
                                                                      collective_bench::ParseReduction,
                                                                      collective_bench::ReductionName));
  if (!least_.empty() || !most_.empty()) {
    if (!sizes_.empty()) return Misuse("--sizes and --min-bytes, --max-bytes exclude each other");
    ASSIGN_OR_RETURN(const int64_t least, collective_bench::ParseBytes(least_.empty() ? "8" : least_));
    ASSIGN_OR_RETURN(const int64_t most, collective_bench::ParseBytes(most_.empty() ? "64M" : most_));
    ASSIGN_OR_RETURN(plan.sizes_bytes, collective_bench::Sweep(least, most, factor_));
  } else {
    std::string_view list = sizes_.empty() ? kDefaultSizes : std::string_view(sizes_);
    while (!list.empty()) {
      const std::string_view part = list.substr(0, list.find(','));
      list.remove_prefix(std::min(part.size() + 1, list.size()));
      ASSIGN_OR_RETURN(const int64_t size, collective_bench::ParseBytes(part));
      plan.sizes_bytes.push_back(size);
    }
  }
  plan.root = root_;
  plan.iterations = iterations_;
  plan.warmup = warmup_;
  plan.check = !no_check_;
  plan.in_place = !no_in_place_;
  plan.pairs = pairs_;
  // What FromWords refuses would be refused by every rank.
  ASSIGN_OR_RETURN(const Plan checked, collective_bench::FromWords(collective_bench::ToWords(plan)));
  return checked;
}

Result<std::vector<std::string>> BenchCommand::CommandLine() const {
  ASSIGN_OR_RETURN(const Plan plan, MakePlan());
  std::vector<std::string> words;
  const launch::RankIdentity identity = launch::FindRank(launch::Environment::Own());
  const bool is_rank = launch::StartsMpiRanks(identity.launcher);
  if (is_rank && rank_count_ != 0) {
    return Misuse(fmt::format("a launcher ({}) started this process as a rank: leave --ranks to it",
                              launch::LauncherName(identity.launcher)));
  }
  if (!is_rank) {
    if (rank_count_ < 1) {
      return Misuse("say how many ranks to start (-n 4), or start it by mpirun or srun --mpi=pmix");
    }
    for (const std::string_view word : control::Words(launcher_)) words.emplace_back(word);
    if (words.empty()) return Misuse("--launcher: no command");
    words.emplace_back("-n");
    words.push_back(std::to_string(rank_count_));
  }
  words.push_back(ProgramPath());
  words.emplace_back(json_ ? "--json" : "--text");
  if (!csv_file_.empty()) {
    words.emplace_back("--csv");
    words.push_back(csv_file_);
  }
  for (std::string& word : collective_bench::ToWords(plan)) words.push_back(std::move(word));
  return words;
}

Result<int> BenchCommand::Run(Console& console) {
  ASSIGN_OR_RETURN(std::vector<std::string> words, CommandLine());
  console.out.flush();
  const std::string program = words.front();
  Error error = ReplaceByCommand({.arguments = std::move(words), .environment = {}});
  if (error.code == ErrorCode::kNotFound) {
    error.message += program.ends_with(kProgram)
                         ? "; lockstep was built without MPI: install Open MPI or MPICH and build it again"
                         : "; install Open MPI or MPICH, or name another launcher with --launcher";
  }
  return error;
}

}  // namespace lockstep::cli
