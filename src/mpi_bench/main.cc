// lockstep-mpi-bench: what `lockstep bench collectives` starts, once per rank. Its arguments are the words of a plan
// (collective_bench/plan.h), and before them "--text", or "--json"; "--csv FILE" too. Rank 0 prints. Exit status 0
// done, 1 failed or wrong results, 2 misused.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "mpi/launch.h"
#include "mpi_bench/mpi_backend.h"
#include "report/collective_bench/collective_bench_report.h"

namespace {

using namespace lockstep;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kMisused = 2;

int Fail(mpi_bench::MpiBackend& backend, const std::string& why, int status) {
  if (backend.communicator().is_root()) std::fprintf(stderr, "lockstep-mpi-bench: %s\n", why.c_str());
  return status;
}

int Work(const std::vector<std::string>& arguments) {
  mpi_bench::MpiBackend backend;
  const bool is_root = backend.communicator().is_root();
  const auto word = mpi::AskLauncher([](const char* name) { return std::getenv(name); });
  const std::string lonely = mpi::ExplainLonelyProcesses(word, backend.communicator().process_count());
  if (!lonely.empty()) {
    if (word->process == 0) std::fprintf(stderr, "lockstep-mpi-bench: %s\n", lonely.c_str());
    return kMisused;
  }
  bool json = false;
  std::string csv_path;
  std::vector<std::string> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--json") {
      json = true;
    } else if (arguments[i] == "--csv" && i + 1 < arguments.size()) {
      csv_path = arguments[++i];
    } else if (arguments[i] != "--text") {
      words.push_back(arguments[i]);
    }
  }
  const auto plan = collective_bench::FromWords(words);
  if (!plan) return Fail(backend, plan.error().message + "; start it by lockstep bench collectives", kMisused);
  std::ofstream csv;
  if (is_root && !csv_path.empty()) {
    csv.open(csv_path);
    if (!csv) std::fprintf(stderr, "lockstep-mpi-bench: %s: cannot be written\n", csv_path.c_str());
  }
  std::string can_write = csv_path.empty() || csv ? "1" : "0";
  backend.communicator().Broadcast(&can_write);
  if (can_write == "0") return kFailed;

  if (is_root && !json) report::WriteBenchHead(*plan, std::cout);
  const auto results = collective_bench::Measure(&backend, *plan, [&](const collective_bench::Row& row) {
    if (!json) report::WriteBenchRow(*plan, row, std::cout);
  });
  if (!results) return Fail(backend, results.error().ToString(), kFailed);
  if (!is_root) return kDone;
  if (json) {
    report::WriteBenchJson(*results, std::cout);
  } else {
    report::WriteBenchTail(*results, std::cout);
  }
  if (csv.is_open()) report::WriteBenchCsv(*results, csv);
  std::cout.flush();
  return report::WrongCount(*results) == 0 && std::cout ? kDone : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    const int status = Work({argv + 1, argv + argc});
    MPI_Finalize();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-mpi-bench: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, kFailed);
  }
  return kFailed;
}
