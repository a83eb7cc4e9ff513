#include "measure/runner/bench_program.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "base/output_file.h"
#include "base/text_scan.h"
#include "ingest/bench_results/bench_results.h"
#include "measure/report/collective_bench_report.h"
#include "present/page/fabric/fabric_page.h"

namespace lockstep::bench_program {
namespace {

constexpr int kMostSeconds = 1'000'000;
constexpr int kMostRanks = 1024;

Result<int> Number(const std::string& text, int least, int most) {
  const auto number = WholeNumber<int>(text);
  if (number && *number >= least && *number <= most) return *number;
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("'{}' is not a number from {} to {}", text, least, most)};
}

/// What the root has ready before any rank measures, so that no measurement is wasted.
struct Outputs {
  std::ofstream csv;
  std::optional<model::Fabric> before;
};

Status Prepare(const Words& words, size_t rank_count, Outputs* outputs) {
  if (!words.csv_path.empty()) {
    outputs->csv.open(words.csv_path);
    if (!outputs->csv.is_open()) {
      return Error{.code = ErrorCode::kPermissionDenied, .message = "cannot be written", .file = words.csv_path};
    }
  }
  if (words.page_path.empty()) return {};
  if (rank_count < 2) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "one rank has no bandwidth that a page could draw"};
  }
  if (!words.beside_path.empty()) {
    ASSIGN_OR_RETURN(outputs->before, ingest::ReadBenchResults(words.beside_path));
  }
  return CheckOutputFile(words.page_path);
}

Status WritePage(const collective_bench::Results& results, const Outputs& outputs, const std::string& path) {
  std::ostringstream json;
  report::WriteBenchJson(results, json);
  ASSIGN_OR_RETURN(const model::Fabric fabric, ingest::ParseBenchResults(json.str(), "lockstep bench collectives"));
  const std::string page = page::FabricPage(fabric, outputs.before ? &*outputs.before : nullptr);
  return WriteOutputFile(path, page);
}

}  // namespace

std::vector<std::string> ToArguments(const Words& words) {
  std::vector<std::string> arguments = {words.json ? "--json" : "--text"};
  const auto add = [&](const char* name, std::string value) {
    arguments.emplace_back(name);
    arguments.push_back(std::move(value));
  };
  if (!words.csv_path.empty()) add("--csv", words.csv_path);
  if (!words.page_path.empty()) add("--page", words.page_path);
  if (!words.beside_path.empty()) add("--beside", words.beside_path);
  if (words.backend == BackendKind::kNccl) {
    add("--backend", "nccl");
    add("--timeout", std::to_string(words.timeout.count()));
    if (!words.nccl_library.empty()) add("--nccl-library", words.nccl_library);
    if (words.start_count > 0) add("--start", std::to_string(words.start_count));
  }
  for (std::string& word : collective_bench::ToWords(words.plan)) arguments.push_back(std::move(word));
  return arguments;
}

Result<Words> FromArguments(const std::vector<std::string>& arguments) {
  Words words;
  std::vector<std::string> plan;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--json" || name == "--text") {
      words.json = name == "--json";
      continue;
    }
    if (!name.starts_with("--")) {
      plan.push_back(name);
      continue;
    }
    const std::string value = i + 1 < arguments.size() ? arguments[++i] : "";
    if (name == "--csv") {
      words.csv_path = value;
    } else if (name == "--page") {
      words.page_path = value;
    } else if (name == "--beside") {
      words.beside_path = value;
    } else if (name == "--nccl-library") {
      words.nccl_library = value;
    } else if (name == "--timeout") {
      ASSIGN_OR_RETURN(const int seconds, Number(value, 1, kMostSeconds));
      words.timeout = std::chrono::seconds(seconds);
    } else if (name == "--start") {
      ASSIGN_OR_RETURN(words.start_count, Number(value, 1, kMostRanks));
    } else if (name == "--backend" && (value == "mpi" || value == "nccl")) {
      words.backend = value == "mpi" ? BackendKind::kMpi : BackendKind::kNccl;
    } else {
      return Error{.code = ErrorCode::kInvalidArgument, .message = fmt::format("'{} {}' is not known", name, value)};
    }
  }
  ASSIGN_OR_RETURN(words.plan, collective_bench::FromWords(plan));
  return words;
}

Result<int> MeasureAndTell(collective_bench::Backend* backend, const Words& words) {
  const bool is_root = backend->communicator().is_root();
  Outputs outputs;
  const Status prepared = is_root ? Prepare(words, backend->communicator().process_count(), &outputs) : Status{};
  std::string can_begin = prepared ? "1" : "0";
  backend->communicator().Broadcast(&can_begin);
  if (!prepared) return prepared.error();
  if (can_begin == "0") return Error{.code = ErrorCode::kInvalidArgument, .message = "rank 0 cannot begin"};
  if (is_root && !words.json) report::WriteBenchHead(words.plan, std::cout);
  ASSIGN_OR_RETURN(const auto results,
                   collective_bench::Measure(backend, words.plan, [&](const collective_bench::Row& row) {
                     if (!words.json) report::WriteBenchRow(words.plan, row, std::cout);
                   }));
  if (!is_root) return kDone;
  if (words.json) {
    report::WriteBenchJson(results, std::cout);
  } else {
    report::WriteBenchTail(results, std::cout);
  }
  if (outputs.csv.is_open()) report::WriteBenchCsv(results, outputs.csv);
  std::cout.flush();
  if (!words.page_path.empty()) RETURN_IF_ERROR(WritePage(results, outputs, words.page_path));
  return report::WrongCount(results) == 0 && std::cout ? kDone : kFailed;
}

void Complain(const char* program, bool is_root, const Error& error) {
  if (is_root || error.rank) std::fputs(fmt::format("{}: {}\n", program, error.ToString()).c_str(), stderr);
}

}  // namespace lockstep::bench_program
