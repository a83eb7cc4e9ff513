#include "programs/doctor/collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "base/now.h"
#include "base/split.h"
#include "base/subprocess.h"
#include "base/utf8.h"
#include "node/control/discovery/command_json.h"
#include "node/control/discovery/command_words.h"
#include "present/report/format.h"
#include "present/report/text_page.h"

namespace lockstep::doctor {
namespace {

constexpr std::string_view kBegin = "{\"schema\":\"lockstep.mpi-check/1\"";
constexpr size_t kShown = 200;
constexpr int64_t kGraceNs = 5'000'000'000;  // mpirun ends its ranks on all nodes when it is asked to.
// MPICH's launcher (4.0.2) fails by itself on a busy machine: by SIGPIPE before it has passed on why its ranks could
// not start, one time in twenty; by a write to a rank that is gone after all of them had ended well, one time in two
// hundred. Where it may have been the launcher alone, it is started again.
constexpr int kMostTries = 5;

const char* const kAdvice =
    "run the command by hand: mpirun and MPI print more; then look at the lines about the network";

Check Failed(std::string finding) {
  return Line("collectives", "", CheckStatus::kProblem, std::move(finding), kAdvice);
}

bool IsRule(std::string_view line) { return line.size() >= 8 && line.find_first_not_of('-') == std::string_view::npos; }

/// What a launcher had to say: the first text that Open MPI puts between two rules, else the last line.
std::string LastWords(std::string_view error) {
  std::string block;
  std::string_view last;
  bool is_in_block = false;
  for (const std::string_view line : SplitLines(error)) {
    if (line.find_first_not_of(' ') == std::string_view::npos) continue;
    if (IsRule(line)) {
      if (!block.empty()) break;
      is_in_block = true;
      continue;
    }
    last = line;
    if (is_in_block) block += (block.empty() ? "" : " ") + std::string(line);
  }
  return Printable((block.empty() ? last : std::string_view(block)).substr(0, kShown));
}

}  // namespace

Check ReadCollectives(std::string_view output, std::string_view error, int exit_status) {
  const size_t begin = output.find(kBegin);
  const std::string_view line =
      begin == std::string_view::npos ? std::string_view() : output.substr(begin, output.find('\n', begin) - begin);
  const auto tree = control::ParseCommandJson(line, "lockstep-mpi-check");
  const JsonValue document = tree ? tree->root() : JsonValue();
  const JsonValue operations = document["operations"];
  const JsonValue hosts = document["hosts"];
  const std::string words = LastWords(error);
  if (!operations.IsArray() || !hosts.IsArray()) {
    return Failed(fmt::format("the sweep did not end (exit status {}): {}", exit_status,
                              words.empty() ? "it printed no result" : words));
  }
  std::set<int32_t> wrong;
  std::set<std::string> wrong_operations;
  int64_t longest_ns = 0;
  for (const JsonValue operation : operations.elements()) {
    const std::string time = operation["time_ns"].TextOrEmpty();
    longest_ns = std::max<int64_t>(longest_ns, std::atoll(time.c_str()));
    for (const JsonValue rank : operation["wrong_ranks"].elements()) {
      wrong.insert(std::atoi(rank.TextOrEmpty().c_str()));
      wrong_operations.insert(Printable(operation["operation"].TextOrEmpty()));
    }
  }
  if (!wrong.empty() || exit_status != 0) {
    Check check =
        Failed(wrong.empty() ? fmt::format("collectives agree, and then the launcher failed (exit status {}): {}",
                                           exit_status, words.empty() ? "it did not say why" : words)
                             : fmt::format("wrong results of {} on MPI ranks {}", fmt::join(wrong_operations, ", "),
                                           report::RankList({wrong.begin(), wrong.end()}, kRanksShown)));
    check.ranks.assign(wrong.begin(), wrong.end());
    return check;
  }
  std::set<std::string> names;
  for (const JsonValue host : hosts.elements()) {
    if (host.IsText()) names.insert(host.TextOrEmpty());
  }
  Check check =
      Line("collectives", "", CheckStatus::kOk,
           fmt::format("all_reduce, all_gather and broadcast agree on {} MPI ranks of {} node{}; the slowest took {}",
                       hosts.size(), names.size(), names.size() == 1 ? "" : "s", report::FormatDuration(longest_ns)));
  check.figures = {{"ranks", static_cast<double>(hosts.size()), "count"},
                   {"slowest", static_cast<double>(longest_ns), "ns"}};
  return check;
}

Result<Check> CheckCollectives(const std::string& command, int64_t timeout_ns) {
  const std::vector<std::string_view> parts = SplitAt(command);
  const std::vector<std::string> words(parts.begin(), parts.end());
  if (words.empty()) return Error{ErrorCode::kInvalidArgument, "--mpi: no command"};
  CommandOptions options;
  options.grace_ns = kGraceNs;
  const int64_t begin_ns = SteadyNow();
  for (int tries = 1;; ++tries) {
    options.timeout_ns = timeout_ns - (SteadyNow() - begin_ns);
    const Result<CommandOutput> done = lockstep::RunCommand(words, options);
    if (!done) return Failed(fmt::format("the sweep did not end: {}", done.error().ToString()));
    Check check = ReadCollectives(done->output, done->error, done->exit_status);
    const bool without_a_word = done->output.empty() && done->error.empty();
    const bool has_results = done->output.find(kBegin) != std::string::npos;
    const bool may_be_launcher = done->exit_status != 0 && check.ranks.empty() && (without_a_word || has_results);
    if (!may_be_launcher || tries == kMostTries || SteadyNow() - begin_ns > timeout_ns / 2) return check;
  }
}

}  // namespace lockstep::doctor
