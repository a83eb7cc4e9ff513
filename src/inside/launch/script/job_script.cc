#include "inside/launch/script/job_script.h"

#include <fmt/format.h>

namespace lockstep::launch {
namespace {

Error BadRequest(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

// A directive ends with its line, and what stands in it is not the shell's.
bool IsPlain(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '"' || c == '\'' || c == '\\' || c == '#')
      return false;
  }
  return true;
}

bool IsVariableName(const std::string& name) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  return !name.empty() && name.find_first_not_of(std::string(kLetters) + "0123456789") == std::string::npos &&
         name.find_first_of(kLetters) == 0;
}

// RFC 1123: what Kubernetes takes for a name.
bool IsLabel(const std::string& name) {
  return !name.empty() && name.size() <= 63 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos && name.front() != '-' &&
         name.back() != '-';
}

Status CheckTexts(const JobRequest& request) {
  const std::pair<const char*, const std::string*> texts[] = {{"--job-name", &request.name},
                                                              {"--queue", &request.queue},
                                                              {"--account", &request.account},
                                                              {"--filesystems", &request.filesystems},
                                                              {"--constraint", &request.constraint}};
  for (const auto& [flag, text] : texts) {
    if (!IsPlain(*text))
      return BadRequest(fmt::format("{} '{}': no spaces, quotes or control characters", flag, *text));
  }
  for (const std::string& variable : request.environment) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos || !IsVariableName(variable.substr(0, equals)))
      return BadRequest(fmt::format("--env '{}': expected NAME=VALUE", variable));
  }
  return {};
}

Status CheckKubernetes(const JobRequest& request) {
  if (!IsLabel(request.name))
    return BadRequest(
        fmt::format("--job-name '{}': Kubernetes takes small letters, digits and '-' in between", request.name));
  if (request.image.empty())
    return BadRequest("a job for Kubernetes needs --image: one with lockstep, the tool and the program in it");
  if (!request.tool.empty() && request.claim.empty())
    return BadRequest("reports of pods need --claim: a claim of storage that all of them can write");
  if (!request.modules.empty())
    return BadRequest("--module is for SLURM, PBS and MPI; for Kubernetes everything is in the image");
  if (request.starter == RankStarter::kDirect)
    return BadRequest("--start direct is for SLURM, PBS and MPI; a pod's ranks are started by torchrun");
  if (!request.account.empty()) return BadRequest("--account is for SLURM and PBS");
  return {};
}

}  // namespace

Result<std::string> WriteJobScript(const JobRequest& request) {
  RETURN_IF_ERROR(CheckTexts(request));
  if (request.kind != ScriptKind::kPbs && !request.filesystems.empty()) return BadRequest("--filesystems is for PBS");
  if (request.kind != ScriptKind::kSlurm && request.kind != ScriptKind::kPbs && !request.constraint.empty())
    return BadRequest("--constraint is for SLURM and PBS");
  if (request.kind == ScriptKind::kMpi && (!request.queue.empty() || !request.account.empty()))
    return BadRequest("--queue and --account are for schedulers; mpi starts at once");
  if (request.kind != ScriptKind::kKubernetes && (!request.image.empty() || !request.claim.empty()))
    return BadRequest("--image and --claim are for k8s");
  switch (request.kind) {
    case ScriptKind::kSlurm: return SlurmScript(request);
    case ScriptKind::kPbs: return PbsScript(request);
    case ScriptKind::kMpi: return MpiScript(request);
    case ScriptKind::kKubernetes: break;
  }
  RETURN_IF_ERROR(CheckKubernetes(request));
  return KubernetesScript(request);
}

}  // namespace lockstep::launch
