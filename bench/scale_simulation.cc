// What `lockstep-mpi analyze` moves and holds for a job of many ranks: every MPI process is a thread here, ranks are
// made in memory (synthetic_run.h: few events each, all metadata), and every question of the analysis is counted.
// Prints one JSON object. docs/scale.md.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/analyze.h"
#include "analysis/collectives.h"
#include "analysis/rank_map.h"
#include "base/team.h"
#include "base/thread_communicator.h"
#include "model/team_holders.h"
#include "synthetic_run.h"

namespace {

using namespace lockstep;

struct Asked {
  uint64_t count = 0;
  uint64_t question_bytes = 0;  ///< To every process.
  uint64_t answer_bytes = 0;    ///< From all of them.
};

/// Counts what goes through.
class CountingHolders final : public model::EventHolders {
 public:
  CountingHolders(std::unique_ptr<model::EventHolders> holders, std::map<std::string, Asked>* asked)
      : holders_(std::move(holders)), asked_(*asked) {}
  std::vector<std::string> Map(std::string_view pass, const std::string& context, const std::string& args,
                               const std::vector<size_t>& rank_indices) override {
    std::vector<std::string> answers = holders_->Map(pass, context, args, rank_indices);
    Asked& asked = asked_[std::string(pass)];
    ++asked.count;
    asked.question_bytes += context.size() + args.size() + 8 * rank_indices.size();
    for (const std::string& answer : answers) asked.answer_bytes += answer.size();
    return answers;
  }

 private:
  std::unique_ptr<model::EventHolders> holders_;
  std::map<std::string, Asked>& asked_;
};

/// kB that are resident now.
uint64_t ResidentKb() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages >> pages;
  return pages * 4;
}

/// What a trace says of its groups: everybody, eight neighbours, and every eighth rank.
void AddGroups(model::Run* run) {
  const auto world = static_cast<int32_t>(run->ranks.size());
  constexpr int32_t kNeighbours = 8;
  std::vector<int32_t> all(static_cast<size_t>(world));
  std::iota(all.begin(), all.end(), 0);
  for (model::RankTrace& trace : run->ranks) {
    std::vector<int32_t> near;
    std::vector<int32_t> far;
    for (const int32_t rank : all) {
      if (rank / kNeighbours == trace.rank.value / kNeighbours) near.push_back(rank);
      if (rank % kNeighbours == trace.rank.value % kNeighbours) far.push_back(rank);
    }
    const auto add = [&trace](const char* name, const char* description, std::vector<int32_t> ranks) {
      const auto size = static_cast<int32_t>(ranks.size());
      trace.groups.push_back({name, description, "nccl", size, std::move(ranks)});
    };
    add("0", "default_pg", all);
    add("1", "mesh_tp", std::move(near));
    add("2", "mesh_dp", std::move(far));
  }
}

/// The run without events, and the parts of it that `process_count` processes hold.
model::Run Deal(model::Run run, size_t process_count, std::vector<model::HeldRuns>* held, uint64_t* head_bytes) {
  const size_t rank_count = run.ranks.size();
  for (model::HeldRuns& runs : *held) {
    model::HeldRun& own = runs[0];
    for (uint32_t id = 0; id < run.names.size(); ++id) own.run.names.Intern(run.names[NameId{id}]);
    own.run.ranks.resize(rank_count);
  }
  for (size_t i = 0; i < rank_count; ++i) {
    const size_t process = i * process_count / rank_count;
    model::RankTrace head;
    {
      model::HeldElsewhere elsewhere{run.ranks[i].DeviceOrdinals()};
      model::RankTrace events;
      run.ranks[i].SwapEvents(&events);
      const std::string bytes = ToBytes(run.ranks[i]);
      *head_bytes += bytes.size();
      head = FromBytes<model::RankTrace>(bytes).value();
      head.elsewhere = std::move(elsewhere);
      run.ranks[i].SwapEvents(&events);
    }
    model::HeldRun& own = (*held)[process][0];
    own.run.ranks[i] = std::move(run.ranks[i]);
    own.rank_indices.push_back(i);
    run.ranks[i] = std::move(head);
  }
  return run;
}

}  // namespace

int main(int argc, char** argv) {
  bench::SyntheticShape shape{.rank_count = 16'384, .step_count = 4, .kernels_per_step = 12};
  size_t process_count = 64;
  CLI::App app("Messages, bytes and memory of lockstep-mpi analyze, simulated", "lockstep_scale_simulation");
  app.add_option("--ranks", shape.rank_count, "ranks of the job (16384)");
  app.add_option("--steps", shape.step_count, "steps of each; one collective a step (4)");
  app.add_option("--kernels", shape.kernels_per_step, "kernels a step (12)");
  bool groups = false;
  app.add_flag("--groups", groups, "ranks list the members of three process groups");
  app.add_option("--processes", process_count, "MPI processes (64)");
  CLI11_PARSE(app, argc, argv);

  uint64_t event_count = 0;
  uint64_t head_bytes = 0;
  model::Run made = bench::MakeSyntheticRun(shape);
  for (const model::RankTrace& rank : made.ranks) {
    for (const model::Track& track : rank.tracks) event_count += track.events.size();
  }
  if (groups) AddGroups(&made);
  std::vector<model::HeldRuns> held(process_count);
  model::Run run = Deal(std::move(made), process_count, &held, &head_bytes);
  const uint64_t before_kb = ResidentKb();

  analysis::RankPasses passes;
  analysis::AddRankPasses(&passes);
  std::map<std::string, Asked> asked;
  std::vector<Traffic> traffic(process_count);
  size_t instance_count = 0;
  double seconds = 0;
  RunOnThreads(process_count, [&](Communicator& communicator) {
    Team team(&communicator);
    model::HandleRelease(&team, &held[communicator.process()]);
    analysis::HandleMaps(&team, &passes, &held[communicator.process()], 1);
    if (!communicator.is_root()) {
      team.Serve();
    } else {
      run.holders = std::make_unique<CountingHolders>(model::MakeTeamHolders(&team, 0), &asked);
      const auto begin = std::chrono::steady_clock::now();
      const auto result = analysis::Analyze(&run, {}, {});
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      instance_count = result ? result->Get<analysis::Collectives>().instances.size() : 0;
      run.holders = nullptr;
      team.End(0);
    }
    traffic[communicator.process()] = communicator.traffic();
  });
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);

  Traffic worker;
  for (size_t i = 1; i < process_count; ++i) {
    worker.sent_bytes = std::max(worker.sent_bytes, traffic[i].sent_bytes);
    worker.received_bytes = std::max(worker.received_bytes, traffic[i].received_bytes);
  }
  fmt::print("{{\"ranks\":{},\"processes\":{},\"events\":{},\"collective_instances\":{},\"analysis_s\":{:.3f},\n",
             shape.rank_count, process_count, event_count, instance_count, seconds);
  fmt::print(
      " \"messages\":{},\"root_sent_bytes\":{},\"root_received_bytes\":{},\"most_sent_bytes_of_others\":{},"
      "\"most_received_bytes_of_others\":{},\n",
      traffic[0].message_count, traffic[0].sent_bytes, traffic[0].received_bytes, worker.sent_bytes,
      worker.received_bytes);
  fmt::print(" \"metadata_bytes\":{},\n", head_bytes);
  fmt::print(" \"resident_before_kb\":{},\"peak_kb\":{},\n \"passes\":[", before_kb, usage.ru_maxrss);
  const char* separator = "";
  for (const auto& [name, numbers] : asked) {
    fmt::print(
        "{}\n  {{\"pass\":\"{}\",\"count\":{},\"question_bytes\":{},\"answer_bytes\":{},\"bytes_per_rank\":{:.0f}}}",
        separator, name, numbers.count, numbers.question_bytes, numbers.answer_bytes,
        static_cast<double>(numbers.answer_bytes) / static_cast<double>(shape.rank_count));
    separator = ",";
  }
  fmt::print("]}}\n");
  return 0;
}
