#include "node/control/discovery/carrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/ascii.h"
#include "base/subprocess.h"

namespace lockstep::control {

namespace {

constexpr std::string_view kHost = "{host}";

Error InvalidCarrier(std::string message) {
  return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
}

// Words as a shell splits them: spaces, '...', "..." and a backslash; nothing is expanded.
Result<std::vector<std::string>> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'') {
      if (i + 1 == text.size()) return InvalidCarrier("a \"\\\" at the end of the command");
      word = word.value_or("") + text[++i];
    } else if (quote != 0) {
      *word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      word = word.value_or("");
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (word) words.push_back(std::move(*word));
      word.reset();
    } else {
      word = word.value_or("") + c;
    }
  }
  if (quote != 0) return InvalidCarrier(fmt::format("an open {} in the command", quote));
  if (word) words.push_back(std::move(*word));
  return words;
}

// For the shell that sshd starts on the other side.
std::string ShellQuoted(const std::string& word) {
  const auto plain = [](char c) {
    return IsAlphanumeric(c) || std::string_view("/._-=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Status CheckHost(const std::string& host) {
  const bool bad = host.empty() || host[0] == '-' || std::any_of(host.begin(), host.end(), [](char c) {
                     return static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == ',' || c == '\'' || c == '"';
                   });
  // "-oProxyCommand=..." as a host would be an option to ssh.
  if (bad) return InvalidCarrier(fmt::format("\"{}\" is not a host's name", host));
  return {};
}

void Append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::vector<std::string> SrunCommand(const JobNode& node, const std::string& job_id) {
  // --overlap: beside the job's own steps, not after them. --mpi=none: no key exchange to wait for. The three streams
  // as srun has them by itself, whatever SLURM_OUTPUT and its like say (with --output=0, errors would come among the
  // output);
  // --unbuffered: a line buffer would hold back binary bytes. --gres=none: the step takes no device. --immediate: an
  // error rather than a wait where the step cannot begin.
  std::vector<std::string> command = {"srun",
                                      "--jobid=" + job_id,
                                      "--overlap",
                                      "--mpi=none",
                                      "--nodes=1",
                                      "--ntasks=1",
                                      "--nodelist=" + node.host,
                                      "--unbuffered",
                                      "--input=all",
                                      "--output=all",
                                      "--error=all",
                                      "--gres=none",
                                      "--quiet",
                                      "--immediate=30"};
  if (node.het_group) command.push_back(fmt::format("--het-group={}", *node.het_group));
  return command;
}

// Open MPI and MPICH's hydra name the host and spell "forward standard input" differently.
Result<std::vector<std::string>> MpiexecCommand(const std::string& program, const std::string& host) {
  ASSIGN_OR_RETURN(const CommandOutput version, RunCommand({program, "--version"}));
  const std::string words = version.output + version.error;
  if (words.find("Open MPI") != std::string::npos || words.find("OpenRTE") != std::string::npos ||
      words.find("PRRTE") != std::string::npos) {
    return std::vector<std::string>{program, "--host", host, "-np", "1", "--stdin", "0", "--quiet"};
  }
  // HYDRA: MPICH, Intel MPI, MVAPICH.
  return std::vector<std::string>{program, "-hosts", host, "-n", "1"};
}

}  // namespace

Result<Carrier> ParseCarrier(const std::string& text) {
  ASSIGN_OR_RETURN(std::vector<std::string> words, SplitWords(text));
  if (words.empty())
    return InvalidCarrier("--via: no command; one of srun, ssh, mpiexec, or your own with {host} in it");
  if (words.size() == 1) {
    if (words[0] == "srun") return Carrier{.kind = CarrierKind::kSrun};
    if (words[0] == "ssh") return Carrier{.kind = CarrierKind::kSsh};
    const std::string name = words[0].substr(words[0].rfind('/') + 1);
    if (name.starts_with("mpiexec") || name.starts_with("mpirun")) {
      return Carrier{.kind = CarrierKind::kMpiexec, .command = std::move(words)};
    }
  }
  return Carrier{.kind = CarrierKind::kCommand, .command = std::move(words)};
}

Result<std::vector<std::string>> TunnelCommand(const Carrier& carrier, const JobNode& node, const JobNodes& job,
                                               const std::string& lockstep,
                                               const std::vector<std::string>& tunnel_arguments) {
  RETURN_IF_ERROR(CheckHost(node.host));
  std::vector<std::string> tail = {lockstep, "tunnel"};
  Append(tail, tunnel_arguments);
  std::vector<std::string> command;
  switch (carrier.kind) {
    case CarrierKind::kSrun:
      if (job.kind != JobKind::kSlurm || job.job_id.empty()) {
        return Error{.code = ErrorCode::kFailedPrecondition,
                     .message = "--via srun needs the id of a running SLURM job: add --job ID"};
      }
      command = SrunCommand(node, job.job_id);
      Append(command, tail);
      return command;
    case CarrierKind::kMpiexec: {
      ASSIGN_OR_RETURN(command, MpiexecCommand(carrier.command.empty() ? "mpiexec" : carrier.command[0], node.host));
      Append(command, tail);
      return command;
    }
    case CarrierKind::kSsh:
      // -T: no terminal, which would change bytes. -x: no X11.
      command = {"ssh",
                 "-T",
                 "-x",
                 "-oBatchMode=yes",
                 "-oConnectTimeout=10",
                 "-oLogLevel=ERROR",
                 "--",
                 node.address.empty() ? node.host : node.address};
      RETURN_IF_ERROR(CheckHost(command.back()));
      for (const std::string& word : tail) command.push_back(ShellQuoted(word));
      return command;
    case CarrierKind::kCommand: {
      bool named = false;
      for (std::string word : carrier.command) {
        for (size_t at = 0; (at = word.find(kHost, at)) != std::string::npos; at += node.host.size()) {
          word.replace(at, kHost.size(), node.host);
          named = true;
        }
        command.push_back(std::move(word));
      }
      if (!named) command.push_back(node.host);
      for (const std::string& word : tail) command.push_back(ShellQuoted(word));
      return command;
    }
  }
  return InvalidCarrier("no such carrier");
}

}  // namespace lockstep::control
