#include "measure/runner/bench_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "base/nearest.h"
#include "base/split.h"

namespace lockstep::bench_program {
namespace {

using collective_bench::Operation;
using collective_bench::Plan;
using collective_bench::Reduction;

constexpr const char* kDefaultSizes = "8,1K,64K,1M,4M,16M,64M";

Error Misuse(std::string message) { return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)}; }

template <typename T, typename Parse, typename Name, typename All>
Result<T> ParsedName(const std::string& text, const char* what, const All& all, const Parse& parse, const Name& name) {
  if (const auto value = parse(text)) return *value;
  std::vector<std::string> names;
  for (const auto& each : all) names.emplace_back(name(each));
  return Misuse(
      fmt::format("{} '{}': expected one of {}{}", what, text, fmt::join(names, ", "), DidYouMean(text, names)));
}

}  // namespace

void BenchFlags::Declare(CLI::App& app) {
  const char* sweep = "Sweep";
  app.add_option("--sizes", sizes_, fmt::format("Sizes ({})", kDefaultSizes))->type_name("LIST")->group(sweep);
  app.add_option("-b,--min-bytes", least_, "Or: from this size on")->type_name("SIZE")->group(sweep);
  app.add_option("-e,--max-bytes", most_, "to this one")->type_name("SIZE")->group(sweep);
  app.add_option("-f,--factor", factor_, "Factor between one size and the next (2)")->type_name("K")->group(sweep);
  app.add_option("--dtype", type_, "uint8, int32, int64, float32, float64 (float32)")->type_name("TYPE")->group(sweep);
  app.add_option("--reduction", reduction_, "sum, min, max (sum)")->type_name("OP")->group(sweep);
  app.add_option("--root", root_, "Root of broadcast and reduce (0)")->type_name("RANK")->group(sweep);
  const char* method = "Method";
  app.add_option("--iterations", iterations_, "Timed calls of each size (20)")->type_name("N")->group(method);
  app.add_option("--warmup", warmup_, "Calls before them (5)")->type_name("N")->group(method);
  app.add_flag("--no-check", no_check_, "Do not check the results")->group(method);
  app.add_flag("--no-in-place", no_in_place_, "Measure out of place only, if the operation supports it")->group(method);
  app.add_flag("--pairs", pairs_, "Also measure every pair of ranks: a matrix, and slow links")->group(method);
  app.add_option("--timeout", timeout_seconds_, "Give up after this long without the other ranks; MPI waits (300)")
      ->type_name("SECONDS")
      ->group(method);
  const char* output = "Output";
  app.add_flag("--json", json_, "One JSON object (lockstep.bench-collectives/1, docs/json.md)")->group(output);
  app.add_option("--csv", csv_path_, "Also write a table")->type_name("FILE")->group(output);
  app.add_option("-o,--output", page_path_, "Also write a page with curves and links drawn: one HTML file")
      ->type_name("FILE.html")
      ->group(output);
  app.add_option("--beside", beside_path_, "On the page, beside an earlier result (--json)")
      ->type_name("FILE")
      ->group(output);
}

Result<Plan> BenchFlags::MakePlan(const std::vector<std::string>& operations) const {
  Plan plan;
  if (!operations.empty()) plan.operations.clear();
  for (const std::string& word : operations) {
    ASSIGN_OR_RETURN(const Operation operation,
                     ParsedName<Operation>(word, "operation", collective_bench::kOperations,
                                           collective_bench::ParseOperation, collective_bench::OperationName));
    plan.operations.push_back(operation);
  }
  ASSIGN_OR_RETURN(plan.type, ParsedName<collective_bench::DataType>(type_, "--dtype", collective_bench::kDataTypes,
                                                                     collective_bench::ParseDataType,
                                                                     collective_bench::DataTypeName));
  constexpr std::array kReductions = {Reduction::kSum, Reduction::kMin, Reduction::kMax};
  ASSIGN_OR_RETURN(plan.reduction,
                   ParsedName<Reduction>(reduction_, "--reduction", kReductions, collective_bench::ParseReduction,
                                         collective_bench::ReductionName));
  if (!least_.empty() || !most_.empty()) {
    if (!sizes_.empty()) return Misuse("--sizes and --min-bytes, --max-bytes exclude each other");
    ASSIGN_OR_RETURN(const int64_t least, collective_bench::ParseBytes(least_.empty() ? "8" : least_));
    ASSIGN_OR_RETURN(const int64_t most, collective_bench::ParseBytes(most_.empty() ? "64M" : most_));
    ASSIGN_OR_RETURN(plan.sizes_bytes, collective_bench::Sweep(least, most, factor_));
  } else {
    std::string_view list = sizes_.empty() ? kDefaultSizes : std::string_view(sizes_);
    while (!list.empty()) {
      const std::string_view part = TakePart(&list, ',');
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

Result<Words> BenchFlags::Make(const std::vector<std::string>& operations) const {
  Words words;
  ASSIGN_OR_RETURN(words.plan, MakePlan(operations));
  if (timeout_seconds_ < 1) return Misuse("--timeout: a second at least");
  if (!beside_path_.empty() && page_path_.empty()) return Misuse("--beside is drawn on the page that -o names");
  words.timeout = std::chrono::seconds(timeout_seconds_);
  words.json = json_;
  words.csv_path = csv_path_;
  words.page_path = page_path_;
  words.beside_path = beside_path_;
  return words;
}

}  // namespace lockstep::bench_program
