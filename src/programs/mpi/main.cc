// lockstep-mpi: analyze, compare, hang and merge by the processes of an MPI job. Process 0 runs the command and prints;
// the others hold events and answer (base/team.h). docs/scale.md.

#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "analysis/comparison/run_profile.h"
#include "analysis/rank_map.h"
#include "base/mpi/finalize.h"
#include "base/mpi/launch.h"
#include "base/mpi/mpi_communicator.h"
#include "base/team.h"
#include "ingest/evidence/team_evidence.h"
#include "ingest/job/team_ingest.h"
#include "model/team_holders.h"
#include "programs/cli/cli.h"

namespace {

using namespace lockstep;

constexpr int kMisused = 2;
constexpr int64_t kDefaultDeadlineS = 3600;
constexpr int64_t kLongestDeadlineS = 30 * 24 * 3600;

/// Takes "--deadline SECONDS" off the arguments; absent when what follows is not a number of seconds.
std::optional<int64_t> TakeDeadline(std::vector<char*>* words) {
  const auto flag =
      std::find_if(words->begin(), words->end(), [](const char* word) { return std::strcmp(word, "--deadline") == 0; });
  if (flag == words->end()) return kDefaultDeadlineS;
  if (flag + 1 == words->end()) return std::nullopt;
  int64_t seconds = 0;
  const char* text = *(flag + 1);
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), seconds);
  if (error != std::errc() || *end != '\0' || seconds <= 0 || seconds > kLongestDeadlineS) return std::nullopt;
  words->erase(flag, flag + 2);
  return seconds;
}

int Work(std::vector<char*> words, const std::optional<mpi::LauncherWord>& word) {
  mpi::MpiCommunicator communicator;
  if (const std::string lonely = mpi::ExplainLonelyProcesses(word, communicator.process_count()); !lonely.empty()) {
    if (word->process == 0) std::fprintf(stderr, "lockstep-mpi: %s\n", lonely.c_str());
    return kMisused;
  }

  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  const auto thread_count = static_cast<uint32_t>(std::max<size_t>(1, processors / mpi::ProcessesOnNode()));
  model::HeldRuns runs;
  Team team(&communicator);
  model::HandleRelease(&team, &runs);
  analysis::RankPasses passes;
  analysis::AddRankPasses(&passes);
  comparison::AddRankPasses(&passes);
  analysis::HandleMaps(&team, &passes, &runs, thread_count);
  ingest::TeamIngest ingest(&team, &runs, thread_count);
  ingest::TeamEvidence evidence(&team, thread_count);
  if (!communicator.is_root()) return team.Serve();
  const int status = cli::TeamMain(static_cast<int>(words.size()) - 1, words.data(), &ingest, &evidence);
  team.End(status);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = mpi::AskLauncher([](const char* name) { return std::getenv(name); });
  std::vector<char*> words(argv, argv + argc);
  const std::optional<int64_t> deadline_s = TakeDeadline(&words);
  words.push_back(nullptr);
  if (!deadline_s) {
    if (!word || word->process == 0)
      std::fputs("lockstep-mpi: --deadline takes a number of seconds, such as --deadline 600\n", stderr);
    return kMisused;
  }
  // Before MPI's beginning, which waits for every process.
  const mpi::Deadline deadline{std::chrono::seconds(*deadline_s)};
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  try {
    const int status = Work(std::move(words), word);
    // `srun -K` ends the others when one returns a status that is not 0, and then tells that. They are about to return
    // it too, however late a busy machine lets them: the work is done.
    if (status != 0) std::signal(SIGTERM, SIG_IGN);
    mpi::Finalize(status);
    if (status != 0 && word && word->process_count > 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep-mpi: %s\n", error.what());
    mpi::AbortJob(1);
  }
  return 1;
}
