#include "node/agent/dynolog/request_match.h"

#include <algorithm>

#include "base/text_scan.h"

namespace lockstep::agent {
namespace {

/// The job id that the process's own libkineto reports: the digits that SLURM_JOB_ID begins with; 0 without.
int64_t KinetoJobId(const control::Process& process) {
  if (process.job_kind != control::JobKind::kSlurm) return 0;
  return LeadingNumber(process.job_id).value_or(0);
}

bool HasPid(const control::Process& process, int64_t pid) {
  return pid == process.pid ||
         std::find(process.client_pids.begin(), process.client_pids.end(), pid) != process.client_pids.end();
}

}  // namespace

std::vector<control::Process> MatchRequest(const RpcRequest& request, const std::vector<control::Process>& processes,
                                           const Caller& caller) {
  const bool takes_all = request.pids.empty() || (request.pids.size() == 1 && request.pids.front() == 0);
  std::vector<control::Process> matched;
  for (const control::Process& process : processes) {
    if (process.role != control::ProcessRole::kTrainer || !caller.MayTrace(process)) continue;
    if (KinetoJobId(process) != request.job_id) continue;
    if (!takes_all && std::none_of(request.pids.begin(), request.pids.end(),
                                   [&](int64_t pid) { return pid != 0 && HasPid(process, pid); }))
      continue;
    matched.push_back(process);
  }
  return matched;
}

bool IsInFolders(std::string_view log_file, const std::vector<std::string>& folders) {
  if (log_file.empty() || log_file.front() != '/' || log_file.back() == '/') return false;
  for (const char c : log_file) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  for (const std::string_view wrong : {"//", "/./", "/../"}) {
    if (log_file.find(wrong) != std::string_view::npos) return false;
  }
  if (log_file.ends_with("/.") || log_file.ends_with("/..")) return false;
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    std::string_view prefix = folder;
    while (prefix.ends_with('/')) prefix.remove_suffix(1);
    return log_file.size() > prefix.size() + 1 && log_file.starts_with(prefix) && log_file[prefix.size()] == '/';
  });
}

}  // namespace lockstep::agent
