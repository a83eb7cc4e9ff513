#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/control/api/node.h"
#include "node/control/api/process.h"
#include "node/local/torch_processes.h"

namespace lockstep::doctor {

enum class CheckStatus : unsigned char { kOk, kWarning, kProblem, kSkipped };
const char* CheckStatusName(CheckStatus status);  ///< "ok", "warning", "problem"; "skipped": not measured.

/// A number that a check goes by.
struct CheckFigure {
  std::string name;  ///< "latency", "offset".
  double value = 0;
  std::string unit;  ///< "ns", "bytes", "bytes/s", "cores", "celsius", "count", "ratio".
};

/// One line of `lockstep doctor`: what was looked at, what was found, what to do.
struct Check {
  /// "daemon", "kineto_socket", "socket_folder", "base_config", "process", "captures", "clock", "space", "access".
  std::string id;
  std::string subject;  ///< Which one of several: a path, "4711".
  CheckStatus status = CheckStatus::kOk;
  std::string finding;  ///< What is so, one sentence.
  std::string advice;   ///< Empty when there is nothing to do.
  std::vector<CheckFigure> figures = {};
  std::vector<std::string> hosts = {};  ///< Whose fault it is, where it is that of some nodes,
  std::vector<int32_t> ranks = {};      ///< or of some ranks.
};

/// One without figures and ranks.
Check Line(std::string id, std::string subject, CheckStatus status, std::string finding, std::string advice = "",
           std::vector<std::string> hosts = {});

/// Of a list of ranks in a finding; the rest is counted.
inline constexpr size_t kRanksShown = 16;

/// What the checks are made of, collected once.
struct NodeFacts {
  std::optional<control::NodeStatus> daemon;  ///< Unset: none answers, and
  std::string daemon_error;                   ///< why.
  std::string daemon_socket;
  std::vector<control::Process> registered;    ///< With the daemon, of the users that the caller may see.
  std::vector<local::TorchProcess> processes;  ///< With PyTorch loaded, as far as the caller may look.
  std::string output_folder;                   ///< Where traces are to be brought.
};

/// All of them, in the order in which they are worth reading.
std::vector<Check> CheckNode(const NodeFacts& facts);

// Its parts: node.cc, process.cc.
void CheckDaemon(const NodeFacts& facts, std::vector<Check>* checks);
void CheckKinetoSocket(const NodeFacts& facts, std::vector<Check>* checks);
void CheckSocketFolders(const NodeFacts& facts, std::vector<Check>* checks);
void CheckBaseConfig(const NodeFacts& facts, std::vector<Check>* checks);
void CheckProcesses(const NodeFacts& facts, std::vector<Check>* checks);
void CheckCaptures(const NodeFacts& facts, std::vector<Check>* checks);
void CheckClock(std::vector<Check>* checks);
void CheckSpace(const NodeFacts& facts, std::vector<Check>* checks);
void CheckAccess(const NodeFacts& facts, std::vector<Check>* checks);

}  // namespace lockstep::doctor
