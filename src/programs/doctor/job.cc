#include "programs/doctor/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/nanoseconds.h"
#include "present/report/format.h"
#include "present/report/text_page.h"

namespace lockstep::doctor {
namespace {

constexpr int64_t kApartNs = 50'000'000;    // What a common start on several nodes is held to.
constexpr int64_t kFarApartNs = kSecondNs;  // From here on logs and records of nodes cannot be put in order.
constexpr size_t kValueBytes = 80;

/// "job 4711", or what it has instead of an id; "" where there is one job only.
std::string JobSubject(const jobs::JobView& job, size_t job_count) {
  if (job_count <= 1) return "";
  return job.id.empty() ? fmt::format("of {}", job.user) : "job " + job.id;
}

std::string RanksText(const std::vector<int32_t>& ranks) { return report::RankList(ranks, kRanksShown); }

/// Values of something that should be equal on all ranks, and which ranks have which value; the most common first.
struct Variants {
  std::vector<std::pair<std::string, std::vector<int32_t>>> values;
  std::vector<int32_t> odd_ranks() const {
    std::vector<int32_t> ranks;
    for (size_t i = 1; i < values.size(); ++i) {
      ranks.insert(ranks.end(), values[i].second.begin(), values[i].second.end());
    }
    std::ranges::sort(ranks);
    return ranks;
  }
  std::string Text() const {
    std::vector<std::string> texts;
    for (const auto& [value, ranks] : values) {
      texts.push_back(fmt::format("{} on {} {}", value.substr(0, kValueBytes), ranks.size() == 1 ? "rank" : "ranks",
                                  RanksText(ranks)));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

Variants VariantsOf(const jobs::JobView& job, const std::function<std::string(const control::Process&)>& value_of) {
  std::map<std::string, std::vector<int32_t>> by_value;
  for (const jobs::PlacedProcess& placed : job.ranks) {
    const std::string value = value_of(*placed.process);
    if (!value.empty() && placed.process->rank) by_value[value].push_back(*placed.process->rank);
  }
  Variants variants;
  variants.values.assign(by_value.begin(), by_value.end());
  std::ranges::stable_sort(variants.values,
                           [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return variants;
}

/// Of a setting's family: whether ranks that differ in it can hang or fail, or only run otherwise.
bool SteersCommunication(std::string_view name) {
  return !name.starts_with("OMP_") && !name.starts_with("PYTORCH_") && !name.starts_with("TORCH_LOGS");
}

/// Settings that name a file or device of each rank's own.
bool IsOfEachRank(std::string_view name) {
  return name.ends_with("_FILE") || name.ends_with("_DIR") || name.ends_with("_PATH") || name == "NCCL_HOSTID";
}

}  // namespace

Check Line(std::string id, std::string subject, CheckStatus status, std::string finding, std::string advice,
           std::vector<std::string> hosts) {
  return {std::move(id), std::move(subject), status, std::move(finding), std::move(advice), {}, std::move(hosts), {}};
}

void CheckNodes(const JobFacts& facts, std::vector<Check>* checks) {
  std::map<std::string, std::vector<std::string>> versions;
  for (const jobs::NodeView& node : facts.view.nodes) {
    if (!node.status) {
      checks->push_back(
          Line("node", node.host, CheckStatus::kProblem, node.error ? node.error->ToString() : "does not answer",
               "check that the node is up and lockstepd runs there (systemctl status lockstepd)", {node.host}));
      continue;
    }
    versions[node.status->version].push_back(node.host);
    for (const std::string& problem : node.status->problems) {
      checks->push_back(Line("node", node.host, CheckStatus::kWarning, "its lockstepd says: " + problem));
    }
  }
  checks->push_back(Line("node", "", facts.view.answered_count() > 0 ? CheckStatus::kOk : CheckStatus::kProblem,
                         fmt::format("{} of {} nodes answer", facts.view.answered_count(), facts.view.nodes.size())));
  if (versions.size() < 2) return;
  std::vector<std::string> texts;
  for (const auto& [version, hosts] : versions) {
    texts.push_back(fmt::format("{} on {}", version, fmt::join(hosts, ", ")));
  }
  checks->push_back(Line("node", "", CheckStatus::kWarning,
                         fmt::format("different versions of lockstepd: {}", fmt::join(texts, "; ")),
                         "install the same version on all nodes"));
}

void CheckRanks(const JobFacts& facts, std::vector<Check>* checks) {
  const std::vector<jobs::JobView> jobs = jobs::JobsOf(facts.view);
  bool is_any = false;
  for (const jobs::JobView& job : jobs) {
    if (job.ranks.empty()) continue;
    is_any = true;
    Check check = Line("ranks", JobSubject(job, jobs.size()), CheckStatus::kOk, "");
    const size_t count = job.ranks.size();
    if (!job.world_size) {
      check.status = CheckStatus::kWarning;
      check.finding = fmt::format("{} processes; the number of ranks of the job is not known", count);
      check.advice = "start it with torchrun, srun or mpirun, which tell each rank its number";
    } else if (!job.missing_ranks.empty()) {
      check.status = CheckStatus::kProblem;
      check.finding = fmt::format("{} of {} ranks are not there: {}", job.missing_ranks.size(), *job.world_size,
                                  RanksText(job.missing_ranks));
      check.advice =
          "look at those ranks' logs: they ended, never started, or run without KINETO_USE_DAEMON=1; 'lockstep "
          "doctor' on their node says which";
      check.ranks = job.missing_ranks;
    } else {
      check.finding = fmt::format("all {} are there, on {} nodes", *job.world_size, job.hosts.size());
    }
    check.figures = {{"ranks", static_cast<double>(count), "count"},
                     {"missing", static_cast<double>(job.missing_ranks.size()), "count"}};
    checks->push_back(std::move(check));
  }
  if (is_any) return;
  checks->push_back(facts.view.job_id.empty()
                        ? Line("ranks", "", CheckStatus::kSkipped, "no job runs on these nodes")
                        : Line("ranks", "", CheckStatus::kProblem,
                               fmt::format("no process of job {} is known on these nodes", facts.view.job_id),
                               "start jobs with KINETO_USE_DAEMON=1, or by 'lockstep run'"));
}

void CheckVersions(const JobFacts& facts, std::vector<Check>* checks) {
  struct Kind {
    const char* name;
    std::string (*value_of)(const control::Process&);
  };
  const auto kinds = std::to_array<Kind>({
      {"PyTorch", [](const control::Process& process) { return process.torch_version; }},
      {"Python", [](const control::Process& process) { return process.python_version; }},
      {"device", [](const control::Process& process) { return process.device; }},
  });
  const std::vector<jobs::JobView> jobs = jobs::JobsOf(facts.view);
  for (const jobs::JobView& job : jobs) {
    if (job.ranks.empty()) continue;
    Check check = Line("versions", JobSubject(job, jobs.size()), CheckStatus::kOk, "");
    std::vector<std::string> same;
    std::vector<std::string> different;
    for (const Kind& kind : kinds) {
      const Variants variants = VariantsOf(job, kind.value_of);
      if (variants.values.size() == 1) same.push_back(fmt::format("{} {}", kind.name, variants.values[0].first));
      if (variants.values.size() < 2) continue;
      different.push_back(fmt::format("{} {}", kind.name, variants.Text()));
      for (const int32_t rank : variants.odd_ranks()) check.ranks.push_back(rank);
    }
    if (different.empty()) {
      check.status = same.empty() ? CheckStatus::kSkipped : CheckStatus::kOk;
      check.finding = same.empty() ? "no rank's version could be read"
                                   : fmt::format("the same on all ranks: {}", fmt::join(same, ", "));
    } else {
      check.status = CheckStatus::kProblem;
      check.finding = fmt::format("differ: {}", fmt::join(different, "; "));
      check.advice = "give all ranks one image or environment: different versions may hang or compute different things";
      std::ranges::sort(check.ranks);
      check.ranks.erase(std::unique(check.ranks.begin(), check.ranks.end()), check.ranks.end());
    }
    checks->push_back(std::move(check));
  }
}

void CheckEnvironment(const JobFacts& facts, std::vector<Check>* checks) {
  const std::vector<jobs::JobView> jobs = jobs::JobsOf(facts.view);
  for (const jobs::JobView& job : jobs) {
    std::map<std::string, size_t> names;
    for (const jobs::PlacedProcess& placed : job.ranks) {
      for (const std::string& setting : placed.process->settings) ++names[setting.substr(0, setting.find('='))];
    }
    bool is_any_different = false;
    for (const auto& [name, count] : names) {
      if (IsOfEachRank(name)) continue;
      const Variants variants = VariantsOf(job, [&name = name](const control::Process& process) {
        for (const std::string& setting : process.settings) {
          if (setting.starts_with(name + "=")) return setting;
        }
        return name + " not set";
      });
      if (variants.values.size() < 2) continue;
      is_any_different = true;
      Check check = Line("environment", name, SteersCommunication(name) ? CheckStatus::kProblem : CheckStatus::kWarning,
                         "differs: " + variants.Text(),
                         "set it the same for all ranks (srun --export, mpirun -x, the image), or nowhere");
      check.ranks = variants.odd_ranks();
      checks->push_back(std::move(check));
    }
    if (is_any_different || job.ranks.empty()) continue;
    checks->push_back(Line("environment", JobSubject(job, jobs.size()), CheckStatus::kOk,
                           fmt::format("{} settings of communication, the same on all ranks", names.size())));
  }
}

void CheckClocks(const JobFacts& facts, std::vector<Check>* checks) {
  int64_t least_ns = 0;
  int64_t most_ns = 0;
  int64_t uncertainty_ns = 0;
  bool is_any_far = false;
  size_t measured = 0;
  for (const jobs::NodeView& node : facts.view.nodes) {
    if (!node.clock) continue;
    ++measured;
    least_ns = std::min(least_ns, node.clock->offset_ns);
    most_ns = std::max(most_ns, node.clock->offset_ns);
    uncertainty_ns = std::max(uncertainty_ns, node.clock->uncertainty_ns);
    const int64_t surely_ns = std::abs(node.clock->offset_ns) - node.clock->uncertainty_ns;
    if (surely_ns <= kApartNs) continue;
    is_any_far = true;
    Check check = Line("clocks", node.host, surely_ns > kFarApartNs ? CheckStatus::kProblem : CheckStatus::kWarning,
                       fmt::format("{} by {} (to within {})", node.clock->offset_ns > 0 ? "is ahead" : "is behind",
                                   report::FormatDuration(std::abs(node.clock->offset_ns)),
                                   report::FormatDuration(node.clock->uncertainty_ns)),
                       "let chrony or systemd-timesyncd keep that node's clock");
    check.figures = {{"offset", static_cast<double>(node.clock->offset_ns), "ns"},
                     {"uncertainty", static_cast<double>(node.clock->uncertainty_ns), "ns"}};
    check.hosts = {node.host};
    checks->push_back(std::move(check));
  }
  if (is_any_far) return;
  if (measured == 0) {
    checks->push_back(Line("clocks", "", CheckStatus::kSkipped, "not measured: no node answers"));
    return;
  }
  Check check = Line("clocks", "", CheckStatus::kOk,
                     fmt::format("{} apart at most (to within {})", report::FormatDuration(most_ns - least_ns),
                                 report::FormatDuration(uncertainty_ns)));
  check.figures = {{"apart", static_cast<double>(most_ns - least_ns), "ns"},
                   {"uncertainty", static_cast<double>(uncertainty_ns), "ns"}};
  checks->push_back(std::move(check));
}

void CheckPtrace(const JobFacts& facts, std::vector<Check>* checks) {
  std::vector<std::string> bound;
  std::vector<std::string> closed;
  for (const jobs::NodeView& node : facts.view.nodes) {
    if (!node.status) continue;
    const int32_t scope = node.status->ptrace_scope.value_or(0);
    if (scope == 3) closed.push_back(node.host);
    if ((scope == 1 || scope == 2) && !node.status->may_trace_all) bound.push_back(node.host);
  }
  const auto add = [checks](CheckStatus status, const std::vector<std::string>& hosts, const char* why) {
    checks->push_back(
        Line("ptrace", "", status, fmt::format("{} on {}", why, fmt::join(hosts, ", ")),
             "run lockstepd as a service of root, or 'sysctl kernel.yama.ptrace_scope=0'; Python stacks and "
             "flight records come without it where ranks call lockstep.enable_hang_dumps()",
             hosts));
  };
  if (!closed.empty()) add(CheckStatus::kProblem, closed, "no process may read another one's stacks (ptrace_scope 3)");
  if (!bound.empty()) add(CheckStatus::kWarning, bound, "lockstepd may not read stacks (kernel.yama.ptrace_scope)");
  if (!closed.empty() || !bound.empty() || facts.view.answered_count() == 0) return;
  checks->push_back(Line("ptrace", "", CheckStatus::kOk, "stacks of stuck ranks can be read on all nodes"));
}

std::vector<Check> CheckJob(const JobFacts& facts) {
  std::vector<Check> checks;
  CheckNodes(facts, &checks);
  CheckRanks(facts, &checks);
  CheckNetwork(facts, &checks);
  checks.push_back(
      facts.collectives.value_or(Line("collectives", "", CheckStatus::kSkipped, "not measured",
                                      "--mpi 'mpirun --host a,b lockstep-mpi-check', with that program on all nodes")));
  CheckVersions(facts, &checks);
  CheckEnvironment(facts, &checks);
  CheckGpus(facts, &checks);
  CheckClocks(facts, &checks);
  CheckPtrace(facts, &checks);
  CheckProgress(facts, &checks);
  CheckBalance(facts, &checks);
  return checks;
}

}  // namespace lockstep::doctor
